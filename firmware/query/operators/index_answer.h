/* What is asked of an index by the gateway, on a mote that stores (net/app.h, app_index_command).
 */
#ifndef SKERRY_QUERY_OPERATORS_INDEX_ANSWER_H
#define SKERRY_QUERY_OPERATORS_INDEX_ANSWER_H

#include <stdbool.h>

/* Whether this mote is looking through what it has. */
bool index_answers(void);

#endif
