/* SPDX-License-Identifier: Apache-2.0
 *
 * The vector of one CPU build: VL floats, a handful of operations, and nothing else. Three spellings of the same
 * functions: AVX-512, AVX2, and GCC's portable vectors for the base build (SSE2 on x86-64, NEON on arm64).
 * Arithmetic operators work on vf directly. Multiply-add is one rounding in avx2 and avx512, two in base.
 */
#ifndef DTRAIN_CORE_BACKEND_CPU_SIMD_H
#define DTRAIN_CORE_BACKEND_CPU_SIMD_H

#include <stdint.h>
#include <string.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))

#if defined(DT_ISA_AVX512)

#    include <immintrin.h>

enum { VL = 16 };
typedef __m512 vf;
typedef int32_t vi __attribute__((vector_size(64)));
typedef uint32_t vu __attribute__((vector_size(64)));

static ALWAYS_INLINE vf vf_set(float x)
{
    return _mm512_set1_ps(x);
}
static ALWAYS_INLINE vf vf_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
static ALWAYS_INLINE void vf_store(float *p, vf x)
{
    _mm512_storeu_ps(p, x);
}
/* the first n of VL elements; the others read as 0 and are not written */
static ALWAYS_INLINE vf vf_load_n(const float *p, int64_t n)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}
static ALWAYS_INLINE void vf_store_n(float *p, vf x, int64_t n)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), x);
}
static ALWAYS_INLINE vf vf_fma(vf a, vf b, vf c) /* a b + c */
{
    return _mm512_fmadd_ps(a, b, c);
}
static ALWAYS_INLINE vf vf_max(vf a, vf b) /* b when either is NaN */
{
    return _mm512_max_ps(a, b);
}
static ALWAYS_INLINE vf vf_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}
static ALWAYS_INLINE vf vf_sqrt(vf a)
{
    return _mm512_sqrt_ps(a);
}
static ALWAYS_INLINE vf vf_abs(vf a)
{
    return _mm512_abs_ps(a);
}
static ALWAYS_INLINE vf vf_if_gt(vf a, vf b, vf yes, vf no) /* a > b ? yes : no */
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_GT_OQ), no, yes);
}
static ALWAYS_INLINE vf vf_round(vf a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static ALWAYS_INLINE vi vi_of(vf a) /* a holds whole numbers */
{
    return (vi)_mm512_cvtps_epi32(a);
}
static ALWAYS_INLINE vf vf_of(vi a)
{
    return _mm512_cvtepi32_ps((__m512i)a);
}
static ALWAYS_INLINE vf vf_scale(vf a, vf n) /* a 2^n */
{
    return _mm512_scalef_ps(a, n);
}

#elif defined(DT_ISA_AVX2)

#    include <immintrin.h>

enum { VL = 8 };
typedef __m256 vf;
typedef int32_t vi __attribute__((vector_size(32)));
typedef uint32_t vu __attribute__((vector_size(32)));

static ALWAYS_INLINE __m256i vm_first(int64_t n)
{
    static const int32_t ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
    return _mm256_loadu_si256((const __m256i *)(ones + 8 - n));
}
static ALWAYS_INLINE vf vf_set(float x)
{
    return _mm256_set1_ps(x);
}
static ALWAYS_INLINE vf vf_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
static ALWAYS_INLINE void vf_store(float *p, vf x)
{
    _mm256_storeu_ps(p, x);
}
static ALWAYS_INLINE vf vf_load_n(const float *p, int64_t n)
{
    return _mm256_maskload_ps(p, vm_first(n));
}
static ALWAYS_INLINE void vf_store_n(float *p, vf x, int64_t n)
{
    _mm256_maskstore_ps(p, vm_first(n), x);
}
static ALWAYS_INLINE vf vf_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}
static ALWAYS_INLINE vf vf_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}
static ALWAYS_INLINE vf vf_min(vf a, vf b)
{
    return _mm256_min_ps(a, b);
}
static ALWAYS_INLINE vf vf_sqrt(vf a)
{
    return _mm256_sqrt_ps(a);
}
static ALWAYS_INLINE vf vf_abs(vf a)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
}
static ALWAYS_INLINE vf vf_if_gt(vf a, vf b, vf yes, vf no)
{
    return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_GT_OQ));
}
static ALWAYS_INLINE vf vf_round(vf a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static ALWAYS_INLINE vi vi_of(vf a)
{
    return (vi)_mm256_cvtps_epi32(a);
}
static ALWAYS_INLINE vf vf_of(vi a)
{
    return _mm256_cvtepi32_ps((__m256i)a);
}
/* in two steps, so that results below the normal range and above the largest number come out right */
static ALWAYS_INLINE vf vf_scale(vf a, vf n)
{
    const __m256i k = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(k, 1), bias = _mm256_set1_epi32(127);
    const __m256i low = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
    const __m256i high = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(k, half), bias), 23);
    return _mm256_mul_ps(_mm256_mul_ps(a, _mm256_castsi256_ps(low)), _mm256_castsi256_ps(high));
}

