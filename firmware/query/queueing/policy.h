/* What a query's QUEUE clause asks of the queue, and what rows are to each other. Source: TinyDB
 * 2005, 6.3.1. */
#ifndef SKERRY_QUERY_QUEUEING_POLICY_H
#define SKERRY_QUERY_QUEUEING_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "query/program/program.h"
#include "wire.h"

struct query_entry;

/* The clause of a query that this mote holds; NULL without. */
const struct wire_queue *policy_of(uint8_t query);
/* Epochs from one in which a row may go to the next; 1 where any may. */
uint8_t policy_every(const struct query_entry *entry);

/* Sets how many rows the query has left out since its last row that says so; returns how many those
 * were until now. */
uint16_t policy_left_out(uint8_t query, uint16_t rows);

/* Whether a row may go: one may with each epoch that policy_every divides. */
bool policy_may_go(uint8_t query);
/* A row has gone. */
void policy_gone(uint8_t query);

/* How much two rows of a query differ: the columns' differences in their smallest units, added up,
 * to 65535. NULL and a value differ by 65535. */
uint16_t policy_difference(const struct wire_result *a, const struct wire_result *b);
/* Makes the columns of `into` the averages of both rows', where one stands for `weight` samples and
 * the other for `rest`, each 1..32768; rounded to the nearest, halves away from what `into` was.
 * NULL counts for nothing. */
void policy_average(struct wire_result *into, uint16_t weight, const struct wire_result *from,
                    uint16_t rest);

/* A query with the clause has ended: its rows that wait go as they are. Implemented by
 * queueing/queue_discipline. */
void discipline_query_ended(uint8_t query);

#endif
