/* SPDX-License-Identifier: Apache-2.0
 *
 * The vector of one CPU build: VL floats, a handful of operations, and nothing else. Three spellings of the same
 * functions: AVX-512, AVX2, and GCC's portable vectors for the base build (SSE2 on x86-64, NEON on arm64).
 * Arithmetic operators work on vf directly. Multiply-add is one rounding in avx2 and avx512, two in base.
 *
 * Results do not depend on VL. A sum along a row is kept in 16 lanes (vw, as many vectors as that takes): element i is
 * added to lane i mod 16, in the order of i, then lane j takes lane j + 8, j + 4, j + 2 and j + 1. So avx2 and avx512
 * end in the same bits; base, which rounds twice, does not. Sums begin with +0, so that adding the 0 of a lane without
 * an element changes nothing, not even the sign of a zero. tests/engine/ops/test_widths.c compares.
 */
#ifndef DTRAIN_CORE_ENGINE_BACKEND_CPU_SIMD_H
#define DTRAIN_CORE_ENGINE_BACKEND_CPU_SIMD_H

#include <stdint.h>
#include <string.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))

#if defined(DT_ISA_AVX512) || defined(DT_ISA_AVX2)

#    include <immintrin.h>

#    if defined(DT_ISA_AVX512)
#        define MM(name) _mm512_##name
#        define MMI      __m512i
enum { VL = 16 };
typedef __m512 vf;
typedef int32_t vi __attribute__((vector_size(64)));
typedef uint32_t vu __attribute__((vector_size(64)));
#    else
#        define MM(name) _mm256_##name
#        define MMI      __m256i
enum { VL = 8 };
typedef __m256 vf;
typedef int32_t vi __attribute__((vector_size(32)));
typedef uint32_t vu __attribute__((vector_size(32)));
#    endif

static ALWAYS_INLINE vf vf_set(float x)
{
    return MM(set1_ps)(x);
}
static ALWAYS_INLINE vf vf_load(const float *p)
{
    return MM(loadu_ps)(p);
}
static ALWAYS_INLINE void vf_store(float *p, vf x)
{
    MM(storeu_ps)(p, x);
}
static ALWAYS_INLINE vf vf_fma(vf a, vf b, vf c) /* a b + c */
{
    return MM(fmadd_ps)(a, b, c);
}
static ALWAYS_INLINE vf vf_max(vf a, vf b) /* b when either is NaN */
{
    return MM(max_ps)(a, b);
}
static ALWAYS_INLINE vf vf_min(vf a, vf b)
{
    return MM(min_ps)(a, b);
}
static ALWAYS_INLINE vf vf_sqrt(vf a)
{
    return MM(sqrt_ps)(a);
}
static ALWAYS_INLINE vi vi_of(vf a) /* a holds whole numbers */
{
    return (vi)MM(cvtps_epi32)(a);
}
static ALWAYS_INLINE vf vf_of(vi a)
{
    return MM(cvtepi32_ps)((MMI)a);
}

