/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages in the wire format of Protocol Buffers (protobuf.dev/programming-guides/encoding), appended to a dt_str:
 * fields as varint, 32 bits, or bytes with their length; a message in a message is bytes. Errors stick in the dt_str.
 * Threads: any.
 */
#ifndef DTRAIN_CORE_EXPORT_PROTOBUF_H
#define DTRAIN_CORE_EXPORT_PROTOBUF_H

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

static inline void dt_pb_float(dt_str *out, uint32_t field, float v)
{
    dt_pb_tag(out, field, 5);
    dt_str_add_n(out, (const char *)&v, sizeof(v)); /* little endian, as the host is */
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

/* The message is put into out and is empty afterwards, ready for the next one. */
static inline void dt_pb_message(dt_str *out, uint32_t field, dt_str *message)
{
    dt_pb_bytes(out, field, dt_str_text(message), message->bytes);
    out->failed = out->failed || message->failed;
    dt_str_clear(message);
}

#endif
