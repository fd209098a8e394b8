/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "plugin/loader/elf.h"

#include "base/err.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h> /* ElfW */
#include <stdbool.h>
#include <string.h>

typedef ElfW(Ehdr) ehdr;
typedef ElfW(Phdr) phdr;
typedef ElfW(Shdr) shdr;
typedef ElfW(Dyn) dyn;
typedef ElfW(Sym) sym;
typedef ElfW(Rela) rela;
typedef ElfW(Rel) rel;

#if __ELF_NATIVE_CLASS == 64
#    define R_SYM(i)  ELF64_R_SYM(i)
#    define R_TYPE(i) ELF64_R_TYPE(i)
#    define S_TYPE(i) ELF64_ST_TYPE(i)
#else
#    define R_SYM(i)  ELF32_R_SYM(i)
#    define R_TYPE(i) ELF32_R_TYPE(i)
#    define S_TYPE(i) ELF32_ST_TYPE(i)
#endif

/* relocations that make an address of the object's own: one that is called at once, and one that is only stored */
#if defined(__x86_64__)
enum { CALLED = R_X86_64_IRELATIVE, RELATIVE = R_X86_64_RELATIVE };
#elif defined(__aarch64__)
enum { CALLED = R_AARCH64_IRELATIVE, RELATIVE = R_AARCH64_RELATIVE };
#else
enum { CALLED = -1, RELATIVE = -1 };
#endif

enum { MAX_SEGMENTS = 64, N_TAGS = DT_RELRENT + 1, MAX_VERSION = 0x7fff };

static const char host_anchor[] = "an address inside this program";

typedef struct object {
    const uint8_t *bytes;
    size_t n;
    phdr part[MAX_SEGMENTS];
    uint32_t n_parts;
    uint64_t value[N_TAGS]; /* of the dynamic section's tags */
    bool has[N_TAGS];
    uint64_t gnu_hash, versym, verneed, n_verneed, verdef, n_verdef; /* tags beyond N_TAGS; 0: none */
    uint64_t strings, n_strings, symbols, n_symbols;                 /* offsets in the file, counts */
    uint32_t highest_version;
    uint64_t n_filled[2]; /* entries of the arrays of functions that a relocation fills in */
} object;

static const char not_code[] = "a function that is called when it is opened is outside its code";

static dt_status fail_elf(const char *what)
{
    return DT_FAIL(DT_EPLUGIN, "is damaged: %s; copy or build it again", what);
}

static bool fits_in_limit(uint64_t at, uint64_t bytes, uint64_t limit)
{
    return bytes <= limit && at <= limit - bytes;
}

/* The segment that holds these addresses when it is mapped; file_only: and whose bytes are in the file. */
static const phdr *find_segment(const object *o, uint64_t at, uint64_t bytes, bool file_only)
{
    for (uint32_t i = 0; i < o->n_parts; i++) {
        const phdr *p = &o->part[i];
        if (p->p_type == PT_LOAD && at >= p->p_vaddr &&
            fits_in_limit(at - p->p_vaddr, bytes, file_only ? p->p_filesz : p->p_memsz)) {
            return p;
        }
    }
    return NULL;
}

static bool address_to_file_offset(const object *o, uint64_t at, uint64_t bytes, uint64_t *out)
{
    const phdr *p = find_segment(o, at, bytes, true);
    if (p != NULL) {
        *out = p->p_offset + (at - p->p_vaddr);
    }
    return p != NULL;
}

static bool is_code_address(const object *o, uint64_t at)
{
    const phdr *p = find_segment(o, at, 1, true);
    return p != NULL && (p->p_flags & PF_X) != 0;
}

static uint32_t read_word(const object *o, uint64_t offset)
{
    uint32_t v = 0;
    memcpy(&v, o->bytes + offset, sizeof(v));
    return v;
}

/* ---- headers ----------------------------------------------------------------------------------------------------- */

