/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "telemetry/metrics/events.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/protobuf.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static const double FLUSH_EVERY_S = 5;

/* numbers of fields; the comment names the message */
enum {
    EVENT_WALL_TIME = 1, /* Event */
    EVENT_STEP = 2,
    EVENT_FILE_VERSION = 3,
    EVENT_SUMMARY = 5,
    EVENT_SESSION_LOG = 7,
    SUMMARY_VALUE = 1, /* Summary */
    VALUE_TAG = 1,     /* Summary.Value */
    VALUE_SIMPLE = 2,
    VALUE_IMAGE = 4,
    VALUE_HISTOGRAM = 5,
    VALUE_TENSOR = 8,
    VALUE_METADATA = 9,
    METADATA_PLUGIN = 1, /* SummaryMetadata */
    PLUGIN_NAME = 1,     /* SummaryMetadata.PluginData */
    PLUGIN_CONTENT = 2,
    TENSOR_DTYPE = 1, /* TensorProto */
    TENSOR_SHAPE = 2,
    TENSOR_STRING = 8,
    SHAPE_DIM = 2,      /* TensorShapeProto */
    DIM_SIZE = 1,       /* TensorShapeProto.Dim */
    SESSION_STATUS = 1, /* SessionLog */
    SESSION_START = 1,  /* SessionLog.SessionStatus */
    DTYPE_FLOAT = 1,    /* DataType */
    DTYPE_STRING = 7,
    IMAGE_HEIGHT = 1, /* Summary.Image */
    IMAGE_WIDTH = 2,
    IMAGE_COLORS = 3, /* 3: RGB */
    IMAGE_FILE = 4,
    HISTOGRAM_MIN = 1, /* HistogramProto */
    HISTOGRAM_MAX = 2,
    HISTOGRAM_NUM = 3,
    HISTOGRAM_SUM = 4,
    HISTOGRAM_SQUARES = 5,
    HISTOGRAM_LIMITS = 6,
    HISTOGRAM_COUNTS = 7,
    HPARAMS_START = 3, /* HParamsPluginData */
    HPARAMS_END = 4,
    START_HPARAM = 1, /* SessionStartInfo */
    START_GROUP = 4,
    START_TIME = 5,
    END_STATUS = 1, /* SessionEndInfo */
    END_TIME = 2,
    END_SUCCESS = 1,
    END_FAILURE = 2,
    ENTRY_KEY = 1, /* of a map */
    ENTRY_VALUE = 2,
    ANY_NUMBER = 2, /* google.protobuf.Value */
    ANY_TEXT = 3,
    ANY_BOOL = 4
};

struct dt_events {
    FILE *file;
    char *path;
    double flushed_s;
    dt_str event, summary, value; /* messages under way, inner ones in front of those that hold them */
    dt_str session;               /* hyper-parameters so far */
    uint64_t step;
    bool is_over; /* its session's end is written */
};

static const char SESSION_END[] = "_hparams_/session_end_info";

/* ---- records ----------------------------------------------------------------------------------------------------- */

