/* A mote's own rows in its queue: which give way when there is no room, and which go first.
 *
 * Rows of a query lie in the queue in the order of their epochs. Delta compares each with the row
 * that went last of those sampled before it; the row that was sampled last of all that went stays
 * in the queue for that (QUEUE_SENT). Rows of children are not touched: they have been chosen where
 * they come from, and a mote without room for them does not acknowledge. */
#include "query/queueing/queue_discipline.h"

#include <stddef.h>

#include "net/routing/tree.h"
#include "net/transport/outbox.h"
#include "net/transport/queue.h"
#include "net/transport/queue_discipline.h"
#include "query/query_conf.h"
#include "query/queueing/policy.h"

static struct wire_result *row_of(struct queue_record *record)
{
    return (struct wire_result *)record->body;
}
static uint8_t query_of(const struct queue_record *record) { return record->body[0]; }

static struct wire_tally *tally_of(struct queue_record *record)
{
    return (struct wire_tally *)(record->body + record->length - sizeof(struct wire_tally));
}

/* Health reports let rows pass, but no more than ROWS_BEFORE_REPORT. */
static struct {
    uint8_t rows_before; /* rows that have gone since a report had to wait first */
    bool report_waits;   /* the record chosen last lets a report wait */
} reports;

/* Further samples that a row may be the average of. */
#define MORE_MAXIMUM 32767

/* So many rows more were left out. */
static void left_out(struct wire_tally *tally, uint16_t rows)
{
    uint32_t all = (uint32_t)tally->left_out + rows;
    tally->left_out = all > UINT16_MAX ? UINT16_MAX : (uint16_t)all;
}

/* The next of a query's rows that wait. */
static struct queue_record *waiting(struct queue_record *record, uint8_t query)
{
    do
        record = queue_next(record);
    while (record && !(record->own && !record->in_flight && query_of(record) == query));
    return record;
}

/* Of the rows of a query that went, and are still here, the one that was sampled last. */
static struct queue_record *last_gone(uint8_t query)
{
    struct queue_record *last = NULL;
    for (struct queue_record *record = queue_any(NULL); record; record = queue_any(record))
        if (record->own && (record->type == QUEUE_SENT || record->in_flight) &&
            query_of(record) == query && (!last || row_of(record)->epoch > row_of(last)->epoch))
            last = record;
    return last;
}

static uint16_t score(const struct wire_result *row, struct queue_record *compared)
{
    return compared ? policy_difference(row, row_of(compared)) : UINT16_MAX;
}

/* winavg: the two oldest rows become one, the new row among them where there are not two. False:
 * there is only the new one. */
static bool combine(struct wire_result *row, struct wire_tally *tally)
{
    struct queue_record *first = waiting(NULL, row->query), *second;
    if (!first)
        return false;
    if ((second = waiting(first, row->query))) {
        row = row_of(second);
        tally = tally_of(second);
    }
    const struct wire_tally *older = tally_of(first);
    policy_average(row, tally->more + 1, row_of(first), older->more + 1);
    /* at most twice the maximum and one, which fits */
    uint16_t more = (uint16_t)(tally->more + older->more + 1);
    tally->more = more > MORE_MAXIMUM ? MORE_MAXIMUM : more;
    left_out(tally, older->left_out);
    queue_remove(first);
    return true;
}

/* delta: of all rows that wait and the new one the least different is left out, the oldest of
 * several. False: that is the new one. */
static bool evict(const struct wire_result *row, struct wire_tally *tally)
{
    struct queue_record *least = NULL;
    uint16_t lowest = score(row, last_gone(row->query));
    for (struct queue_record *record = waiting(NULL, row->query); record;
         record = waiting(record, row->query))
        if (record->score < lowest || (!least && record->score == lowest)) {
            least = record;
            lowest = record->score;
        }
    if (!least)
        return false;
    struct queue_record *heir = waiting(least, row->query);
    if (heir) {
        heir->apart |= least->apart;
        tally = tally_of(heir);
    }
    left_out(tally, tally_of(least)->left_out);
    left_out(tally, 1);
    queue_remove(least);
    return true;
}

/* Whether there is room for an own row of so many bytes. */
static bool fits(const struct wire_queue *clause, uint16_t size)
{
    if (size > queue_room())
        return false;
    if (!clause || !tree_has_children())
        return true;
    for (struct queue_record *record = queue_any(NULL); record; record = queue_any(record))
        if (record->own)
            size = (uint16_t)(size + sizeof *record + record->length);
    return size <= OWN_ROWS_BYTES;
}