static dt_status check_header(const object *o, ehdr *h)
{
    ehdr mine;
    Dl_info info;
    if (o->n < sizeof(*h) || memcmp(o->bytes, ELFMAG, SELFMAG) != 0) {
        return DT_FAIL(DT_EPLUGIN, "is not a shared object: invalid ELF header");
    }
    memcpy(h, o->bytes, sizeof(*h));
    if (dladdr(host_anchor, &info) != 0 && info.dli_fbase != NULL) {
        memcpy(&mine, info.dli_fbase, sizeof(mine));
        if (memcmp(mine.e_ident, h->e_ident, EI_VERSION) != 0 || mine.e_machine != h->e_machine) {
            return DT_FAIL(DT_EPLUGIN, "built for machine %u (class %u), this one is %u (class %u); rebuild it here",
                           h->e_machine, h->e_ident[EI_CLASS], mine.e_machine, mine.e_ident[EI_CLASS]);
        }
    }
    if (h->e_type != ET_DYN) {
        return DT_FAIL(DT_EPLUGIN, "is an ELF file of type %u, expected a shared object (%d); link it with -shared",
                       h->e_type, ET_DYN);
    }
    if (h->e_version != EV_CURRENT || h->e_phentsize != sizeof(phdr) || h->e_phnum == 0 || h->e_phnum > MAX_SEGMENTS ||
        (h->e_shnum != 0 && h->e_shentsize != sizeof(shdr))) {
        return fail_elf("its ELF header holds impossible sizes");
    }
    return DT_OK;
}

static dt_status fail_truncated(const object *o, uint64_t need)
{
    return DT_FAIL(DT_EPLUGIN, "is cut off: has %zu bytes of %llu; copy or build it again", o->n,
                   (unsigned long long)need);
}

static uint64_t end_of_range(uint64_t at, uint64_t bytes)
{
    return bytes <= UINT64_MAX - at ? at + bytes : UINT64_MAX;
}

/* The file is as long as its own tables require. */
static dt_status check_length(object *o, const ehdr *h)
{
    uint64_t need = end_of_range(h->e_phoff, (uint64_t)h->e_phnum * sizeof(phdr));
    if (need > o->n) {
        return fail_truncated(o, need);
    }
    o->n_parts = h->e_phnum;
    memcpy(o->part, o->bytes + h->e_phoff, o->n_parts * sizeof(phdr));
    if (h->e_shoff != 0) {
        const uint64_t end = end_of_range(h->e_shoff, (uint64_t)h->e_shnum * sizeof(shdr));
        need = end > need ? end : need;
    }
    for (uint32_t i = 0; i < o->n_parts; i++) {
        const uint64_t end = o->part[i].p_type == PT_LOAD ? end_of_range(o->part[i].p_offset, o->part[i].p_filesz) : 0;
        need = end > need ? end : need;
    }
    return need <= o->n ? DT_OK : fail_truncated(o, need);
}

static bool is_power_of_two(uint64_t v)
{
    return (v & (v - 1)) == 0;
}

static dt_status check_segments(const object *o)
{
    uint64_t end = 0;
    uint32_t n_loads = 0, n_dynamic = 0;
    for (uint32_t i = 0; i < o->n_parts; i++) {
        const phdr *p = &o->part[i];
        if (p->p_type == PT_LOAD) {
            const uint64_t align = p->p_align > 1 ? p->p_align : 1;
            if (p->p_filesz > p->p_memsz || !is_power_of_two(align) || p->p_vaddr % align != p->p_offset % align ||
                p->p_memsz > (uint64_t)1 << 46 || p->p_vaddr > (uint64_t)1 << 46 || (n_loads > 0 && p->p_vaddr < end) ||
                (p->p_flags & PF_R) == 0) {
                return fail_elf("a segment has impossible addresses");
            }
            end = p->p_vaddr + p->p_memsz;
            n_loads++;
        }
        n_dynamic += p->p_type == PT_DYNAMIC;
    }
    for (uint32_t i = 0; i < o->n_parts; i++) {
        const phdr *p = &o->part[i];
        const bool from_file = p->p_type == PT_DYNAMIC || p->p_type == PT_GNU_PROPERTY || p->p_type == PT_NOTE;
        const bool is_followed = from_file || p->p_type == PT_GNU_RELRO || p->p_type == PT_TLS || p->p_type == PT_PHDR;
        if (p->p_type == PT_TLS && (p->p_filesz > p->p_memsz || !is_power_of_two(p->p_align) ||
                                    p->p_memsz > (uint64_t)1 << 40 || p->p_align > (uint64_t)1 << 30)) {
            return fail_elf("its thread-local storage has an impossible size");
        }
        const uint64_t bytes = p->p_type == PT_TLS ? p->p_filesz : p->p_memsz;
        if (is_followed && bytes > 0 && find_segment(o, p->p_vaddr, bytes, from_file) == NULL) {
            return fail_elf("a part of it is outside its segments");
        }
        uint64_t there = p->p_offset;
        if (is_followed && p->p_filesz > 0 &&
            (!address_to_file_offset(o, p->p_vaddr, p->p_filesz, &there) || there != p->p_offset)) {
            return fail_elf("a part of it is at another place in the file than in memory");
        }
    }
    return n_loads > 0 && n_dynamic == 1 ? DT_OK : fail_elf("it has no segments to load, or not one dynamic section");
}

