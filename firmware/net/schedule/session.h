/* How old the root's session is. While it is young, motes stay awake: some may live in the one
 * before. */
#ifndef SKERRY_NET_SESSION_H
#define SKERRY_NET_SESSION_H

#include <stdbool.h>

/* A session has begun, in place of another one or, `again`, as the root has restarted; so long it
 * is young. */
void session_begins(bool again);
/* Whether everybody is to stay awake: neighbours that still live in the session before beacon by
 * another clock. */
bool session_is_young(void);

#endif
