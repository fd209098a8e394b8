/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes dtrain(1) or the completion for bash to standard output: cli_doc man|bash. It runs on the build machine while
 * dtrain is built, so cross builds have both; the tables are cli_table.h, nothing is said twice.
 */
#include <config.h>

#include "cli/cli_table.h"

#include <stdio.h>
#include <string.h>

/* Text for roff: no escape, no request at the beginning of a line, and hyphens that can be copied. */
static void roff(const char *text)
{
    for (bool begins = true; *text != '\0'; begins = *text++ == '\n') {
        if (begins && (*text == '.' || *text == '\'')) {
            fputs("\\&", stdout);
        }
        if (*text == '\\') {
            fputs("\\e", stdout);
        } else if (*text == '-') {
            fputs("\\-", stdout);
        } else {
            putchar(*text);
        }
    }
}

static void man_option(const option *o)
{
    printf(".TP\n.B ");
    if (o->letter != 0) {
        printf("\\-%c, ", o->letter);
    }
    roff("--");
    roff(o->name);
    if (o->value != NULL) {
        putchar(' ');
        roff(o->value);
    }
    putchar('\n');
    roff(o->help);
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
        roff(pair[i].verb);
        putchar('\n');
        roff(pair[i].text);
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
        roff(verbs[i].words);
        putchar('\n');
        roff(verbs[i].summary);
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
        roff(verbs[i].examples);
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

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "man") == 0) {
        man();
    } else if (argc == 2 && strcmp(argv[1], "bash") == 0) {
        bash();
    } else {
        fputs("usage: cli_doc man|bash\n", stderr);
        return 2;
    }
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