/* Nothing loads by sections, but they repeat what is located where: a damaged segment contradicts them. */
static dt_status check_sections(const object *o, const ehdr *h)
{
    if (h->e_shoff != 0) {
        for (uint32_t i = 0; i < h->e_shnum; i++) {
            shdr s;
            uint64_t at = 0;
            memcpy(&s, o->bytes + h->e_shoff + i * sizeof(s), sizeof(s));
            const bool is_loaded = (s.sh_flags & SHF_ALLOC) != 0 && s.sh_type != SHT_NOBITS && s.sh_size > 0;
            if (is_loaded && (!address_to_file_offset(o, s.sh_addr, s.sh_size, &at) || at != s.sh_offset)) {
                return fail_elf("a section is at another place in the file than in memory");
            }
            if (is_loaded && (s.sh_flags & SHF_EXECINSTR) != 0 && !is_code_address(o, s.sh_addr)) {
                return fail_elf("its code is not executable");
            }
        }
    }
    return DT_OK;
}

/* ---- the dynamic section ----------------------------------------------------------------------------------------- */

static bool is_string_tag(int64_t tag)
{
    return tag == DT_NEEDED || tag == DT_SONAME || tag == DT_RPATH || tag == DT_RUNPATH || tag == DT_AUXILIARY ||
           tag == DT_FILTER || tag == DT_AUDIT || tag == DT_DEPAUDIT || tag == DT_CONFIG;
}

static void store_dynamic_tag(object *o, const dyn *d)
{
    const uint64_t v = d->d_un.d_val;
    uint64_t *const other = d->d_tag == DT_GNU_HASH     ? &o->gnu_hash
                            : d->d_tag == DT_VERSYM     ? &o->versym
                            : d->d_tag == DT_VERNEED    ? &o->verneed
                            : d->d_tag == DT_VERNEEDNUM ? &o->n_verneed
                            : d->d_tag == DT_VERDEF     ? &o->verdef
                            : d->d_tag == DT_VERDEFNUM  ? &o->n_verdef
                                                        : NULL;
    if (other != NULL) {
        *other = v;
    } else if (d->d_tag >= 0 && d->d_tag < N_TAGS) {
        o->value[d->d_tag] = v; /* the last one counts, as for the loader */
        o->has[d->d_tag] = true;
    }
}

static dt_status read_dynamic(object *o)
{
    uint64_t at = 0, bytes = 0;
    for (uint32_t i = 0; i < o->n_parts; i++) {
        if (o->part[i].p_type == PT_DYNAMIC) {
            bytes = o->part[i].p_memsz;
            if (bytes < sizeof(dyn) || !address_to_file_offset(o, o->part[i].p_vaddr, bytes, &at) ||
                o->part[i].p_vaddr % _Alignof(dyn) != 0) {
                return fail_elf("its dynamic section is not in the file");
            }
        }
    }
    bool has_end = false;
    for (uint64_t i = 0; i < bytes / sizeof(dyn) && !has_end; i++) {
        dyn d;
        memcpy(&d, o->bytes + at + i * sizeof(d), sizeof(d));
        store_dynamic_tag(o, &d);
        has_end = d.d_tag == DT_NULL;
    }
    if (!has_end || !o->has[DT_STRTAB] || !o->has[DT_STRSZ] || !o->has[DT_SYMTAB] ||
        o->value[DT_SYMENT] != sizeof(sym) || (o->gnu_hash == 0 && !o->has[DT_HASH])) {
        return fail_elf("its dynamic section has no end, or no symbols");
    }
    o->n_strings = o->value[DT_STRSZ];
    if (o->n_strings == 0 || !address_to_file_offset(o, o->value[DT_STRTAB], o->n_strings, &o->strings) ||
        o->bytes[o->strings + o->n_strings - 1] != '\0') {
        return fail_elf("its table of names is not in the file");
    }
    for (uint64_t i = 0; i < bytes / sizeof(dyn); i++) {
        dyn d;
        memcpy(&d, o->bytes + at + i * sizeof(d), sizeof(d));
        if (d.d_tag == DT_NULL) {
            break;
        }
        if (is_string_tag(d.d_tag) && d.d_un.d_val >= o->n_strings) {
            return fail_elf("the name of a library that it needs is outside its table of names");
        }
    }
    return DT_OK;
}

