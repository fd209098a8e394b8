/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading JSON whose layout is known: typed values and loops over keys, on top of base/json.h. Every refusal names
 * file, line, column and key. Used by the store and the recording readers. Threads: one reader, one thread.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_JSON_READER_H
#define DTRAIN_PLUGINS_TRAFFIC_JSON_READER_H

#include "traffic/text/values.h"
#include "base/json.h"

enum { DT_IN_KEY_BYTES = 64 };

/* Expect the start of an object or array. */
dt_status dt_expect_object(dt_json *j, const char *what) DT_NODISCARD;
dt_status dt_expect_array(dt_json *j, const char *what) DT_NODISCARD;
/* The next key of the open object, DT_DONE at its end. A key longer than the buffer is skipped with its value. */
dt_status dt_expect_key(dt_json *j, char key[DT_IN_KEY_BYTES]) DT_NODISCARD;
/* The same for objects whose keys are known: the number of the next key among names (NULL ends), others are skipped
 * with their values. seen: 0 at first. A key that is given twice is DT_EDATA: either value could be meant. */
dt_status dt_expect_known_key(dt_json *j, const char *const *names, uint32_t *seen, int *which_p) DT_NODISCARD;
/* Typed values. null_p NULL: null is refused; else *null_p is set, and the value is untouched. */
dt_status dt_expect_f64(dt_json *j, const char *what, double *out_p, bool *null_p) DT_NODISCARD;
dt_status dt_expect_i64(dt_json *j, const char *what, int64_t *out_p) DT_NODISCARD;
/* The id of a vehicle: an integer or a text, by the rules of dt_ids. */
dt_status dt_expect_id(dt_json *j, const char *what, dt_ids *ids, int64_t *out_p) DT_NODISCARD;
dt_status dt_expect_bool(dt_json *j, const char *what, bool *out_p) DT_NODISCARD;
dt_status dt_expect_str(dt_json *j, const char *what, char *out, size_t bytes) DT_NODISCARD; /* refuses a longer one */
/* Inside an array of objects: DT_OK at the start of the next object, DT_DONE at the end of the array. */
dt_status dt_expect_next_object(dt_json *j, const char *what) DT_NODISCARD;
dt_status dt_expect_next_str(dt_json *j, const char *what, char *out, size_t bytes)
    DT_NODISCARD;                                                                       /* the same for strings */
dt_status dt_expect_next_f64(dt_json *j, const char *what, double *out_p) DT_NODISCARD; /* for numbers */
/* Only the end of the document may follow. */
dt_status dt_expect_end(dt_json *j) DT_NODISCARD;

const char *dt_expect_kind(dt_json_kind kind); /* "an object", "a string", ... */

#endif
