/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes dtrain(1) or the completion for a shell to standard output: cli_doc man|bash|zsh|fish. The tables are
 * cli_table.h and those of plugins that are linked into the program, nothing is said twice. What changes with plugins
 * and folders is asked of the program itself: dtrain --complete KIND PREFIX (complete.c).
 */
#include <config.h>

#include "cli/cli_table.h"

#include "base/exit.h"
#include "cli/roff.h"
#include "plugin/loader/loader.h"

#include <stdio.h>
#include <string.h>

/* KIND of dtrain --complete; NULL: the program is not asked. */
static const char *completion_kind(int complete)
{
    static const char *const kind[] = {
        [DT_CLI_WORD_ID] = "ids",   [DT_CLI_WORD_PHASE] = "phases",     [DT_CLI_WORD_ENV] = "envs",
        [DT_CLI_WORD_RUN] = "runs", [DT_CLI_WORD_PROFILE] = "profiles", [DT_CLI_WORD_SET] = "set"};
    return (size_t)complete < sizeof(kind) / sizeof(kind[0]) ? kind[complete] : NULL;
}

/* "safetensors|onnx": each of them, and a blank. "cuda[:i]" is offered as cuda. */
static void print_choices(const char *value)
{
    while (*value != '\0') {
        const size_t all = strcspn(value, "|"), bytes = strcspn(value, "|[");
        printf("%.*s ", (int)bytes, value);
        value += all + (value[all] != '\0');
    }
}

static int is_option_of_verb(const dt_cli_option *o, int v)
{
    return (o->forms & dt_cli_forms_of(v)) != 0;
}

/* Of several rows of a verb the first one offers. */
static int is_first_row_of_verb(int k, int v)
{
    for (int i = 0; i < k; i++) {
        if (is_option_of_verb(&dt_cli_options[i], v) && strcmp(dt_cli_options[i].name, dt_cli_options[k].name) == 0) {
            return 0;
        }
    }
    return is_option_of_verb(&dt_cli_options[k], v);
}

/* ---- manual page ------------------------------------------------------------------------------------------------- */

static void write_man_option(const dt_cli_option *o, int v)
{
    const uint64_t all = dt_cli_forms_of(v);
    const char *between = "";
    printf(".TP\n");
    if (o->letter != 0) {
        printf("\\fB\\-%c\\fR, ", o->letter);
    }
    printf("\\fB");
    dt_roff("--");
    dt_roff(o->name);
    printf("\\fR");
    if (o->value != NULL) {
        printf(" \\fI");
        dt_roff(o->value);
        printf("\\fR");
    }
    putchar('\n');
    for (int f = 0; f < dt_cli_n_forms && (o->forms & all) != all; f++) {
        if ((o->forms & all & (UINT64_C(1) << f)) != 0 && dt_cli_forms[f].name[0] != '\0') {
            printf("%s%s", between, dt_cli_forms[f].name);
            between = ", ";
        }
    }
    printf("%s", between[0] != '\0' ? ": " : "");
    dt_roff(o->help);
    putchar('\n');
}

static void write_man_form(const dt_cli_form *f)
{
    printf("\\fBdtrain %s%s%s\\fR", dt_cli_verbs[f->verb].name, f->name[0] != '\0' ? " " : "", f->name);
    if (f->words[0] != '\0') {
        printf(" \\fI");
        dt_roff(f->words);
        printf("\\fR");
    }
    puts(dt_cli_verbs[f->verb].has_rest ? " [options] \\-\\- \\fIARGS\\fR" : " [options]");
}

static void write_man_verb(int v)
{
    printf(".SS %s\n", dt_cli_verbs[v].name);
    dt_roff(dt_cli_verbs[v].summary);
    puts("");
    for (int f = 0; f < dt_cli_n_forms; f++) {
        if (dt_cli_forms[f].verb == v) {
            puts(".TP");
            write_man_form(&dt_cli_forms[f]);
            dt_roff(dt_cli_forms[f].help);
            puts("");
        }
    }
    for (int k = 0; dt_cli_options[k].name != NULL; k++) {
        if (is_option_of_verb(&dt_cli_options[k], v) && dt_cli_options[k].forms != DT_CLI_ALL_FORMS) {
            write_man_option(&dt_cli_options[k], v);
        }
    }
    puts(".PP\nExamples:\n.PP\n.nf");
    dt_roff(dt_cli_verbs[v].examples);
    puts(".fi");
}

