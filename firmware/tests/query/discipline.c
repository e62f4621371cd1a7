/* The queue's end towards the radio, for tests of what its policies do. */
#include <string.h>

#include "net/routing/tree.h"
#include "net/transport/outbox.h"
#include "net/transport/queue_discipline.h"
#include "net/transport/transport_ops.h"

void queue_grew(void) {}

static bool children;
bool tree_has_children(void) { return children; }
void queue_children(bool there);
void queue_children(bool there) { children = there; }

void queue_empty(void);
uint8_t queue_take(uint8_t *body);

/* Empties the queue. */
void queue_empty(void)
{
    queue_forget();
    while (queue_any(NULL))
        queue_remove(queue_any(NULL));
}

/* As uplink takes a record for its frame; returns the length of what travels, 0 where nothing may
 * go. */
uint8_t queue_take(uint8_t *body)
{
    struct queue_record *record = discipline_next(true);
    if (!record)
        return 0;
    uint8_t length = discipline_length(record);
    memcpy(body, record->body, length);
    discipline_on_transmit(record);
    discipline_on_acked(record);
    return length;
}
