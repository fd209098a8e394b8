/* SPDX-License-Identifier: Apache-2.0
 *
 * What every harness of this folder is made of. A harness is one function that gets the bytes of one input and hands
 * them to the very function that the program reads such files by; `make fuzz` builds it alone, with libFuzzer and the
 * sanitizers, and replay.c, a test, feeds the corpora and all inputs that were ever found to it in every build.
 *
 * A harness states what must hold of what was read, whatever wrote it: fuzz_hold ends the process when it does not. It
 * keeps nothing from one input to the next, writes no files and prints nothing.
 */
#ifndef DTRAIN_TESTS_FUZZ_FUZZ_H
#define DTRAIN_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* DT_FUZZ(config) { ... }: the harness of fuzz_config.c, of (const uint8_t *bytes, size_t n). */
#ifdef DT_FUZZ_ALONE
#    define DT_FUZZ_NAME(name) LLVMFuzzerTestOneInput
#else
#    define DT_FUZZ_NAME(name) fuzz_##name
#endif
#define DT_FUZZ(name)                                                                                                  \
    int DT_FUZZ_NAME(name)(const uint8_t *bytes, size_t n);                                                            \
    int DT_FUZZ_NAME(name)(const uint8_t *bytes, size_t n)

/* One statement of a harness. */
#define fuzz_hold(what) ((what) ? (void)0 : fuzz_broken(#what, __FILE__, __LINE__))
void fuzz_broken(const char *what, const char *file, int line) __attribute__((noreturn));

/* What the host allocated since fuzz_begin is freed when fuzz_end is called. */
void fuzz_begin(void);
void fuzz_end(void);

/* The input was accepted, and what was read of it looked at. replay wants a seed of which that is true from every
 * harness: one that refuses everything tests nothing. */
void fuzz_accepted(void);
size_t fuzz_n_accepted(void);

/* Reads every byte, so that a sanitizer sees one that does not belong to any object. */
void fuzz_touch(const void *p, size_t bytes);
/* The same for text. */
void fuzz_touch_text(const char *text);

/* Is this one of the inputs that go the long way, which takes a hundred times as long as to be refused? Of those that
 * a fuzzer makes one in eight, always the same ones; of others all. */
int fuzz_is_chosen(const uint8_t *bytes, size_t n);

/* Files that there are while a harness runs: fuzz_file adds one (the bytes live on, names are compared whole), and the
 * host's dt_fs_read_all, dt_fs_read_any, dt_fs_map and dt_fs_is_file find those and no others, as the harnesses are
 * linked (local.mk: --wrap). */
void fuzz_file(const char *name, const void *bytes, size_t n);
void fuzz_no_files(void);
/* Until it is called with 0, they find those on the disk: for a harness that lets the host write what it changes. */
void fuzz_real_files(int are);

/* An input of several texts, with a line "----" between them: the next one, NUL-terminated in a buffer of its own size
 * that fuzz_end frees; NULL when there is no other. *at begins at 0. */
/* Inputs that are longer than a fuzzer makes them: "repeat N\n", then a head, a body and a tail, texts as of
 * fuzz_text, are the head, N times the body and the tail, up to a megabyte: what crosses the borders of blocks and
 * buffers. Any other input is itself. The result stays until fuzz_end. */
const uint8_t *fuzz_expand(const uint8_t *bytes, size_t n, size_t *n_p);
char *fuzz_text(const uint8_t *bytes, size_t n, size_t *at);

#endif