static void write_man_pair(const char *name, const char *text)
{
    printf(".TP\n.B ");
    dt_roff(name);
    putchar('\n');
    dt_roff(text);
    putchar('\n');
}

static void write_man_pairs(const char *title, const dt_cli_pair *pair)
{
    printf(".SH %s\n", title);
    for (; pair->name != NULL; pair++) {
        write_man_pair(pair->name, pair->text);
    }
}

static void write_man_exit_codes(void)
{
    puts(".SH EXIT STATUS");
    for (int i = 0; i < DT_EXIT_ROWS; i++) {
        char code[12];
        snprintf(code, sizeof(code), "%d", dt_exit_rows[i].code);
        write_man_pair(code, dt_exit_rows[i].meaning);
    }
    write_man_pair("128+n", "killed by signal n");
}

static void write_man_page(void)
{
    printf(".TH DTRAIN 1 \"\" \"dtrain %s\" \"User Commands\"\n", PACKAGE_VERSION);
    puts(".nh\n.ad l\n.SH NAME\ndtrain \\- train in phases that are loaded as plugins\n.SH SYNOPSIS");
    puts(".B dtrain \\-\\-plugin\n.I FILE_OR_ID\n[options]\n.br\n.B dtrain \\-\\-config\n.I FILE\n[options]\n.br");
    puts(".B dtrain\n.I VERB\n[words] [options]\n.SH OPTIONS\nThese are options of every verb. The others follow with "
         "their verbs.");
    for (int k = 0; dt_cli_options[k].name != NULL; k++) {
        if (dt_cli_options[k].forms == DT_CLI_ALL_FORMS) {
            write_man_option(&dt_cli_options[k], DT_CLI_RUN);
        }
    }
    puts(".SH VERBS\nWithout one, the verb is run.");
    for (int v = 0; v < dt_cli_n_verbs; v++) {
        write_man_verb(v);
    }
    write_man_exit_codes();
    write_man_pairs("ENVIRONMENT", dt_cli_variables);
    write_man_pairs("FILES", dt_cli_files);
    puts(".SH SEE ALSO\n.BR dtrain.cfg (5),\n.BR libdtrain\\-policy (3)");
}

/* ---- bash -------------------------------------------------------------------------------------------------------- */

static void write_bash_completion_of(int complete, const char *value)
{
    if (completion_kind(complete) != NULL) {
        printf("_dtrain_ask %s \"$cur\"", completion_kind(complete));
    } else if (complete == DT_CLI_WORD_CHOICE) {
        printf("_dtrain_words '");
        print_choices(value);
        printf("' \"$cur\"");
    } else if (complete == DT_CLI_WORD_FOLDER) {
        printf("_dtrain_folders \"$cur\"");
    } else {
        printf("%s", complete == DT_CLI_WORD_FILE ? "return" : ":");
    }
}

static void write_bash_values(int v)
{
    printf("        %s) case $option in\n", dt_cli_verbs[v].name);
    for (int k = 0; dt_cli_options[k].name != NULL; k++) {
        const dt_cli_option *o = &dt_cli_options[k];
        if (!is_first_row_of_verb(k, v) || o->kind == DT_CLI_FLAG || o->complete == DT_CLI_WORD_FILE) {
            continue;
        }
        printf("            --%s", o->name);
        if (o->letter != 0) {
            printf("|-%c", o->letter);
        }
        printf(") ");
        write_bash_completion_of(o->complete, o->value);
        puts("; return ;;");
    }
    puts("            esac ;;");
}

