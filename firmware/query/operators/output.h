/* What becomes of an epoch: a row, a partial state record, an action. */
#ifndef SKERRY_QUERY_OPERATORS_OUTPUT_H
#define SKERRY_QUERY_OPERATORS_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "query/program/query_table.h"

void output_init(void);
/* An epoch of a query that joins nothing: its tuple passes its conditions, or not. */
void output_epoch(struct query_entry *entry, bool passes);
/* A tuple of a join that passes. */
void output_joined(const struct eval_context *context);
/* The last tuple of a join's epoch has been met; `any` of them passed. */
void output_end(struct query_entry *entry, bool any);
/* The one row of what others have told of an epoch, which is no aggregate's, passes or not. */
void output_gathered(const struct eval_context *context, bool passes);
/* Rows and partial state records produced since output_init. */
uint32_t output_rows(void);

#endif
