/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension "dtrain.verbs/1" of a plugin or a component: verbs of the command line that it adds, `dtrain NAME FORM
 * WORD...`. The host parses the command line, prints help, completes, reads the configuration sections of the verb, and
 * maps the status to an exit code (dtrain/status.h); the plugin does the work. --config, --set, --json, --quiet,
 * --verbose and --help are the host's and need no row. The extension is a const dt_verb *const *, NULL at the end.
 * Threads: every function [main].
 */
#ifndef DTRAIN_EXT_VERBS_H
#define DTRAIN_EXT_VERBS_H

#include "dtrain/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_EXT_VERBS "dtrain.verbs/1"

typedef struct dt_verb_call dt_verb_call;

/* Shell completion of a value or a word. */
enum { DT_COMPLETE_NONE, DT_COMPLETE_FILE, DT_COMPLETE_FOLDER, DT_COMPLETE_CHOICE /* of a value "A|B" */ };

/* An option of the command line. The table ends with name == NULL. */
typedef struct dt_verb_option {
    const char *name;  /* "out": --out; letters, digits and '-' */
    const char *value; /* placeholder of its value in help, such as "FILE"; NULL: the option is a flag */
    const char *help;  /* one sentence */
    uint32_t letter;   /* 'o': -o is the same; 0: none */
    uint32_t flags;    /* DT_VERB_OPTION_* */
    uint32_t complete; /* DT_COMPLETE_*, of the value */
    uint32_t reserved;
} dt_verb_option;
enum { DT_VERB_OPTION_REQUIRED = 1u };

/* A section of the configuration that the verb reads: --config FILE and --set NAME.KEY=VALUE reach it. The table ends
 * with name == NULL. Names must differ from those of the host's sections and of all components. */
typedef struct dt_verb_section {
    const char *name;
    const dt_option *options;
} dt_verb_section;

/* One way to call the verb. The table ends with run == NULL. */
typedef struct dt_verb_form {
    const char *name;              /* "import": the first word after the verb; "": the verb has this form alone */
    const char *words;             /* the words that follow, for help: "SRC...", "" for none */
    const char *help;              /* one line */
    const dt_verb_option *options; /* NULL: none */
    uint32_t complete;             /* DT_COMPLETE_*, of the words */
    uint32_t min_words, max_words; /* how many words follow; at most DT_VERB_MAX_WORDS */
    uint32_t reserved;
    /* Negative: an error, whose reason h->fail recorded; the exit code follows from the status. */
    dt_status (*run)(const dt_host *h, const dt_verb_call *c);
} dt_verb_form;
enum { DT_VERB_MAX_WORDS = 1024 };

typedef struct dt_verb {
    uint32_t struct_size, reserved;
    const char *name;     /* [a-z][a-z0-9_]*; verbs of the host, and of plugins opened before it, take precedence */
    const char *summary;  /* one line */
    const char *examples; /* lines of help, "  dtrain data import a.csv --out a\n"; NULL: none */
    const dt_verb_form *forms;
    const dt_verb_section *sections; /* NULL: none */
} dt_verb;

/* Arguments of a form. Everything is valid until run returns. */
struct dt_verb_call {
    uint32_t struct_size, n_words;
    void *priv;
    const char *const *word; /* [n_words] those after the form's name */
    const char *form;        /* its name */
    uint8_t json, quiet, verbose, reserved;
    uint32_t cores; /* that this process may use, at least 1 */
    /* Value of an option of this form; "" of a flag that was given; NULL: not given. */
    const char *(*option)(const dt_verb_call *c, const char *name);
    /* A section as its options describe it, into a struct of bytes bytes. DT_ECONFIG. */
    dt_status (*section)(const dt_verb_call *c, const char *name, void *out, uint64_t bytes);
    /* Text to standard output, with control characters masked. */
    void (*print)(const dt_verb_call *c, const char *text);
    /* The live line on a terminal, NULL to end it; left_s: time left in s, negative when unknown. --quiet: nothing. */
    void (*progress)(const dt_verb_call *c, const char *text, double left_s);
    /* is_on 1: from now on the first SIGINT or SIGTERM only requests a stop, and stop returns its number; a second one
     * ends the program. 0, as at the beginning: the first one does. The exit code is 128 + number, or 75 when run
     * returns DT_EINTERRUPTED: what was done is saved, and the same command continues. */
    void (*catch_signals)(const dt_verb_call *c, uint8_t is_on);
    int32_t (*stop)(const dt_verb_call *c); /* [any] number of the received signal; 0: none */
};

#ifdef __cplusplus
}
#endif
#endif