static void write_bash_words(int v)
{
    printf("        %s) ", dt_cli_verbs[v].name);
    if (dt_cli_has_forms(v)) {
        printf("if [[ $place -eq 0 ]]; then _dtrain_words '");
        for (int f = 0; f < dt_cli_n_forms; f++) {
            printf("%s%s", dt_cli_forms[f].verb == v ? dt_cli_forms[f].name : "", dt_cli_forms[f].verb == v ? " " : "");
        }
        puts("' \"$cur\"; else case $form in");
        for (int f = 0; f < dt_cli_n_forms; f++) {
            if (dt_cli_forms[f].verb == v && dt_cli_forms[f].complete != DT_CLI_WORD_FILE) {
                printf("            %s) ", dt_cli_forms[f].name);
                write_bash_completion_of(dt_cli_forms[f].complete, "");
                puts(" ;;");
            }
        }
        puts("            esac; fi ;;");
        return;
    }
    for (int f = 0; f < dt_cli_n_forms; f++) {
        if (dt_cli_forms[f].verb == v) {
            write_bash_completion_of(dt_cli_forms[f].complete, "");
            puts(" ;;");
        }
    }
}

static void write_bash_completion(void)
{
    puts("# completion of dtrain for bash; made from the program's own tables\n"
         "_dtrain_words() # words, what was typed\n{\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$2\")\n}\n"
         "_dtrain_folders() # what was typed\n{\n"
         "    compopt -o filenames 2>/dev/null\n    mapfile -t COMPREPLY < <(compgen -d -- \"$1\")\n}\n"
         "# kind, what was typed; bash cuts words at '=', so that a value stands alone\n"
         "_dtrain_ask()\n{\n"
         "    local typed=$2\n"
         "    if [[ $1 == set && ${COMP_WORDS[COMP_CWORD]} == = ]]; then\n"
         "        typed=${COMP_WORDS[COMP_CWORD - 1]}=\n"
         "    elif [[ $1 == set && ${COMP_WORDS[COMP_CWORD - 1]} == = ]]; then\n"
         "        typed=${COMP_WORDS[COMP_CWORD - 2]}=$2\n    fi\n"
         "    mapfile -t COMPREPLY < <(\"${COMP_WORDS[0]}\" --complete \"$1\" \"$typed\" 2>/dev/null)\n"
         "    if [[ $1 == set && $typed == *=* ]]; then\n        COMPREPLY=(\"${COMPREPLY[@]#*=}\")\n"
         "    elif [[ $1 == set ]]; then\n        compopt -o nospace 2>/dev/null\n    fi\n"
         "    if [[ $1 == runs || $1 == ids || $1 == phases ]] && [[ ${#COMPREPLY[@]} -eq 0 ]]; then\n"
         "        compopt -o filenames 2>/dev/null\n        mapfile -t COMPREPLY < <(compgen -f -- \"$2\")\n    fi\n}\n"
         "_dtrain()\n{\n"
         "    local cur=${COMP_WORDS[COMP_CWORD]} verb=run words option place form=''\n    COMPREPLY=()\n"
         "    case ${COMP_WORDS[1]} in");
    for (int v = 0; v < dt_cli_n_verbs; v++) {
        printf("        %s) verb='%s' ;;\n", dt_cli_verbs[v].name, dt_cli_verbs[v].name);
    }
    puts("        ''|-*) ;;\n        *) verb=other ;; # of a plugin\n    esac\n    case $verb in");
    for (int v = 0; v < dt_cli_n_verbs; v++) {
        printf("        %s) words='", dt_cli_verbs[v].name);
        for (int k = 0; dt_cli_options[k].name != NULL; k++) {
            if (is_first_row_of_verb(k, v)) {
                printf("--%s ", dt_cli_options[k].name);
            }
        }
        puts("' ;;");
    }
    puts("    esac\n    if [[ $COMP_CWORD -eq 1 && $cur != -* ]]; then\n        _dtrain_ask verbs \"$cur\"\n"
         "        return\n    fi\n    if [[ $verb == other ]]; then\n"
         "        _dtrain_ask \"verb:${COMP_WORDS[1]}\" \"$cur\"\n        return\n    fi\n"
         "    # the option whose value is typed: before the word, or before '=' and what was cut there\n"
         "    option=${COMP_WORDS[COMP_CWORD - 1]}\n"
         "    if [[ $cur == = ]]; then\n        cur=''\n"
         "        [[ $option == --* ]] || option=${COMP_WORDS[COMP_CWORD - 2]}\n"
         "    elif [[ $option == = ]]; then\n"
         "        option=${COMP_WORDS[COMP_CWORD - 2]}\n"
         "        [[ $option == --* ]] || option=${COMP_WORDS[COMP_CWORD - 3]}\n    fi\n"
         "    case $verb in");
    for (int v = 0; v < dt_cli_n_verbs; v++) {
        write_bash_values(v);
    }
    puts("    esac\n    if [[ $cur == -* ]]; then\n        _dtrain_words \"$words\" \"$cur\"\n        return\n    fi\n"
         "    place=$((COMP_CWORD - 2)) form=${COMP_WORDS[2]}\n    case $verb in");
    for (int v = 0; v < dt_cli_n_verbs; v++) {
        write_bash_words(v);
    }
    puts("    esac\n}\ncomplete -o default -F _dtrain dtrain");
}

