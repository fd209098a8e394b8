/* SPDX-License-Identifier: Apache-2.0
 *
 * The columns of a trajectory table: which one each role is in, by a header that is known or by the user's map, and
 * their cells as numbers in SI units. import.h lists the layouts. Threads: one object, one thread.
 */
#ifndef DTRAIN_PLUGINS_TRAFFIC_COLUMNS_H
#define DTRAIN_PLUGINS_TRAFFIC_COLUMNS_H

#include "base/str.h"
#include "traffic/text/csv.h"
#include "traffic/text/values.h"

#define DT_RATE_MIN_HZ 0.1 /* frame rates that a store keeps */
#define DT_RATE_MAX_HZ 1000.0

enum dt_role {
    DT_ROLE_SCENE,
    DT_ROLE_SITE,
    DT_ROLE_FRAME,
    DT_ROLE_TIME,
    DT_ROLE_ID,
    DT_ROLE_X,
    DT_ROLE_Y,
    DT_ROLE_HEADING,
    DT_ROLE_SPEED,
    DT_ROLE_ACCEL,
    DT_ROLE_LENGTH,
    DT_ROLE_WIDTH,
    DT_ROLE_STOP,
    DT_ROLE_CONTROLLED,
    DT_ROLE_RATE,
    DT_ROLE_VX, /* velocity and acceleration along x and y: the speed where no column has it, and missing headings */
    DT_ROLE_VY,
    DT_ROLE_AX,
    DT_ROLE_AY,
    DT_ROLE_KIND, /* of road user */
    DT_N_ROLES
};

/* What a role's cells may be, after conversion. Texts have no range. */
typedef struct dt_role_spec {
    const char *name;
    double lo, hi;
    bool is_optional; /* an empty cell means missing */
} dt_role_spec;
extern const dt_role_spec dt_role_specs[DT_N_ROLES];

typedef struct dt_table_layout {
    const char *name;
    double rate_hz; /* 0: not known */
    bool has_axis;  /* as of dt_rows_file */
    double axis_heading;
    bool is_front; /* position is the front centre */
    bool is_heading_fixed;
    bool has_parts;    /* a scene's name may be "scene#part": parts are never split between folds */
    bool is_portal;    /* as data portals export: "1,118,846,980,200" is a number, and rows may come twice */
    bool is_benchmark; /* a scene's name is a benchmark id of CommonRoad, which holds the site */
    bool is_corner;    /* position is the upper left corner of a box along the axes, and y points up after conversion */
    bool is_levelx;    /* recording_meta.h has rate and site; what has no size is no vehicle */
    bool has_units;    /* of the format: what is long or fast there is long or fast */
    bool may_lack_vehicle; /* rows without an id are steps without vehicles */
    bool is_by_folder;     /* the folder of the file is the site */
    const char *site;
} dt_table_layout;

/* Of a number v in a cell: (|v| or v) * factor + offset. */
typedef struct dt_conversion {
    double factor, offset;
    bool is_magnitude;
} dt_conversion;

typedef struct dt_columns {
    const dt_csv *csv;      /* for messages, while it is read */
    char *path;             /* the same, afterwards */
    dt_table_layout layout; /* of a header that is known; of the user's map: its name and nothing else */
    bool is_mapped;         /* by the user */
    double rate_hz;         /* 0: rows have it, each the same */
    bool is_rate_in_rows;
    char **header; /* [n] */
    int n;
    int at[DT_N_ROLES];                        /* cell of the role, -1 when the table lacks it */
    const char *name[DT_N_ROLES];              /* of its column; NULL: not looked for */
    dt_conversion by[DT_N_ROLES];              /* what makes SI units of its cells */
    char *map_text;                            /* copy of the user's map, cut into names */
    bool has_zone, has_local_time;             /* in dates read so far */
    bool has_decimal_comma, has_decimal_point; /* in numbers read so far */
} dt_columns;

/* One item of a map. After "role=" there is the column's name, exactly; or with "|name|", "*factor", "/divisor",
 * "*unit", "+offset" or "-offset" after it, in this order; columns.c lists the units. */
void dt_columns_write(int role, const char *header, const dt_conversion *by, dt_str *out);

/* The whole map of a table as it is read, but that cells of a role are multiplied by scale besides. */
void dt_columns_write_map(const dt_columns *c, int role, double scale, dt_str *out);

/* Reads the header. map: "role=item,..."; NULL or "": the header is recognised. rate_hz: 0: the layout's,
 * or from a column; where nothing has it c->rate_hz stays 0, and the caller finds it (import_table.c).
 * c is zeroed before; dt_columns_fini also after a failure. Errors: DT_EDATA (the header), DT_EINVAL (map, rate),
 * DT_ENOMEM. */
dt_status dt_columns_find(dt_columns *c, dt_csv *csv, const char *map, double rate_hz) DT_NODISCARD;
/* Of a row: where rows have the frame rate the first one defines it, and the others must not differ. Errors: DT_EDATA.
 * */
dt_status dt_columns_read_rate(dt_columns *c, char *const *cell) DT_NODISCARD;
void dt_columns_fini(dt_columns *c);
/* What was found, and what is not used: lines for people, each once, of however many files. DT_ENOMEM. */
dt_status dt_columns_report(const dt_columns *c, dt_str *notes) DT_NODISCARD;
/* Notes of another part of the import: of the lines of dt_columns_report those that are not there yet,
 * and all others. */
void dt_columns_add_notes(dt_str *notes, const char *lines);

/* A number of a role in SI units; NAN for an empty cell where that is allowed or a column that is not there. cell: of
 * the line handed out last. Errors: DT_EDATA with file, line and column. */
dt_status dt_columns_read_number(dt_columns *c, char *const *cell, int role, double *out_p) DT_NODISCARD;
/* The class of the row's road user; DT_USER_VEHICLE where no column has it. */
dt_road_user dt_columns_read_user(const dt_columns *c, char *const *cell);
/* A time in seconds: a number, hours:minutes:seconds, or a date and a time. DT_EDATA. */
dt_status dt_columns_read_time(dt_columns *c, char *const *cell, double *out_p) DT_NODISCARD;
/* 0 or 1, true or false; an empty cell is false. DT_EDATA. */
dt_status dt_columns_read_bool(const dt_columns *c, char *const *cell, int role, bool *out_p) DT_NODISCARD;
dt_status dt_columns_read_integer(dt_columns *c, char *const *cell, int role, int64_t *out_p) DT_NODISCARD;

#endif
