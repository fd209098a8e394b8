/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the harnesses of env_traffic's files: a host, a configuration with the values that users have, and a small
 * network with demand that fits it.
 */
#ifndef DTRAIN_TESTS_FUZZ_TRAFFIC_H
#define DTRAIN_TESTS_FUZZ_TRAFFIC_H

#include "../../plugins/env_traffic/sim.h"
#include "../../plugins/env_traffic/netfile.h"

#include <string.h>

extern const dt_host traffic_host; /* memory is the host's, counted by fuzz_end; failures go to its record */
extern const traffic_config traffic_values;
extern const char traffic_net[], traffic_routes[];

static inline xml_text traffic_text(const char *path, const char *text)
{
    return (xml_text){.path = path, .bytes = text, .n_bytes = strlen(text)};
}

/* Builds a simulation of these texts. Networks on which more vehicles have room than a harness has time for are not
 * built: DT_EUNSUPPORTED. sim_destroy after any result. */
dt_status traffic_create(sim *s, const xml_text *roads, const xml_text *routes);

/* The file of a network as traffic_create left it; to be given back to netfile_fini. */
void traffic_keep_netfile(netfile *keep);

#endif