static uint32_t masked_crc32c(const void *p, size_t bytes)
{
    const uint32_t crc = dt_crc32c(0, p, bytes);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static dt_status write_event(dt_events *e)
{
    dt_str *head = &e->value; /* free by now */
    DT_TRY(dt_str_status(&e->event));
    dt_str_clear(head);
    dt_pb_fixed(head, e->event.bytes, 8);
    dt_pb_fixed(head, masked_crc32c(head->text, 8), 4);
    char tail[4];
    const uint32_t crc = masked_crc32c(dt_str_text(&e->event), e->event.bytes);
    for (size_t i = 0; i < sizeof(tail); i++) {
        tail[i] = (char)(crc >> (8 * i) & 0xff);
    }
    DT_TRY(dt_str_status(head));
    if (dt_fs_check_appended(fileno(e->file), e->path, 0) == DT_FS_GONE) {
        return DT_FAIL(DT_EIO, "%s was removed or replaced by another program", e->path);
    }
    bool ok = fwrite(head->text, 1, head->bytes, e->file) == head->bytes &&
              fwrite(dt_str_text(&e->event), 1, e->event.bytes, e->file) == e->event.bytes &&
              fwrite(tail, 1, sizeof(tail), e->file) == sizeof(tail);
    const double now = dt_clock_s();
    if (ok && now - e->flushed_s > FLUSH_EVERY_S) {
        e->flushed_s = now;
        ok = fflush(e->file) == 0;
    }
    return ok ? DT_OK : DT_FAIL(DT_EIO, "cannot write %s: %s", e->path, strerror(errno));
}

static double read_wall_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void begin_event_message(dt_events *e, uint64_t step)
{
    dt_str_clear(&e->event);
    dt_pb_double(&e->event, EVENT_WALL_TIME, read_wall_time());
    dt_pb_int(&e->event, EVENT_STEP, step);
}

static dt_status write_head(dt_events *e, uint64_t first_step)
{
    static const char version[] = "brain.Event:2";
    begin_event_message(e, 0);
    dt_pb_text(&e->event, EVENT_FILE_VERSION, version);
    DT_TRY(write_event(e));
    dt_str_clear(&e->value);
    dt_pb_int(&e->value, SESSION_STATUS, SESSION_START);
    begin_event_message(e, first_step);
    dt_pb_str(&e->event, EVENT_SESSION_LOG, &e->value);
    return write_event(e);
}

/* Takes the end of a session off a file, where it is always the last record. What a killed process left half written
 * is none. */
static dt_status remove_session_end(const char *path)
{
    enum { HEAD = 12, TAIL = 4, END_MOST = 256 }; /* bytes: length and its checksum, checksum of the data */
    unsigned char head[HEAD];
    char body[END_MOST];
    size_t n = 0;
    FILE *f = NULL;
    DT_TRY(dt_fs_open_stream(path, O_RDWR, "r+b", &f));
    long last = 0, next = 0;
    while (fseek(f, next, SEEK_SET) == 0 && fread(head, 1, sizeof(head), f) == sizeof(head) && head[6] + head[7] == 0) {
        uint64_t bytes = 0;
        for (int i = 0; i < 8; i++) {
            bytes |= (uint64_t)head[i] << (8 * i);
        }
        last = next;
        next += HEAD + (long)bytes + TAIL;
        n = fread(body, 1, bytes < sizeof(body) ? (size_t)bytes : 0, f);
    }
    const bool is_end = memmem(body, n, SESSION_END, sizeof(SESSION_END) - 1) != NULL;
    const int failed = is_end && ftruncate(fileno(f), last) != 0 ? errno : 0;
    fclose(f);
    return failed == 0 ? DT_OK : DT_FAIL(DT_EIO, "cannot cut %s to %ld bytes: %s", path, last, strerror(failed));
}

/* A continued session is not over, whatever its earlier files contain. */
static dt_status continue_session(const char *dir)
{
    char **name = NULL;
    size_t n = 0;
    dt_str path = {0};
    dt_status st = dt_fs_list(dir, &name, &n);
    for (size_t i = 0; i < n && st == DT_OK; i++) {
        if (strstr(name[i], ".tfevents.") != NULL) {
            dt_str_clear(&path);
            dt_str_addf(&path, "%s/%s", dir, name[i]);
            st = dt_str_status(&path);
            if (st == DT_OK) {
                st = remove_session_end(dt_str_text(&path));
            }
        }
    }
    dt_fs_list_free(name, n);
    dt_str_fini(&path);
    return st;
}

dt_status dt_events_open(const char *dir, uint64_t first_step, dt_events **out_p)
{
    struct utsname host = {0};
    dt_str path = {0};
    dt_events *e = dt_alloc(sizeof(*e));
    if (e == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for event files");
    }
    uname(&host);
    dt_status st = dt_fs_mkdirs(dir);
    if (st == DT_OK) {
        st = continue_session(dir);
    }
    for (uint32_t n = 0; st == DT_OK && e->file == NULL; n++) { /* phases may begin within one second */
        dt_str_clear(&path);
        dt_str_addf(&path, "%s/events.out.tfevents.%lld.%s.%ld.%u", dir, (long long)time(NULL), host.nodename,
                    (long)getpid(), n);
        st = dt_str_status(&path);
        int fd = -1;
        if (st == DT_OK) {
            st = dt_fs_create(dt_str_text(&path), &fd);
        }
        e->file = st == DT_OK ? fdopen(fd, "wb") : NULL;
        if (st == DT_OK && e->file == NULL) {
            close(fd);
            st = DT_FAIL(DT_EIO, "cannot create %s: %s", dt_str_text(&path), strerror(errno));
        }
        if (st == DT_EINVAL) { /* it is there */
            dt_error_clear();
            st = DT_OK;
        }
    }
    if (st == DT_OK && (e->path = dt_strdup(dt_str_text(&path))) == NULL) {
        st = DT_FAIL(DT_ENOMEM, "out of memory for event files");
    }
    dt_str_fini(&path);
    if (st == DT_OK) {
        e->flushed_s = dt_clock_s();
        st = write_head(e, first_step);
    }
    if (st < 0) {
        dt_events_close(e);
        return st;
    }
    *out_p = e;
    return DT_OK;
}

void dt_events_close(dt_events *e)
{
    if (e == NULL) {
        return;
    }
    if (e->file != NULL && fclose(e->file) != 0) {
        dt_log(DT_LOG_WARN, "cannot write the end of %s: %s", e->path != NULL ? e->path : "", strerror(errno));
    }
    dt_str_fini(&e->event);
    dt_str_fini(&e->summary);
    dt_str_fini(&e->value);
    dt_str_fini(&e->session);
    dt_free(e->path);
    dt_free(e);
}

void dt_events_begin(dt_events *e, uint64_t step)
{
    e->step = step;
    dt_str_clear(&e->summary);
}

void dt_events_add_scalar(dt_events *e, const char *tag, double value)
{
    if (isnan(value)) {
        return; /* not known */
    }
    dt_str_clear(&e->value);
    dt_pb_text(&e->value, VALUE_TAG, tag);
    dt_pb_float(&e->value, VALUE_SIMPLE, (float)value);
    dt_pb_str(&e->summary, SUMMARY_VALUE, &e->value);
}

dt_status dt_events_end(dt_events *e)
{
    begin_event_message(e, e->step);
    dt_pb_str(&e->event, EVENT_SUMMARY, &e->summary);
    return write_event(e);
}

/* TensorBoard shows Markdown: lines that are indented by four spaces stay as they are. */
static void write_indented(dt_str *out, const char *text)
{
    while (*text != '\0') {
        const size_t n = strcspn(text, "\n");
        dt_str_add(out, "    ");
        dt_str_add_n(out, text, n);
        dt_str_add(out, "\n");
        text += n + (text[n] == '\n');
    }
}

/* A record of one value, which holds `what` in its field of this number. */
static dt_status write_single_event(dt_events *e, uint64_t step, const char *tag, uint32_t field, const dt_str *what)
{
    dt_str_clear(&e->value);
    dt_str_clear(&e->summary);
    dt_pb_text(&e->value, VALUE_TAG, tag);
    dt_pb_str(&e->value, field, what);
    dt_pb_str(&e->summary, SUMMARY_VALUE, &e->value);
    e->step = step;
    return dt_events_end(e);
}

/* A tensor, and which plugin shows it. */
static dt_status write_tensor(dt_events *e, uint64_t step, const char *tag, const char *plugin, const dt_str *content,
                              const dt_str *tensor)
{
    dt_str data = {0}, metadata = {0};
    dt_pb_text(&data, PLUGIN_NAME, plugin);
    if (content != NULL) {
        dt_pb_str(&data, PLUGIN_CONTENT, content);
    }
    dt_pb_str(&metadata, METADATA_PLUGIN, &data);
    dt_str_clear(&e->value);
    dt_str_clear(&e->summary);
    dt_pb_text(&e->value, VALUE_TAG, tag);
    dt_pb_str(&e->value, VALUE_METADATA, &metadata);
    dt_pb_str(&e->value, VALUE_TENSOR, tensor);
    dt_pb_str(&e->summary, SUMMARY_VALUE, &e->value);
    e->step = step;
    const dt_status st = dt_events_end(e);
    dt_str_fini(&data);
    dt_str_fini(&metadata);
    return st;
}

dt_status dt_events_write_text(dt_events *e, uint64_t step, const char *tag, const char *text)
{
    dt_str dim = {0}, shape = {0}, words = {0}, tensor = {0};
    dt_pb_int(&dim, DIM_SIZE, 1);
    dt_pb_str(&shape, SHAPE_DIM, &dim);
    write_indented(&words, text);
    dt_pb_int(&tensor, TENSOR_DTYPE, DTYPE_STRING);
    dt_pb_str(&tensor, TENSOR_SHAPE, &shape);
    dt_pb_str(&tensor, TENSOR_STRING, &words);
    const dt_status st = write_tensor(e, step, tag, "text", NULL, &tensor);
    dt_str *const used[] = {&dim, &shape, &words, &tensor};
    for (size_t i = 0; i < sizeof(used) / sizeof(used[0]); i++) {
        dt_str_fini(used[i]);
    }
    return st;
}

/* ---- histograms and pictures ------------------------------------------------------------------------------------- */

void dt_histogram_begin(dt_histogram *h)
{
    *h = (dt_histogram){.low = INFINITY, .high = -INFINITY};
}

void dt_histogram_extend_range(dt_histogram *h, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (isfinite(x[i])) {
            h->low = x[i] < h->low ? x[i] : h->low;
            h->high = x[i] > h->high ? x[i] : h->high;
        }
    }
}

