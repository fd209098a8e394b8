/* SPDX-License-Identifier: Apache-2.0
 *
 * A library with a plugin's entry point that a plugin links against: the loader must not take it for the plugin's own.
 */
#include "dtrain/plugin.h"

static const dt_plugin desc = {DT_PLUGIN_PREFIX, .name = "bad_borrowed"};
DT_PLUGIN_DEFINE(desc);

DT_EXPORT const void *lent(void);
const void *lent(void)
{
    return &desc;
}