/* ---- zsh --------------------------------------------------------------------------------------------------------- */

/* Text between single quotes, with a backslash before every one of `marks`. */
static void print_quoted(const char *text, const char *marks)
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

static void write_zsh_action(int complete, const char *value)
{
    if (complete == DT_CLI_WORD_SET) {
        fputs("_dtrain_set", stdout);
    } else if (completion_kind(complete) != NULL) {
        printf("_dtrain_ask %s", completion_kind(complete));
    } else if (complete == DT_CLI_WORD_CHOICE) {
        putchar('(');
        print_choices(value);
        putchar(')');
    } else if (complete == DT_CLI_WORD_FOLDER) {
        fputs("_files -/", stdout);
    } else {
        fputs(complete == DT_CLI_WORD_FILE ? "_files" : " ", stdout);
    }
}

/* A specification of _arguments: '(-c --config)'{-c+,--config=}'[help]:FILE:_files'. */
static void write_zsh_option(const dt_cli_option *o)
{
    const char *before = o->kind == DT_CLI_REPEAT ? "*" : "";
    const char *after = o->kind == DT_CLI_FLAG || o->kind == DT_CLI_OPTIONAL ? "" : "=";
    printf("                ");
    if (o->letter != 0) {
        printf("%s{-%c%s,--%s%s}'[", o->kind == DT_CLI_REPEAT ? "'*'" : "", o->letter,
               o->kind == DT_CLI_FLAG ? "" : "+", o->name, after);
    } else {
        printf("'%s--%s%s[", before, o->name, after);
    }
    print_quoted(o->help, "[]\\");
    putchar(']');
    if (o->kind != DT_CLI_FLAG) {
        fputs(o->kind == DT_CLI_OPTIONAL ? "::" : ":", stdout);
        print_quoted(o->value, ":\\");
        putchar(':');
        write_zsh_action(o->complete, o->value);
    }
    puts("' \\");
}

static void write_zsh_words(int v)
{
    fputs("                ", stdout);
    if (dt_cli_has_forms(v)) {
        printf("'2:form:(");
        for (int f = 0; f < dt_cli_n_forms; f++) {
            printf("%s%s", dt_cli_forms[f].verb == v ? dt_cli_forms[f].name : "", dt_cli_forms[f].verb == v ? " " : "");
        }
        puts(")' \\\n                '*:word:_dtrain_word' ;;");
        return;
    }
    for (int f = 0; f < dt_cli_n_forms; f++) {
        if (dt_cli_forms[f].verb == v) {
            printf("'*:word:");
            write_zsh_action(dt_cli_forms[f].complete, "");
            puts("' ;;");
        }
    }
}