void dt_histogram_count_values(dt_histogram *h, const float *x, int64_t n)
{
    const double scale = h->high > h->low ? DT_HISTOGRAM_PARTS / (h->high - h->low) : 0;
    for (int64_t i = 0; i < n; i++) {
        if (isfinite(x[i])) {
            const int part = (int)((x[i] - h->low) * scale);
            h->count[part < DT_HISTOGRAM_PARTS ? part : DT_HISTOGRAM_PARTS - 1]++;
            h->sum += x[i];
            h->squares += (double)x[i] * x[i];
            h->n++;
        }
    }
}

dt_status dt_events_write_histogram(dt_events *e, uint64_t step, const char *tag, const dt_histogram *h)
{
    dt_str message = {0}, limits = {0}, counts = {0};
    const double width = (h->high - h->low) / DT_HISTOGRAM_PARTS;
    if (h->n == 0) {
        return DT_OK;
    }
    for (int i = 0; i < DT_HISTOGRAM_PARTS; i++) { /* packed doubles; the last limit is the greatest value itself */
        const double limit[] = {i + 1 < DT_HISTOGRAM_PARTS ? h->low + (i + 1) * width : h->high, h->count[i]};
        uint64_t bits[2];
        memcpy(bits, limit, sizeof(bits));
        dt_pb_fixed(&limits, bits[0], 8);
        dt_pb_fixed(&counts, bits[1], 8);
    }
    dt_pb_double(&message, HISTOGRAM_MIN, h->low);
    dt_pb_double(&message, HISTOGRAM_MAX, h->high);
    dt_pb_double(&message, HISTOGRAM_NUM, (double)h->n);
    dt_pb_double(&message, HISTOGRAM_SUM, h->sum);
    dt_pb_double(&message, HISTOGRAM_SQUARES, h->squares);
    dt_pb_str(&message, HISTOGRAM_LIMITS, &limits);
    dt_pb_str(&message, HISTOGRAM_COUNTS, &counts);
    const dt_status st = write_single_event(e, step, tag, VALUE_HISTOGRAM, &message);
    dt_str_fini(&message);
    dt_str_fini(&limits);
    dt_str_fini(&counts);
    return st;
}

