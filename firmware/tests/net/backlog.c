/* The queue's end towards the radio, for tests of what its policies do. */
#include <string.h>

#include "net/outbox.h"
#include "net/schedule.h"
#include "net/tree.h"

void schedule_queue_grew(void) {}

static bool children;
bool tree_has_children(void) { return children; }
void backlog_children(bool there);
void backlog_children(bool there) { children = there; }

void backlog_forget(void);
uint8_t backlog_take(uint8_t *body);

/* Empties the queue. */
void backlog_forget(void)
{
    queue_forget();
    while (queue_any(NULL))
        queue_remove(queue_any(NULL));
}

/* As uplink takes a record for its frame; returns the length of what travels, 0 where nothing may
 * go. */
uint8_t backlog_take(uint8_t *body)
{
    struct queue_record *record = backlog_next(true);
    if (!record)
        return 0;
    uint8_t length = backlog_length(record);
    memcpy(body, record->body, length);
    backlog_goes(record);
    backlog_gone(record);
    return length;
}