/* ---- symbols ----------------------------------------------------------------------------------------------------- */

/* The table has no length of its own; it follows from its hash tables. */
static dt_status read_gnu_hash(object *o)
{
    enum { HEAD = 16 };
    const uint64_t cell = sizeof(ElfW(Addr));
    uint64_t at = 0;
    if (!address_to_file_offset(o, o->gnu_hash, HEAD, &at)) {
        return fail_elf("its hash table is not in the file");
    }
    const uint64_t n_buckets = read_word(o, at), first = read_word(o, at + 4), n_bloom = read_word(o, at + 8);
    const uint64_t head = HEAD + n_bloom * cell + n_buckets * 4;
    if (n_buckets == 0 || n_bloom == 0 || !is_power_of_two(n_bloom) || read_word(o, at + 12) >= 8 * cell ||
        !address_to_file_offset(o, o->gnu_hash, head, &at)) {
        return fail_elf("its hash table has impossible sizes");
    }
    const phdr *p = find_segment(o, o->gnu_hash, head, true);
    const uint64_t chains = at + head, room = (p->p_offset + p->p_filesz - chains) / 4; /* of symbols from first on */
    uint64_t highest = 0, steps = 0;
    for (uint64_t b = 0; b < n_buckets; b++) {
        uint64_t i = read_word(o, at + HEAD + n_bloom * cell + b * 4);
        if (i == 0) {
            continue;
        }
        if (i < first) {
            return fail_elf("its hash table names symbols that it does not hold");
        }
        for (;; i++) {
            if (i - first >= room || steps++ > room) {
                return fail_elf("a chain of its hash table has no end");
            }
            highest = i + 1 > highest ? i + 1 : highest;
            if ((read_word(o, chains + (i - first) * 4) & 1) != 0) {
                break;
            }
        }
    }
    const uint64_t names = o->value[DT_STRTAB], symbols = o->value[DT_SYMTAB];
    if (highest == 0 && names > symbols) { /* it exports nothing: linkers put the names after the symbols */
        highest = (names - symbols) / sizeof(sym);
    }
    o->n_symbols = highest > first ? highest : first;
    return DT_OK;
}

static dt_status read_hash(object *o)
{
    uint64_t at = 0;
    if (!address_to_file_offset(o, o->value[DT_HASH], 8, &at)) {
        return fail_elf("its hash table is not in the file");
    }
    const uint64_t n_buckets = read_word(o, at), n_chain = read_word(o, at + 4);
    if (n_buckets == 0 || !address_to_file_offset(o, o->value[DT_HASH], 8 + 4 * (n_buckets + n_chain), &at)) {
        return fail_elf("its hash table has impossible sizes");
    }
    uint64_t steps = 0;
    for (uint64_t b = 0; b < n_buckets; b++) {
        uint64_t i = read_word(o, at + 8 + b * 4);
        while (i != 0) {
            if (i >= n_chain || steps++ > n_chain) {
                return fail_elf("a chain of its hash table has no end");
            }
            i = read_word(o, at + 8 + 4 * (n_buckets + i));
        }
    }
    o->n_symbols = n_chain > o->n_symbols ? n_chain : o->n_symbols;
    return DT_OK;
}