static void write_zsh_completion(void)
{
    puts("#compdef dtrain\n# completion of dtrain for zsh; made from the program's own tables\n"
         "_dtrain_ask() # kind; where nothing is found, files\n{\n    local -a found\n"
         "    found=(${(f)\"$($words[1] --complete $1 \"$PREFIX\" 2>/dev/null)\"})\n"
         "    (( $#found )) && compadd -a found || _files\n}\n"
         "_dtrain_set()\n{\n    local -a found\n"
         "    found=(${(f)\"$($words[1] --complete set \"$PREFIX\" 2>/dev/null)\"})\n"
         "    compadd -S '' -a found\n}\n"
         "_dtrain_word()\n{\n    case $words[2]-$words[3] in");
    for (int f = 0; f < dt_cli_n_forms; f++) {
        if (dt_cli_forms[f].name[0] != '\0') {
            printf("        %s-%s) ", dt_cli_verbs[dt_cli_forms[f].verb].name, dt_cli_forms[f].name);
            if (completion_kind(dt_cli_forms[f].complete) != NULL || dt_cli_forms[f].complete == DT_CLI_WORD_FOLDER) {
                write_zsh_action(dt_cli_forms[f].complete, "");
            } else {
                fputs("_files", stdout);
            }
            puts(" ;;");
        }
    }
    puts("    esac\n}\n_dtrain()\n{\n    local verb=run\n    local -a verbs=(");
    for (int v = 0; v < dt_cli_n_verbs; v++) {
        printf("        '%s:", dt_cli_verbs[v].name);
        print_quoted(dt_cli_verbs[v].summary, ":\\");
        puts("'");
    }
    puts("    )\n    if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n        _describe -t verbs verb verbs\n"
         "        local -a found\n        found=(${(f)\"$($words[1] --complete verbs \"$PREFIX\" 2>/dev/null)\"})\n"
         "        local name\n        for name in $found; do # of plugins\n"
         "            [[ -n ${verbs[(r)$name:*]} ]] || compadd -- $name\n        done\n        return\n    fi\n"
         "    if [[ -n ${verbs[(r)$words[2]:*]} ]]; then\n        verb=$words[2]\n"
         "    elif [[ -n $words[2] && $words[2] != -* ]]; then\n        _dtrain_ask verb:$words[2]\n        return\n   "
         " fi\n"
         "    case $verb in");
    for (int v = 0; v < dt_cli_n_verbs; v++) {
        printf("        %s)\n            _arguments -s \\\n", dt_cli_verbs[v].name);
        for (int k = 0; dt_cli_options[k].name != NULL; k++) {
            if (is_first_row_of_verb(k, v)) {
                write_zsh_option(&dt_cli_options[k]);
            }
        }
        write_zsh_words(v);
    }
    puts("    esac\n}\n_dtrain \"$@\"");
}

/* ---- fish -------------------------------------------------------------------------------------------------------- */

static void write_fish_text(const char *text)
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

static void write_fish_values(int complete, const char *value)
{
    if (completion_kind(complete) != NULL) {
        printf(" -a '(__dtrain_ask %s)'", completion_kind(complete));
    } else if (complete == DT_CLI_WORD_CHOICE) {
        printf(" -a '");
        print_choices(value);
        putchar('\'');
    } else if (complete == DT_CLI_WORD_FOLDER) {
        printf(" -a '(__fish_complete_directories)'");
    }
}

/* Of several rows of a verb fish would take the last. */
static void write_fish_option(int k)
{
    const dt_cli_option *o = &dt_cli_options[k];
    int n = 0;
    for (int v = 0; v < dt_cli_n_verbs; v++) {
        n += is_first_row_of_verb(k, v);
    }
    if (n == 0) {
        return;
    }
    printf("complete -c dtrain");
    if (o->forms != DT_CLI_ALL_FORMS) {
        printf(" -n '__dtrain_verb_is");
        for (int v = 0; v < dt_cli_n_verbs; v++) {
            if (is_first_row_of_verb(k, v)) {
                printf(" %s", dt_cli_verbs[v].name);
            }
        }
        putchar('\'');
    }
    printf(" -l %s", o->name);
    if (o->letter != 0) {
        printf(" -s %c", o->letter);
    }
    printf("%s -d ", o->kind == DT_CLI_VALUE || o->kind == DT_CLI_REPEAT ? " -r" : "");
    write_fish_text(o->help);
    if (o->kind != DT_CLI_FLAG) {
        write_fish_values(o->complete, o->value);
    }
    putchar('\n');
}

