/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes dtrain(1) or the completion for a shell to standard output: cli_doc man|bash|zsh|fish. It runs on the build
 * machine while dtrain is built, so cross builds have them all; the tables are cli_table.h, nothing is said twice.
 */
#include <config.h>

#include "cli/cli_table.h"
#include "cli/roff.h"

#include <stdio.h>
#include <string.h>

static void man_option(const option *o)
{
    printf(".TP\n.B ");
    if (o->letter != 0) {
        printf("\\-%c, ", o->letter);
    }
    dt_roff("--");
    dt_roff(o->name);
    if (o->value != NULL) {
        putchar(' ');
        dt_roff(o->value);
    }
    putchar('\n');
    dt_roff(o->help);
    putchar('\n');
    if (o->verbs != V_ALL) { /* for which verbs */
        const char *between = "For ";
        for (int i = 0; i < N_VERBS; i++) {
            if ((o->verbs & verbs[i].bit) != 0) {
                printf("%s%s", between, verbs[i].name);
                between = ", ";
            }
        }
        puts(".");
    }
}

static void man_pairs(const char *title, const later *pair, size_t n)
{
    printf(".SH %s\n", title);
    for (size_t i = 0; i < n; i++) {
        puts(".TP");
        printf(".B ");
        dt_roff(pair[i].verb);
        putchar('\n');
        dt_roff(pair[i].text);
        putchar('\n');
    }
}

static void man(void)
{
    printf(".TH DTRAIN 1 \"\" \"dtrain %s\" \"User Commands\"\n", PACKAGE_VERSION);
    puts(".SH NAME\ndtrain \\- train in phases that are loaded as plugins\n.SH SYNOPSIS");
    puts(".B dtrain \\-\\-plugin\n.I FILE_OR_ID\n[options]\n.br\n.B dtrain \\-\\-config\n.I FILE\n[options]\n.br");
    puts(".B dtrain\n.I VERB\n[words] [options]\n.SH VERBS\nWithout one, the verb is run.");
    for (int i = 0; i < N_VERBS; i++) {
        printf(".TP\n.B %s ", verbs[i].name);
        dt_roff(verbs[i].words);
        putchar('\n');
        dt_roff(verbs[i].summary);
        putchar('\n');
    }
    puts(".SH OPTIONS");
    for (int i = 0; i < N_OPTIONS; i++) {
        man_option(&options[i]);
    }
    man_pairs("EXIT STATUS", exit_codes, sizeof(exit_codes) / sizeof(exit_codes[0]));
    man_pairs("ENVIRONMENT", variables, sizeof(variables) / sizeof(variables[0]));
    man_pairs("FILES", files, sizeof(files) / sizeof(files[0]));
    puts(".SH EXAMPLES\n.nf");
    for (int i = 0; i < N_VERBS; i++) {
        dt_roff(verbs[i].examples);
    }
    puts(".fi");
}

static void bash(void)
{
    puts("# completion of dtrain for bash; made from the program's own tables\n_dtrain()\n{\n"
         "    local cur=${COMP_WORDS[COMP_CWORD]} verb=run words\n"
         "    COMPREPLY=()\n"
         "    case ${COMP_WORDS[1]} in");
    for (int i = 0; i < N_VERBS; i++) {
        printf("        %s) verb='%s' ;;\n", verbs[i].name, verbs[i].name);
    }
    puts("    esac\n    case $verb in");
    for (int i = 0; i < N_VERBS; i++) {
        printf("        %s) words='", verbs[i].name);
        for (int k = 0; k < N_OPTIONS; k++) {
            if ((options[k].verbs & verbs[i].bit) != 0) {
                printf("--%s ", options[k].name);
            }
        }
        puts("' ;;");
    }
    printf("    esac\n    if [[ $COMP_CWORD -eq 1 && $cur != -* ]]; then\n        words='");
    for (int i = 0; i < N_VERBS; i++) {
        printf("%s ", verbs[i].name);
    }
    puts("'\n    elif [[ $cur != -* ]]; then\n        return # files\n    fi\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n}\n"
         "complete -o default -F _dtrain dtrain");
}

/* ---- zsh --------------------------------------------------------------------------------------------------------- */

/* Text between single quotes, with a backslash before every one of `marks`. */
static void quoted(const char *text, const char *marks)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            fputs("'\\''", stdout);
            continue;
        }
        if (strchr(marks, *text) != NULL) {
            putchar('\\');
        }
        putchar(*text);
    }
}