static dt_status check_symbols(object *o)
{
    DT_TRY(o->gnu_hash != 0 ? read_gnu_hash(o) : DT_OK);
    DT_TRY(o->has[DT_HASH] ? read_hash(o) : DT_OK);
    if (o->n_symbols > o->n ||
        !address_to_file_offset(o, o->value[DT_SYMTAB], o->n_symbols * sizeof(sym), &o->symbols)) {
        return fail_elf("its table of symbols is not in the file");
    }
    for (uint64_t i = 0; i < o->n_symbols; i++) {
        sym s;
        memcpy(&s, o->bytes + o->symbols + i * sizeof(s), sizeof(s));
        const bool is_own = s.st_shndx != SHN_UNDEF && s.st_shndx != SHN_ABS && S_TYPE(s.st_info) != STT_TLS;
        if (s.st_name >= o->n_strings || (is_own && s.st_value != 0 && find_segment(o, s.st_value, 0, false) == NULL) ||
            (is_own && S_TYPE(s.st_info) == STT_GNU_IFUNC && !is_code_address(o, s.st_value))) {
            return fail_elf("a symbol is outside it");
        }
    }
    return DT_OK;
}

/* ---- versions ---------------------------------------------------------------------------------------------------- */

/* A list of records, each with a list of its own. */
static dt_status check_version_needs(object *o)
{
    uint64_t at = o->verneed, steps = 0;
    for (uint64_t i = 0; o->verneed != 0; i++) {
        ElfW(Verneed) v;
        uint64_t from = 0;
        if (i >= o->n_verneed || !address_to_file_offset(o, at, sizeof(v), &from)) {
            return fail_elf("its list of versions has no end");
        }
        memcpy(&v, o->bytes + from, sizeof(v));
        if (v.vn_file >= o->n_strings || v.vn_version != 1) {
            return fail_elf("a version has no name");
        }
        uint64_t aux = at + v.vn_aux;
        for (uint32_t k = 0;; k++) {
            ElfW(Vernaux) x;
            if (k >= v.vn_cnt || steps++ > o->n / sizeof(x) || !address_to_file_offset(o, aux, sizeof(x), &from)) {
                return fail_elf("its list of versions has no end");
            }
            memcpy(&x, o->bytes + from, sizeof(x));
            const uint32_t number = x.vna_other & MAX_VERSION;
            o->highest_version = number > o->highest_version ? number : o->highest_version;
            if (x.vna_name >= o->n_strings) {
                return fail_elf("a version has no name");
            }
            if (x.vna_next == 0) {
                break;
            }
            aux += x.vna_next;
        }
        if (v.vn_next == 0) {
            break;
        }
        at += v.vn_next;
    }
    return DT_OK;
}

static dt_status check_definitions(object *o)
{
    uint64_t at = o->verdef;
    for (uint64_t i = 0; o->verdef != 0; i++) {
        ElfW(Verdef) v;
        ElfW(Verdaux) x;
        uint64_t from = 0;
        if (i >= o->n_verdef || !address_to_file_offset(o, at, sizeof(v), &from)) {
            return fail_elf("its list of versions has no end");
        }
        memcpy(&v, o->bytes + from, sizeof(v));
        const uint32_t number = v.vd_ndx & MAX_VERSION;
        o->highest_version = number > o->highest_version ? number : o->highest_version;
        if (v.vd_version != 1 || v.vd_cnt == 0 || !address_to_file_offset(o, at + v.vd_aux, sizeof(x), &from)) {
            return fail_elf("a version has no name");
        }
        memcpy(&x, o->bytes + from, sizeof(x));
        if (x.vda_name >= o->n_strings) {
            return fail_elf("a version has no name");
        }
        if (v.vd_next == 0) {
            break;
        }
        at += v.vd_next;
    }
    return DT_OK;
}

static dt_status check_versions(object *o)
{
    uint64_t at = 0;
    DT_TRY(check_version_needs(o));
    DT_TRY(check_definitions(o));
    if (o->versym == 0) {
        return DT_OK;
    }
    if (!address_to_file_offset(o, o->versym, o->n_symbols * sizeof(uint16_t), &at)) {
        return fail_elf("the versions of its symbols are not in the file");
    }
    for (uint64_t i = 0; i < o->n_symbols; i++) {
        uint16_t v = 0;
        memcpy(&v, o->bytes + at + i * sizeof(v), sizeof(v));
        if ((v & MAX_VERSION) > 1 && (v & MAX_VERSION) > o->highest_version) {
            return fail_elf("a symbol has a version that does not exist");
        }
    }
    return DT_OK;
}

