/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages in the wire format of Protocol Buffers (protobuf.dev/programming-guides/encoding), appended to a dt_str:
 * fields as varint, 32 or 64 bits, or bytes with their length; a message in a message is bytes. Little endian, whatever
 * the machine. Errors stick in the dt_str, those of a message inside in the one outside. Threads: any.
 */
#ifndef DTRAIN_CORE_BASE_PROTOBUF_H
#define DTRAIN_CORE_BASE_PROTOBUF_H

#include "base/str.h"

#include <string.h>

static inline void dt_pb_varint(dt_str *out, uint64_t v)
{
    char byte[10];
    size_t n = 0;
    do {
        byte[n++] = (char)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        v >>= 7;
    } while (v > 0);
    dt_str_add_n(out, byte, n);
}

static inline void dt_pb_tag(dt_str *out, uint32_t field, uint32_t wire)
{
    dt_pb_varint(out, (uint64_t)field << 3 | wire);
}

static inline void dt_pb_int(dt_str *out, uint32_t field, int64_t v)
{
    dt_pb_tag(out, field, 0);
    dt_pb_varint(out, (uint64_t)v);
}

static inline void dt_pb_fixed(dt_str *out, uint64_t v, size_t bytes)
{
    char byte[8];
    for (size_t i = 0; i < bytes; i++) {
        byte[i] = (char)(v >> (8 * i) & 0xff);
    }
    dt_str_add_n(out, byte, bytes);
}

static inline void dt_pb_float(dt_str *out, uint32_t field, float v)
{
    uint32_t bits = 0;
    memcpy(&bits, &v, sizeof(bits));
    dt_pb_tag(out, field, 5);
    dt_pb_fixed(out, bits, sizeof(bits));
}

static inline void dt_pb_double(dt_str *out, uint32_t field, double v)
{
    uint64_t bits = 0;
    memcpy(&bits, &v, sizeof(bits));
    dt_pb_tag(out, field, 1);
    dt_pb_fixed(out, bits, sizeof(bits));
}

static inline void dt_pb_bytes(dt_str *out, uint32_t field, const void *p, size_t bytes)
{
    dt_pb_tag(out, field, 2);
    dt_pb_varint(out, bytes);
    dt_str_add_n(out, bytes > 0 ? p : "", bytes);
}

static inline void dt_pb_text(dt_str *out, uint32_t field, const char *text)
{
    dt_pb_bytes(out, field, text, strlen(text));
}

static inline void dt_pb_str(dt_str *out, uint32_t field, const dt_str *part)
{
    dt_pb_bytes(out, field, dt_str_text(part), part->bytes);
    out->failed = out->failed || part->failed;
}

/* The message is put into out and is empty afterwards, ready for the next one. */
static inline void dt_pb_message(dt_str *out, uint32_t field, dt_str *message)
{
    dt_pb_str(out, field, message);
    dt_str_clear(message);
}

#endif