dt_status dt_events_write_image(dt_events *e, uint64_t step, const char *tag, uint32_t width, uint32_t height,
                                const dt_str *png)
{
    dt_str message = {0};
    dt_pb_int(&message, IMAGE_HEIGHT, height);
    dt_pb_int(&message, IMAGE_WIDTH, width);
    dt_pb_int(&message, IMAGE_COLORS, 3);
    dt_pb_str(&message, IMAGE_FILE, png);
    const dt_status st = write_single_event(e, step, tag, VALUE_IMAGE, &message);
    dt_str_fini(&message);
    return st;
}

/* ---- hyper-parameters -------------------------------------------------------------------------------------------- */

static void write_hparam(dt_events *e, const char *name, const dt_str *any)
{
    dt_str entry = {0};
    dt_pb_text(&entry, ENTRY_KEY, name);
    dt_pb_str(&entry, ENTRY_VALUE, any);
    dt_pb_str(&e->session, START_HPARAM, &entry);
    dt_str_fini(&entry);
}

void dt_events_hparam_number(dt_events *e, const char *name, double value)
{
    dt_str any = {0};
    dt_pb_double(&any, ANY_NUMBER, value);
    write_hparam(e, name, &any);
    dt_str_fini(&any);
}

void dt_events_hparam_bool(dt_events *e, const char *name, bool value)
{
    dt_str any = {0};
    dt_pb_int(&any, ANY_BOOL, value);
    write_hparam(e, name, &any);
    dt_str_fini(&any);
}