/* ---- relocations ------------------------------------------------------------------------------------------------- */

static bool is_writable(const object *o, uint64_t at, uint64_t bytes)
{
    const phdr *p = find_segment(o, at, bytes, false);
    const bool in_text = o->has[DT_TEXTREL] || (o->value[DT_FLAGS] & DF_TEXTREL) != 0;
    return p != NULL && (in_text || (p->p_flags & PF_W) != 0);
}

enum { N_ARRAYS = 2 };
/* Those whose entries are called: before the first line of the plugin, and when the program ends. */
static const int arrays[N_ARRAYS][2] = {{DT_INIT_ARRAY, DT_INIT_ARRAYSZ}, {DT_FINI_ARRAY, DT_FINI_ARRAYSZ}};

/* Counts an address that is filled in when the object is opened; true: it is in such an array, and so will be called.
 */
static bool is_in_pointer_array(object *o, uint64_t at)
{
    for (size_t i = 0; i < N_ARRAYS; i++) {
        const uint64_t begin = o->value[arrays[i][0]];
        if (o->has[arrays[i][0]] && at >= begin && at - begin < o->value[arrays[i][1]]) {
            o->n_filled[i]++;
            return true;
        }
    }
    return false;
}

/* The address that the file holds there is one in its code. */
static bool holds_code(const object *o, uint64_t at)
{
    ElfW(Addr) v = 0;
    uint64_t offset = 0;
    if (!address_to_file_offset(o, at, sizeof(v), &offset)) {
        return false;
    }
    memcpy(&v, o->bytes + offset, sizeof(v));
    return is_code_address(o, v);
}

/* What a relocation writes is an address in the object's own code. */
static bool points_to_code(const object *o, const rela *r, bool has_addend)
{
    if (R_SYM(r->r_info) != 0) {
        sym s;
        memcpy(&s, o->bytes + o->symbols + R_SYM(r->r_info) * sizeof(s), sizeof(s));
        return s.st_shndx != SHN_UNDEF && is_code_address(o, s.st_value + (uint64_t)r->r_addend);
    }
    return has_addend ? is_code_address(o, (uint64_t)r->r_addend) : holds_code(o, r->r_offset);
}

static dt_status check_relocation_table(object *o, int table, int size, bool has_addend)
{
    const uint64_t each = has_addend ? sizeof(rela) : sizeof(rel), bytes = o->value[size];
    uint64_t at = 0;
    if (!o->has[table] || bytes == 0) {
        return DT_OK;
    }
    if (bytes % each != 0 || !address_to_file_offset(o, o->value[table], bytes, &at)) {
        return fail_elf("a table of relocations is not in the file");
    }
    for (uint64_t i = 0; i < bytes / each; i++) {
        rela r = {0};
        memcpy(&r, o->bytes + at + i * each, each);
        const int64_t type = (int64_t)R_TYPE(r.r_info);
        if (type == 0) { /* none, on every machine */
            continue;
        }
        if (R_SYM(r.r_info) != 0 && R_SYM(r.r_info) >= o->n_symbols) {
            return fail_elf("a relocation names a symbol that does not exist");
        }
        if (!is_writable(o, r.r_offset, sizeof(ElfW(Addr)))) {
            return fail_elf("a relocation writes outside it");
        }
        const bool is_called = is_in_pointer_array(o, r.r_offset) || type == CALLED;
        if (is_called && !points_to_code(o, &r, has_addend)) {
            return fail_elf(not_code);
        }
    }
    return DT_OK;
}

