/* SPDX-License-Identifier: Apache-2.0
 *
 * Every row of docs/reference/recording-files.md: elements.txt has the files of each table and a change to them for
 * each element. What is read changes the store or what is said of it, what is skipped changes nothing that is stored,
 * what is rejected is rejected. The tables of the page and of elements.txt have the same rows.
 */
#include "documented.h"
#include "import_rig.h"

enum { LINE_BYTES = 4096, KEY_BYTES = 160 };

typedef struct section {
    char title[KEY_BYTES], source[64], map[64], types[64];
    double rate;
    dt_str files;
} section;

/* One import of the files of a section, with `from` replaced by `to`; from NULL: as they are. */
static dt_status import_files(const section *s, const char *from, const char *to)
{
    dt_str text = {0};
    char map[1100] = "", types[1100] = "";
    const char *begin = dt_str_text(&s->files), *found = from == NULL ? NULL : strstr(begin, from);
    assert_true(from == NULL || found != NULL);
    dt_str_add_n(&text, begin, found == NULL ? strlen(begin) : (size_t)(found - begin));
    dt_str_add(&text, found == NULL ? "" : to);
    dt_str_add(&text, found == NULL ? "" : found + strlen(from));
    assert_ok(dt_fs_remove_tree(at("in")));
    for (const char *p = strstr(dt_str_text(&text), "@@ "); p != NULL;) {
        char name[128] = "in/";
        const size_t bytes = strcspn(p + 3, "\n");
        assert_true(bytes < sizeof(name) - 4);
        memcpy(name + 3, p + 3, bytes);
        const char *body = p + 3 + bytes + 1, *next = strstr(body, "\n@@ ");
        dt_str dir = {0};
        dt_str_add_n(&dir, name, (size_t)(strrchr(name, '/') - name));
        assert_ok(dt_fs_mkdirs(at(dt_str_text(&dir))));
        put_bytes(name, body, next == NULL ? strlen(body) : (size_t)(next + 1 - body));
        dt_str_fini(&dir);
        p = next == NULL ? NULL : next + 1;
    }
    dt_str_fini(&text);
    snprintf(map, sizeof(map), "%s/in/%s", top, s->map);
    snprintf(types, sizeof(types), "%s/in/%s", top, s->types);
    char source[128];
    snprintf(source, sizeof(source), "in/%s", s->source);
    return import_with(source, &(dt_import_options){.frame_rate_hz = s->rate,
                                                    .map = s->map[0] != '\0' ? map : NULL,
                                                    .types = s->types[0] != '\0' ? types : NULL});
}

static uint64_t stored(void)
{
    assert_ok(dt_store_open(at("s"), &store));
    return documented_print(store);
}

/* "\n" and "\\" in place. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '\\' && p[1] != '\0') {
            p++;
            *to++ = *p == 'n' ? '\n' : *p;
        } else {
            *to++ = *p;
        }
    }
    *to = '\0';
}

/* outcome, element, from, to, words */
static bool check_row(const section *s, char *line, uint64_t plain, documented *page)
{
    char *cell[5] = {NULL}, *rest = line;
    int n = 0;
    while (rest != NULL && n < 5) {
        cell[n] = strsep(&rest, "\t");
        unescape(cell[n++]);
    }
    assert_true(n >= 4);
    documented_mark(page, s->title, cell[1], cell[0]);
    const dt_status st = import_files(s, cell[2], cell[3]);
    const bool is_rejected = st != DT_OK;
    const char *said = is_rejected ? dt_error_text() : dt_str_text(&report);
    const bool is_said = cell[4] == NULL || strstr(said, cell[4]) != NULL;
    bool is_right = st == DT_EDATA || st == DT_EINVAL || st == DT_ECONFIG;
    if (strcmp(cell[0], "rejected") == 0) {
        is_right &= cell[4] != NULL && is_said;
    } else if (strcmp(cell[0], "skipped") == 0) {
        is_right = !is_rejected && is_said && stored() == plain;
    } else {
        assert_string_equal(cell[0], "read");
        is_right = cell[4] != NULL ? is_said : !is_rejected && stored() != plain;
    }
    if (!is_right) {
        print_error("%s: %s is not %s: %s \"%s\"\n", s->title, cell[1], cell[0], dt_status_name(st), said);
    }
    return is_right;
}

static void read_options(section *s, char *line)
{
    for (char *word = strtok(line, " "); word != NULL; word = strtok(NULL, " ")) {
        if (strncmp(word, "source=", 7) == 0) {
            snprintf(s->source, sizeof(s->source), "%.60s", word + 7);
        } else if (strncmp(word, "map=", 4) == 0) {
            snprintf(s->map, sizeof(s->map), "%.60s", word + 4);
        } else if (strncmp(word, "types=", 6) == 0) {
            snprintf(s->types, sizeof(s->types), "%.60s", word + 6);
        } else {
            assert_true(sscanf(word, "rate=%lf", &s->rate) == 1);
        }
    }
}

static void test_rows(void **state)
{
    section s = {.rate = 0};
    char path[1100], line[LINE_BYTES];
    uint64_t plain = 0;
    int rows = 0, wrong = 0;
    documented *page = documented_read();
    snprintf(path, sizeof(path), "%s/tests/traffic/elements.txt", documented_tree());
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    while (fgets(line, sizeof(line), in) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '=') {
            dt_str_fini(&s.files);
            s = (section){.rate = 0};
            snprintf(s.title, sizeof(s.title), "%.150s", line + 2);
        } else if (line[0] == ':') {
            read_options(&s, line + 2);
        } else if (line[0] == '>') {
            dt_str_addf(&s.files, "%s\n", line + 2);
        } else if (line[0] == '-') {
            if (plain == 0) {
                assert_ok(import_files(&s, NULL, NULL));
                plain = stored();
            }
            wrong += !check_row(&s, line + 2, plain, page);
            rows++;
        }
        plain = line[0] == '-' ? plain : 0;
    }
    fclose(in);
    dt_str_fini(&s.files);
    assert_int_equal(wrong, 0);
    assert_true(rows > 300);
    documented_finish(page, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rows, begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