#    if defined(DT_ISA_AVX512)
/* the first n of VL elements; the others read as 0 and are not written */
static ALWAYS_INLINE vf vf_load_n(const float *p, int64_t n)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}
static ALWAYS_INLINE void vf_store_n(float *p, vf x, int64_t n)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), x);
}
static ALWAYS_INLINE vf vf_abs(vf a)
{
    return _mm512_abs_ps(a);
}
static ALWAYS_INLINE vf vf_if_gt(vf a, vf b, vf yes, vf no) /* a > b ? yes : no */
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_GT_OQ), no, yes);
}
static ALWAYS_INLINE vf vf_if_le(vf a, vf b, vf yes, vf no) /* a <= b ? yes : no */
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LE_OQ), no, yes);
}
static ALWAYS_INLINE vf vf_if_nan(vf a, vf yes, vf no)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), no, yes);
}
static ALWAYS_INLINE vf vf_round(vf a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static ALWAYS_INLINE vf vf_scale(vf a, vf n) /* a 2^n */
{
    return _mm512_scalef_ps(a, n);
}
#    else
static ALWAYS_INLINE __m256i vm_first(int64_t n)
{
    static const int32_t ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
    return _mm256_loadu_si256((const __m256i *)(ones + 8 - n));
}
static ALWAYS_INLINE vf vf_load_n(const float *p, int64_t n)
{
    return _mm256_maskload_ps(p, vm_first(n));
}
static ALWAYS_INLINE void vf_store_n(float *p, vf x, int64_t n)
{
    _mm256_maskstore_ps(p, vm_first(n), x);
}
static ALWAYS_INLINE vf vf_abs(vf a)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
}
static ALWAYS_INLINE vf vf_if_gt(vf a, vf b, vf yes, vf no)
{
    return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_GT_OQ));
}
static ALWAYS_INLINE vf vf_if_le(vf a, vf b, vf yes, vf no)
{
    return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_LE_OQ));
}
static ALWAYS_INLINE vf vf_if_nan(vf a, vf yes, vf no)
{
    return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
}
static ALWAYS_INLINE vf vf_round(vf a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/* in two steps, so that results below the normal range and above the largest number come out right */
static ALWAYS_INLINE vf vf_scale(vf a, vf n)
{
    const __m256i k = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(k, 1), bias = _mm256_set1_epi32(127);
    const __m256i low = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
    const __m256i high = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(k, half), bias), 23);
    return _mm256_mul_ps(_mm256_mul_ps(a, _mm256_castsi256_ps(low)), _mm256_castsi256_ps(high));
}
#    endif
#    undef MM
#    undef MMI

#else

#    include <math.h>

/* Tests build this spelling at other widths, and with one rounding, to compare with the two above. */
#    ifndef DT_ISA_LANES
#        define DT_ISA_LANES 4
#    endif

enum { VL = DT_ISA_LANES };
typedef float vf __attribute__((vector_size(VL * 4)));
typedef int32_t vi __attribute__((vector_size(VL * 4)));
typedef uint32_t vu __attribute__((vector_size(VL * 4)));

static ALWAYS_INLINE vf vf_set(float x)
{
    vf v = {0};
    for (int i = 0; i < VL; i++) {
        v[i] = x;
    }
    return v;
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
#    if defined(DT_ISA_FMA)
static ALWAYS_INLINE vf vf_fma(vf a, vf b, vf c)
{
    for (int i = 0; i < VL; i++) {
        c[i] = fmaf(a[i], b[i], c[i]);
    }
    return c;
}
static ALWAYS_INLINE vf vf_round(vf a)
{
    for (int i = 0; i < VL; i++) {
        a[i] = rintf(a[i]);
    }
    return a;
}
#    else
static ALWAYS_INLINE vf vf_fma(vf a, vf b, vf c)
{
    return a * b + c;
}
static ALWAYS_INLINE vf vf_round(vf a) /* |a| < 2^22: adding 1.5 2^23 leaves no fraction */
{
    const vf magic = vf_set(12582912.0f);
    return (a + magic) - magic;
}
#    endif
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
    for (int i = 0; i < VL; i++) {
        a[i] = sqrtf(a[i]);
    }
    return a;
}
static ALWAYS_INLINE vf vf_abs(vf a)
{
    return (vf)((vi)a & 0x7fffffff);
}
static ALWAYS_INLINE vf vf_if_gt(vf a, vf b, vf yes, vf no)
{
    return vf_choose((vi)(a > b), yes, no);
}
static ALWAYS_INLINE vf vf_if_le(vf a, vf b, vf yes, vf no)
{
    return vf_choose((vi)(a <= b), yes, no);
}
static ALWAYS_INLINE vf vf_if_nan(vf a, vf yes, vf no)
{
    return vf_choose((vi)(a != a), yes, no);
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
    const vi k = vi_of(n), half = k >> 1;
    return a * (vf)((half + 127) << 23) * (vf)((k - half + 127) << 23);
}

#endif

/* NaN when either is (engine/backend/kernel.h); else vf_max and vf_min, in the same order */
static ALWAYS_INLINE vf vf_greatest(vf a, vf b)
{
    return vf_if_nan(a, a, vf_max(a, b));
}
static ALWAYS_INLINE vf vf_least(vf a, vf b)
{
    return vf_if_nan(a, a, vf_min(a, b));
}

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

/* Sum of the elements: lane j takes lane j + VL/2, then j + VL/4, and so on. */
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
    for (int half = VL / 2; half > 0; half /= 2) {
        for (int i = 0; i < half; i++) {
            x[i] = x[i] + x[i + half];
        }
    }
    return x[0];
