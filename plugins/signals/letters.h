/* SPDX-License-Identifier: Apache-2.0
 *
 * What a traffic light lets a link do. Threads: any.
 */
#ifndef DTRAIN_PLUGINS_SIGNALS_LETTERS_H
#define DTRAIN_PLUGINS_SIGNALS_LETTERS_H

/* nothing; pass after a stop; go and yield; go first */
enum { SIGNAL_RED, SIGNAL_STOP, SIGNAL_YIELD, SIGNAL_GO };

#endif