void dt_events_hparam_text(dt_events *e, const char *name, const char *value)
{
    dt_str any = {0};
    dt_pb_text(&any, ANY_TEXT, value);
    write_hparam(e, name, &any);
    dt_str_fini(&any);
}

/* As the plugin's own writer does: an empty tensor that carries the message as its metadata. */
static dt_status write_session(dt_events *e, const char *tag, uint32_t field, const dt_str *info)
{
    dt_str content = {0}, dim = {0}, shape = {0}, tensor = {0};
    dt_pb_str(&content, field, info);
    dt_pb_int(&dim, DIM_SIZE, 0);
    dt_pb_str(&shape, SHAPE_DIM, &dim);
    dt_pb_int(&tensor, TENSOR_DTYPE, DTYPE_FLOAT);
    dt_pb_str(&tensor, TENSOR_SHAPE, &shape);
    const dt_status st = write_tensor(e, 0, tag, "hparams", &content, &tensor);
    dt_str *const used[] = {&content, &dim, &shape, &tensor};
    for (size_t i = 0; i < sizeof(used) / sizeof(used[0]); i++) {
        dt_str_fini(used[i]);
    }
    return st;
}

dt_status dt_events_write_hparams(dt_events *e, const char *group)
{
    dt_pb_text(&e->session, START_GROUP, group);
    dt_pb_double(&e->session, START_TIME, read_wall_time());
    const dt_status st = write_session(e, "_hparams_/session_start_info", HPARAMS_START, &e->session);
    dt_str_clear(&e->session);
    return st;
}

dt_status dt_events_write_session_end(dt_events *e, bool is_success)
{
    dt_str info = {0};
    if (e->is_over) {
        return DT_OK;
    }
    e->is_over = true;
    dt_pb_int(&info, END_STATUS, is_success ? END_SUCCESS : END_FAILURE);
    dt_pb_double(&info, END_TIME, read_wall_time());
    const dt_status st = write_session(e, SESSION_END, HPARAMS_END, &info);
    dt_str_fini(&info);
    return st;
}