/* Relative relocations as a bitmap: an address, then words whose bits mark which of the next ones. */
static dt_status check_relr(object *o)
{
    const uint64_t cell = sizeof(ElfW(Addr)), bytes = o->value[DT_RELRSZ];
    uint64_t at = 0, where = 0;
    if (!o->has[DT_RELR] || bytes == 0) {
        return DT_OK;
    }
    if (bytes % cell != 0 || !address_to_file_offset(o, o->value[DT_RELR], bytes, &at)) {
        return fail_elf("a table of relocations is not in the file");
    }
    for (uint64_t i = 0; i < bytes / cell; i++) {
        ElfW(Addr) v = 0;
        memcpy(&v, o->bytes + at + i * cell, cell);
        if ((v & 1) == 0) {
            if (!is_writable(o, v, cell)) {
                return fail_elf("a relocation writes outside it");
            }
            if (is_in_pointer_array(o, v) && !holds_code(o, v)) {
                return fail_elf(not_code);
            }
            where = v + cell;
            continue;
        }
        for (uint64_t bit = 1; bit < 8 * cell; bit++) {
            const uint64_t to = where + (bit - 1) * cell;
            if ((v >> bit & 1) != 0 && !is_writable(o, to, cell)) {
                return fail_elf("a relocation writes outside it");
            }
            if ((v >> bit & 1) != 0 && is_in_pointer_array(o, to) && !holds_code(o, to)) {
                return fail_elf(not_code);
            }
        }
        where += (8 * cell - 1) * cell;
    }
    return DT_OK;
}

static dt_status check_relocations(object *o)
{
    const bool plt_has_addend = o->value[DT_PLTREL] == DT_RELA;
    if ((o->has[DT_RELA] && o->value[DT_RELAENT] != sizeof(rela)) ||
        (o->has[DT_REL] && o->value[DT_RELENT] != sizeof(rel)) ||
        (o->has[DT_JMPREL] && !plt_has_addend && o->value[DT_PLTREL] != DT_REL)) {
        return fail_elf("its relocations have an impossible size");
    }
    DT_TRY(check_relocation_table(o, DT_RELA, DT_RELASZ, true));
    DT_TRY(check_relocation_table(o, DT_REL, DT_RELSZ, false));
    DT_TRY(check_relocation_table(o, DT_JMPREL, DT_PLTRELSZ, plt_has_addend));
    DT_TRY(check_relr(o));
    if (o->has[DT_PLTGOT] && o->has[DT_JMPREL] && !is_writable(o, o->value[DT_PLTGOT], 3 * sizeof(ElfW(Addr)))) {
        return fail_elf("its table of addresses is outside it");
    }
    return DT_OK;
}

/* The loader calls every entry as it is. In a shared object each is an address of its own, which a relocation fills in:
 * an array that damage has moved holds entries that nothing fills in. An array of no entries may lie anywhere. */
static dt_status check_pointer_array(const object *o, size_t i)
{
    const uint64_t cell = sizeof(ElfW(Addr)), at = o->value[arrays[i][0]], bytes = o->value[arrays[i][1]];
    if (!o->has[arrays[i][0]]) {
        return DT_OK;
    }
    if (!o->has[arrays[i][1]]) {
        return fail_elf("its list of functions to call has no length");
    }
    if (bytes == 0) {
        return DT_OK;
    }
    const phdr *p = find_segment(o, at, bytes, true);
    if (p == NULL || (p->p_flags & PF_W) == 0 || at % cell != 0 || bytes % cell != 0) {
        return fail_elf("its list of functions to call is not among its data");
    }
    if (o->n_filled[i] != bytes / cell) {
        return fail_elf("its list of functions to call contains other data too");
    }
    return DT_OK;
}

static dt_status check_init_arrays(const object *o)
{
    static const int one[] = {DT_INIT, DT_FINI};
    for (size_t i = 0; i < sizeof(one) / sizeof(one[0]); i++) {
        if (o->has[one[i]] && !is_code_address(o, o->value[one[i]])) {
            return fail_elf(not_code);
        }
    }
    if (o->has[DT_PREINIT_ARRAY]) {
        return fail_elf("it has functions to call before the program begins, which only a program has");
    }
    for (size_t i = 0; i < N_ARRAYS; i++) {
        DT_TRY(check_pointer_array(o, i));
    }
    return DT_OK;
}

dt_status dt_elf_check(const uint8_t *bytes, size_t n)
{
    object o = {.bytes = bytes, .n = n};
    ehdr h;
    DT_TRY(check_header(&o, &h));
    DT_TRY(check_length(&o, &h));
    DT_TRY(check_segments(&o));
    DT_TRY(check_sections(&o, &h));
    DT_TRY(read_dynamic(&o));
    DT_TRY(check_symbols(&o));
    DT_TRY(check_versions(&o));
    DT_TRY(check_relocations(&o));
    return check_init_arrays(&o);
}