#else

#    include <math.h>

enum { VL = 4 };
typedef float vf __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));
typedef uint32_t vu __attribute__((vector_size(16)));

static ALWAYS_INLINE vf vf_set(float x)
{
    return (vf){x, x, x, x};
}
static ALWAYS_INLINE vf vf_load(const float *p)
{
    vf x;
    memcpy(&x, p, sizeof(x));
    return x;
}
static ALWAYS_INLINE void vf_store(float *p, vf x)
{
    memcpy(p, &x, sizeof(x));
}
static ALWAYS_INLINE vf vf_load_n(const float *p, int64_t n)
{
    vf x = {0};
    for (int64_t i = 0; i < n; i++) {
        x[i] = p[i];
    }
    return x;
}
static ALWAYS_INLINE void vf_store_n(float *p, vf x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        p[i] = x[i];
    }
}
static ALWAYS_INLINE vf vf_fma(vf a, vf b, vf c)
{
    return a * b + c;
}
static ALWAYS_INLINE vf vf_choose(vi mask, vf yes, vf no)
{
    return (vf)((mask & (vi)yes) | (~mask & (vi)no));
}
static ALWAYS_INLINE vf vf_max(vf a, vf b)
{
    return vf_choose((vi)(a > b), a, b);
}
static ALWAYS_INLINE vf vf_min(vf a, vf b)
{
    return vf_choose((vi)(a < b), a, b);
}
static ALWAYS_INLINE vf vf_sqrt(vf a)
{
    return (vf){sqrtf(a[0]), sqrtf(a[1]), sqrtf(a[2]), sqrtf(a[3])};
}
static ALWAYS_INLINE vf vf_abs(vf a)
{
    return (vf)((vi)a & (vi){0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff});
}
static ALWAYS_INLINE vf vf_if_gt(vf a, vf b, vf yes, vf no)
{
    return vf_choose((vi)(a > b), yes, no);
}
static ALWAYS_INLINE vf vf_round(vf a) /* |a| < 2^22: adding 1.5 2^23 leaves no fraction */
{
    const vf magic = vf_set(12582912.0f);
    return (a + magic) - magic;
}
static ALWAYS_INLINE vi vi_of(vf a)
{
    return __builtin_convertvector(a, vi);
}
static ALWAYS_INLINE vf vf_of(vi a)
{
    return __builtin_convertvector(a, vf);
}
static ALWAYS_INLINE vf vf_scale(vf a, vf n)
{
    const vi k = vi_of(n), half = k >> 1, bias = {127, 127, 127, 127};
    return a * (vf)((half + bias) << 23) * (vf)((k - half + bias) << 23);
}

#endif

/* a[i] b for VL unsigned numbers: the upper halves of the products; the lower ones go to *low_p */
static ALWAYS_INLINE vu vu_product(vu a, uint32_t b, vu *low_p)
{
#if defined(DT_ISA_AVX512)
    const __m512i m = _mm512_set1_epi32((int32_t)b), even = _mm512_mul_epu32((__m512i)a, m);
    const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64((__m512i)a, 32), m);
    *low_p = (vu)_mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
    return (vu)_mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