/* A specification of _arguments: '(-c --config)'{-c+,--config=}'[help]:FILE:_files'. */
static void zsh_option(const option *o)
{
    const char *before = o->kind == A_REPEAT ? "*" : "";
    const char *after = o->kind == A_FLAG || o->kind == A_OPTIONAL ? "" : "=";
    printf("                ");
    if (o->letter != 0) {
        printf("%s{-%c%s,--%s%s}'[", o->kind == A_REPEAT ? "'*'" : "", o->letter, o->kind == A_FLAG ? "" : "+", o->name,
               after);
    } else {
        printf("'%s--%s%s[", before, o->name, after);
    }
    quoted(o->help, "[]\\");
    putchar(']');
    if (o->kind != A_FLAG) {
        fputs(o->kind == A_OPTIONAL ? "::" : ":", stdout);
        quoted(o->value, ":\\");
        fputs(":_files", stdout);
    }
    puts("' \\");
}

static void zsh(void)
{
    puts("#compdef dtrain\n# completion of dtrain for zsh; made from the program's own tables\n_dtrain()\n{\n"
         "    local verb=run\n    local -a verbs=(");
    for (int i = 0; i < N_VERBS; i++) {
        printf("        '%s:", verbs[i].name);
        quoted(verbs[i].summary, "\\");
        puts("'");
    }
    puts("    )\n    if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n        _describe -t verbs verb verbs\n"
         "        return\n    fi\n    if [[ -n ${verbs[(r)$words[2]:*]} ]]; then\n        verb=$words[2]\n    fi\n"
         "    case $verb in");
    for (int i = 0; i < N_VERBS; i++) {
        printf("        %s)\n            _arguments -s \\\n", verbs[i].name);
        for (int k = 0; k < N_OPTIONS; k++) {
            if ((options[k].verbs & verbs[i].bit) != 0) {
                zsh_option(&options[k]);
            }
        }
        puts("                '*:file:_files' ;;");
    }
    puts("    esac\n}\n_dtrain \"$@\"");
}

/* ---- fish -------------------------------------------------------------------------------------------------------- */

static void fish_text(const char *text)
{
    putchar('\'');
    for (; *text != '\0'; text++) {
        if (*text == '\'' || *text == '\\') {
            putchar('\\');
        }
        putchar(*text);
    }
    putchar('\'');
}

static void fish_option(const option *o)
{
    printf("complete -c dtrain");
    if (o->verbs != V_ALL) {
        printf(" -n '__dtrain_verb_is");
        for (int i = 0; i < N_VERBS; i++) {
            if ((o->verbs & verbs[i].bit) != 0) {
                printf(" %s", verbs[i].name);
            }
        }
        putchar('\'');
    }
    printf(" -l %s", o->name);
    if (o->letter != 0) {
        printf(" -s %c", o->letter);
    }
    printf("%s -d ", o->kind == A_VALUE || o->kind == A_REPEAT ? " -r" : "");
    fish_text(o->help);
    putchar('\n');
}

static void fish(void)
{
    puts("# completion of dtrain for fish; made from the program's own tables\n"
         "# is the verb of the line, which is run where none is said, one of these\nfunction __dtrain_verb_is\n"
         "    set -l words (commandline -opc)\n    set -l verb run");
    printf("    if set -q words[2]; and contains -- $words[2]");
    for (int i = 0; i < N_VERBS; i++) {
        printf(" %s", verbs[i].name);
    }
    puts("\n        set verb $words[2]\n    end\n    contains -- $verb $argv\nend");
    for (int i = 0; i < N_VERBS; i++) {
        printf("complete -c dtrain -n 'test (count (commandline -opc)) -eq 1' -f -a %s -d ", verbs[i].name);
        fish_text(verbs[i].summary);
        putchar('\n');
    }
    for (int k = 0; k < N_OPTIONS; k++) {
        fish_option(&options[k]);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*write)(void);
    } kind[] = {{"man", man}, {"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    for (size_t i = 0; i < sizeof(kind) / sizeof(kind[0]); i++) {
        if (argc == 2 && strcmp(argv[1], kind[i].name) == 0) {
            kind[i].write();
            return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
        }
    }
    fputs("usage: cli_doc man|bash|zsh|fish\n", stderr);
    return 2;
}