static void write_fish_form(const dt_cli_form *f)
{
    const char *name = dt_cli_verbs[f->verb].name;
    if (f->name[0] != '\0') {
        printf("complete -c dtrain -n '__dtrain_form_is %s' -f -a %s -d ", name, f->name);
        write_fish_text(f->help);
        putchar('\n');
    }
    if (completion_kind(f->complete) != NULL || f->complete == DT_CLI_WORD_FOLDER) {
        printf("complete -c dtrain -n '__dtrain_%s_is %s%s%s'", f->name[0] != '\0' ? "form" : "verb", name,
               f->name[0] != '\0' ? " " : "", f->name);
        write_fish_values(f->complete, "");
        putchar('\n');
    }
}

static void write_fish_completion(void)
{
    puts("# completion of dtrain for fish; made from the program's own tables\n"
         "function __dtrain_ask # kind\n    set -l words (commandline -opc)\n    $words[1] --complete $argv[1] "
         "(string replace -r '^--[a-z-]+=' '' -- (commandline -ct)) 2>/dev/null\nend\n"
         "# is the verb of the line, which is run where none is said, one of these\nfunction __dtrain_verb_is\n"
         "    set -l words (commandline -opc)\n    set -l verb run");
    printf("    if set -q words[2]; and contains -- $words[2]");
    for (int v = 0; v < dt_cli_n_verbs; v++) {
        printf(" %s", dt_cli_verbs[v].name);
    }
    puts("\n        set verb $words[2]\n    else if set -q words[2]; and not string match -q -- '-*' $words[2]\n"
         "        set verb other # of a plugin\n    end\n    contains -- $verb $argv\nend\n"
         "# is the next word the form of this verb; or is this its form\nfunction __dtrain_form_is\n"
         "    set -l words (commandline -opc)\n"
         "    test (count $words) -ge 2; and test \"$words[2]\" = $argv[1]; or return 1\n"
         "    if set -q argv[2]\n        test (count $words) -ge 3; and test \"$words[3]\" = $argv[2]\n    else\n"
         "        test (count $words) -eq 2\n    end\nend");
    for (int v = 0; v < dt_cli_n_verbs; v++) {
        printf("complete -c dtrain -n 'test (count (commandline -opc)) -eq 1' -f -a %s -d ", dt_cli_verbs[v].name);
        write_fish_text(dt_cli_verbs[v].summary);
        putchar('\n');
    }
    puts("complete -c dtrain -n 'test (count (commandline -opc)) -eq 1' -f -a '(__dtrain_ask verbs)'\n"
         "complete -c dtrain -n '__dtrain_verb_is other' -f -a '(__dtrain_ask verb:(commandline -opc)[2])'");
    for (int f = 0; f < dt_cli_n_forms; f++) {
        write_fish_form(&dt_cli_forms[f]);
    }
    for (int k = 0; dt_cli_options[k].name != NULL; k++) {
        write_fish_option(k);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*write)(void);
    } kind[] = {{"man", write_man_page},
                {"bash", write_bash_completion},
                {"zsh", write_zsh_completion},
                {"fish", write_fish_completion}};
    for (int i = 0; dt_builtin_plugins[i] != NULL; i++) {
        const dt_verb *const *v = dt_builtin_plugins[i]->extension(DT_EXT_VERBS);
        for (; v != NULL && *v != NULL; v++) {
            dt_cli_add_verb(*v);
        }
    }
    for (size_t i = 0; i < sizeof(kind) / sizeof(kind[0]); i++) {
        if (argc == 2 && strcmp(argv[1], kind[i].name) == 0) {
            kind[i].write();
            return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
        }
    }
    fputs("usage: cli_doc man|bash|zsh|fish\n", stderr);
    return 2;
}
