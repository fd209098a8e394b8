/* SPDX-License-Identifier: Apache-2.0
 *
 * See memory.h. A few dozen blocks at most: a list will do.
 */
#include <config.h>

#include "engine/device/memory.h"

#include "base/err.h"
#include "base/mem.h"

#include <pthread.h>
#include <string.h>

typedef struct block {
    struct block *next;
    void *device;
    uint64_t bytes;
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block *blocks;
static uint64_t held;

dt_status dt_device_allocate(const dt_device_ops *ops, dt_device *d, size_t bytes, void *out_p)
{
    block *b = dt_alloc(sizeof(*b));
    if (b == NULL) {
        return DT_FAIL(DT_ENOMEM, "out of memory for a block of the device");
    }
    const dt_status st = ops->alloc(d, bytes, &b->device);
    if (st < 0) {
        dt_free(b);
        return st;
    }
    memcpy(out_p, &b->device, sizeof(b->device));
    b->bytes = bytes;
    pthread_mutex_lock(&lock);
    b->next = blocks;
    blocks = b;
    held += bytes;
    pthread_mutex_unlock(&lock);
    return st;
}

void dt_device_free(const dt_device_ops *ops, dt_device *d, void *device)
{
    block *found = NULL;
    pthread_mutex_lock(&lock);
    if (device != NULL) {
        for (block **at = &blocks; *at != NULL; at = &(*at)->next) {
            if ((*at)->device == device) {
                found = *at;
                *at = found->next;
                held -= found->bytes;
                break;
            }
        }
    }
    pthread_mutex_unlock(&lock);
    dt_free(found);
    ops->release(d, device);
}

dt_status dt_device_pin(const dt_device_ops *ops, dt_device *d, size_t bytes, void *out_p)
{
    void *host = NULL;
    DT_TRY(ops->pin(d, bytes, &host));
    memcpy(out_p, &host, sizeof(host));
    return DT_OK;
}

uint64_t dt_device_allocated_bytes(void)
{
    pthread_mutex_lock(&lock);
    const uint64_t bytes = held;
    pthread_mutex_unlock(&lock);
    return bytes;
}