void discipline_row(struct wire_result *row, uint8_t length)
{
    const struct wire_queue *clause = policy_of(row->query);
    struct wire_tally *tally = (struct wire_tally *)((uint8_t *)row + length);
    struct queue_record *last;
    tally->left_out = policy_left_out(row->query, 0);
    tally->more = 0;
    if (clause || tally->left_out)
        length = (uint8_t)(length + sizeof *tally);
    for (;;) {
        uint8_t rows = 0;
        last = NULL;
        for (struct queue_record *at = waiting(NULL, row->query); at;
             at = waiting(at, row->query)) {
            last = at;
            rows++;
        }
        if (fits(clause, sizeof(struct queue_record) + length) &&
            !(clause && clause->size != 0 && rows >= clause->size))
            break;
        if (clause && (clause->policy == WIRE_QUEUE_WINAVG
                           ? combine(row, tally)
                           : clause->policy == WIRE_QUEUE_DELTA && evict(row, tally)))
            continue;
        if (!clause || clause->size == 0)
            queue_lost();
        left_out(tally, 1);
        policy_left_out(row->query, tally->left_out);
        return;
    }
    struct queue_record *record = queue_append(WIRE_PACKET_RESULT, row, length);
    if (!clause)
        return;
    struct queue_record *gone = last_gone(row->query);
    record->own = true;
    record->score = score(row, gone);
    record->apart = gone && last && row_of(gone)->epoch > row_of(last)->epoch;
}

struct queue_record *discipline_next(bool partials)
{
    struct queue_record *record, *report = NULL;
    for (record = queue_next(NULL); record; record = queue_next(record)) {
        if (record->in_flight || (!partials && record->type == WIRE_PACKET_PARTIAL) ||
            (record->own && !policy_may_go(query_of(record))))
            continue;
        if (!queue_is_report(record->type) || reports.rows_before == ROWS_BEFORE_REPORT)
            break;
        if (!report)
            report = record;
    }
    reports.report_waits = record && report;
    if (!record)
        record = report;
    if (!record || !record->own)
        return record;
    const struct wire_queue *clause = policy_of(query_of(record));
    if (!clause || clause->policy != WIRE_QUEUE_DELTA)
        return record;
    struct queue_record *most = record;
    while ((record = waiting(record, query_of(most))))
        if (record->score > most->score)
            most = record;
    return most;
}

uint8_t discipline_length(const struct queue_record *record)
{
    if (!record->own)
        return record->length;
    /* What is zero at its end stays here. */
    const struct wire_tally *tally =
        (const struct wire_tally *)(record->body + record->length - sizeof *tally);
    uint8_t without = tally->more ? 0 : tally->left_out ? sizeof tally->more : sizeof *tally;
    return (uint8_t)(record->length - without);
}

void discipline_on_transmit(struct queue_record *record)
{
    if (queue_is_report(record->type))
        reports.rows_before = 0;
    else if (reports.report_waits)
        reports.rows_before++;
    if (!record->own)
        return;
    const struct wire_queue *clause = policy_of(query_of(record));
    policy_gone(query_of(record));
    if (!clause || clause->policy != WIRE_QUEUE_DELTA)
        return;
    struct queue_record *heir = waiting(record, query_of(record));
    /* Those behind it, as far as none between it and them has gone, are compared with it from now
     * on. */
    for (struct queue_record *later = heir; later && !later->apart;
         later = waiting(later, query_of(record)))
        later->score = score(row_of(later), record);
    if (heir)
        heir->apart = true;
}

void discipline_on_acked(struct queue_record *record)
{
    const struct wire_queue *clause = record->own ? policy_of(query_of(record)) : NULL;
    if (clause && clause->policy == WIRE_QUEUE_DELTA) {
        struct queue_record *last = last_gone(query_of(record));
        if (!last || last == record || row_of(last)->epoch < row_of(record)->epoch) {
            queue_keep(record);
            for (last = queue_any(NULL); last; last = queue_any(last))
                if (last != record && last->type == QUEUE_SENT &&
                    query_of(last) == query_of(record)) {
                    queue_remove(last);
                    return;
                }
            return;
        }
    }
    queue_remove(record);
}

void discipline_on_requeue(struct queue_record *record)
{
    record->in_flight = false;
    record->own = false; /* its score is lost, and it has been counted as gone */
}

void discipline_query_ended(uint8_t query)
{
    struct queue_record *sent = NULL; /* there is one at most */
    struct queue_record *last = NULL;
    for (struct queue_record *record = waiting(NULL, query); record;
         record = waiting(record, query))
        last = record;
    /* There will be no row to say what was left out behind it. */
    if (last)
        left_out(tally_of(last), policy_left_out(query, 0));
    for (struct queue_record *record = queue_any(NULL); record; record = queue_any(record)) {
        if (!record->own || query_of(record) != query)
            continue;
        if (record->type == QUEUE_SENT)
            sent = record;
        else
            record->own = false;
    }
    if (sent)
        queue_remove(sent);
}