#endif
}

static ALWAYS_INLINE float vf_max_element(vf x)
{
    float part[VL], top;
    vf_store(part, x);
    top = part[0];
    for (int i = 1; i < VL; i++) {
        top = part[i] > top ? part[i] : top;
    }
    return top;
}

/* Element i of the result is vf_sum(x[i]); x is used up. */
static ALWAYS_INLINE vf vf_sum_each(vf x[VL])
{
#if defined(DT_ISA_AVX512)
#    pragma GCC unroll 16
    for (int m = 0; m < 4; m++) { /* halves, then quarters: x[m] holds those of rows m, m+4, m+8, m+12 */
        const __m512 a = _mm512_shuffle_f32x4(x[m], x[m + 4], 0x44) + _mm512_shuffle_f32x4(x[m], x[m + 4], 0xee);
        const __m512 b =
            _mm512_shuffle_f32x4(x[m + 8], x[m + 12], 0x44) + _mm512_shuffle_f32x4(x[m + 8], x[m + 12], 0xee);
        x[m] = _mm512_shuffle_f32x4(a, b, 0x88) + _mm512_shuffle_f32x4(a, b, 0xdd);
    }
#    pragma GCC unroll 16
    for (int i = 0; i < 2; i++) {
        const __m512d a = _mm512_castps_pd(x[2 * i]), b = _mm512_castps_pd(x[2 * i + 1]);
        x[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b)) + _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
    }
    return _mm512_shuffle_ps(x[0], x[1], 0x88) + _mm512_shuffle_ps(x[0], x[1], 0xdd);
#elif defined(DT_ISA_AVX2)
#    pragma GCC unroll 8
    for (int m = 0; m < 4; m++) { /* halves: x[m] holds those of rows m and m+4 */
        x[m] = _mm256_permute2f128_ps(x[m], x[m + 4], 0x20) + _mm256_permute2f128_ps(x[m], x[m + 4], 0x31);
    }
#    pragma GCC unroll 8
    for (int i = 0; i < 2; i++) {
        const __m256d a = _mm256_castps_pd(x[2 * i]), b = _mm256_castps_pd(x[2 * i + 1]);
        x[i] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, b)) + _mm256_castpd_ps(_mm256_unpackhi_pd(a, b));
    }
    return _mm256_shuffle_ps(x[0], x[1], 0x88) + _mm256_shuffle_ps(x[0], x[1], 0xdd);
#else
    vf sums = {0};
    for (int i = 0; i < VL; i++) {
        sums[i] = vf_sum(x[i]);
    }
    return sums;
#endif
}

/* ---- 16 lanes, whatever VL is ------------------------------------------------------------------------------------ */

enum { LANES = 16, VW = LANES / VL }; /* vectors that hold them */

typedef struct vw {
    vf part[VW];
} vw;

static ALWAYS_INLINE vw vw_set(float x)
{
    vw w;
    for (int i = 0; i < VW; i++) {
        w.part[i] = vf_set(x);
    }
    return w;
}

/* Takes the next vector of a row into its sum. The parts go round: after any number of turns vw_half adds the same
 * pairs, because addition commutes. */
static ALWAYS_INLINE void vw_rotate_add(vw *sum, vf newest)
{
    for (int i = 0; i + 1 < VW; i++) {
        sum->part[i] = sum->part[i + 1];
    }
    sum->part[VW - 1] = newest;
}

static ALWAYS_INLINE void vw_add(vw *sum, vf x)
{
    vw_rotate_add(sum, sum->part[0] + x);
}

static ALWAYS_INLINE void vw_fma(vw *sum, vf a, vf b)
{
    vw_rotate_add(sum, vf_fma(a, b, sum->part[0]));
}

/* The first halvings, down to VL lanes. */
static ALWAYS_INLINE vf vw_half(vw x)
{
    for (int half = VW / 2; half > 0; half /= 2) {
        for (int i = 0; i < half; i++) {
            x.part[i] = x.part[i] + x.part[i + half];
        }
    }
    return x.part[0];
}

static ALWAYS_INLINE float vw_sum(vw x)
{
    return vf_sum(vw_half(x));
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

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
