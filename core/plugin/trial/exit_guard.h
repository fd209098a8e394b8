/* SPDX-License-Identifier: Apache-2.0
 *
 * A plugin that calls exit() would end dtrain with a code of its own choice, 0 among them, and without a message. While
 * the guard is up such an end is reported, and its code is that of a refused plugin. Threads: up and down [main].
 */
#ifndef DTRAIN_CORE_PLUGIN_TRIAL_EXIT_GUARD_H
#define DTRAIN_CORE_PLUGIN_TRIAL_EXIT_GUARD_H

void dt_exit_guard_enable(void);
void dt_exit_guard_disable(void); /* main is about to return, or what runs here is on trial and watched from outside */

#endif
