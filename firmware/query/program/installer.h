/* Puts programs together from fragments, begins queries and ends them. */
#ifndef SKERRY_QUERY_PROGRAM_INSTALLER_H
#define SKERRY_QUERY_PROGRAM_INSTALLER_H

#include <stdbool.h>
#include <stdint.h>

#include "net/app.h"
#include "query/program/query_table.h"

/* Nothing has been refused. */
void installer_init(void);
/* As app_install; a program that becomes whole is not planned yet. */
enum app_outcome installer_install(const struct wire_query_install *install, uint8_t length);
/* Ends what an entry holds, whole or not, and gives its memory back. */
void installer_free(struct query_entry *entry);
/* As app_stop. */
void installer_stop(uint8_t query);
/* Keeps of a query, which may be held already, only the route that leads past this mote; false:
 * there is no room. */
bool installer_pass_over(uint8_t query, uint16_t version, const struct wire_route *route);
/* Whether a query of this route applies to this mote or below it; true where its tree is not held.
 * Implemented by routes/srt. */
bool route_applies(const struct wire_route *route);

#endif