#elif defined(DT_ISA_AVX2)
    const __m256i m = _mm256_set1_epi32((int32_t)b), even = _mm256_mul_epu32((__m256i)a, m);
    const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64((__m256i)a, 32), m);
    *low_p = (vu)_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
    return (vu)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
#else
    vu high, low;
    for (int i = 0; i < VL; i++) {
        const uint64_t p = (uint64_t)a[i] * b;
        high[i] = (uint32_t)(p >> 32);
        low[i] = (uint32_t)p;
    }
    *low_p = low;
    return high;
#endif
}

/* Sum of the elements, always halved the same way. */
static ALWAYS_INLINE float vf_sum(vf x)
{
#if defined(DT_ISA_AVX512) || defined(DT_ISA_AVX2)
#    if defined(DT_ISA_AVX512)
    const __m256 low = _mm512_castps512_ps256(x), high = _mm512_extractf32x8_ps(x, 1), half = _mm256_add_ps(low, high);
#    else
    const __m256 half = x;
#    endif
    __m128 part = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    part = _mm_add_ps(part, _mm_movehl_ps(part, part));
    return _mm_cvtss_f32(_mm_add_ss(part, _mm_movehdup_ps(part)));
#else
    return (x[0] + x[2]) + (x[1] + x[3]);
#endif
}

static ALWAYS_INLINE float vf_top(vf x)
{
    float part[VL], top;
    vf_store(part, x);
    top = part[0];
    for (int i = 1; i < VL; i++) {
        top = part[i] > top ? part[i] : top;
    }
    return top;
}

/* Element i of the result is the sum of x[i]; x is used up. */
static ALWAYS_INLINE vf vf_sums(vf x[VL])
{
#if defined(DT_ISA_AVX512)
#    pragma GCC unroll 16
    for (int i = 0; i < 8; i++) { /* halves of 128-bit parts, then quarters, then parts */
        x[i] = _mm512_unpacklo_ps(x[2 * i], x[2 * i + 1]) + _mm512_unpackhi_ps(x[2 * i], x[2 * i + 1]);
    }
#    pragma GCC unroll 16
    for (int i = 0; i < 4; i++) {
        const __m512d a = _mm512_castps_pd(x[2 * i]), b = _mm512_castps_pd(x[2 * i + 1]);
        x[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b)) + _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
    }
#    pragma GCC unroll 16
    for (int i = 0; i < 2; i++) {
        x[i] = _mm512_shuffle_f32x4(x[2 * i], x[2 * i + 1], 0x88) + _mm512_shuffle_f32x4(x[2 * i], x[2 * i + 1], 0xdd);
    }
    return _mm512_shuffle_f32x4(x[0], x[1], 0x88) + _mm512_shuffle_f32x4(x[0], x[1], 0xdd);
#elif defined(DT_ISA_AVX2)
    const vf a = _mm256_hadd_ps(_mm256_hadd_ps(x[0], x[1]), _mm256_hadd_ps(x[2], x[3]));
    const vf b = _mm256_hadd_ps(_mm256_hadd_ps(x[4], x[5]), _mm256_hadd_ps(x[6], x[7]));
    return _mm256_permute2f128_ps(a, b, 0x20) + _mm256_permute2f128_ps(a, b, 0x31);
#else
    return (vf){vf_sum(x[0]), vf_sum(x[1]), vf_sum(x[2]), vf_sum(x[3])};
#endif
}

/* Runs `body` over n elements with i the position and k the count: VL, or less in the last turn. */
#define VF_LEFT(i, n)   ((n) - (i) < VL ? (n) - (i) : VL)
#define VF_FOR(i, k, n) for (int64_t i = 0, k = VF_LEFT(0, n); i < (n); i += VL, k = VF_LEFT(i, n))
static ALWAYS_INLINE vf vf_get(const float *p, int64_t k)
{
    return k == VL ? vf_load(p) : vf_load_n(p, k);
}
static ALWAYS_INLINE void vf_put(float *p, vf x, int64_t k)
{
    if (k == VL) {
        vf_store(p, x);
    } else {
        vf_store_n(p, x, k);
    }
}

#endif
