/* When pages are erased: at a quiet moment soon after the log has begun a page. */
#ifndef SKERRY_STORAGE_TIDY_H
#define SKERRY_STORAGE_TIDY_H

#include <stdbool.h>

/* The log has something to do. */
void tidy_later(void);

/* Implemented by net/schedule/window: whether the mote may stall, of which nobody is to notice. The
 * radio may be on only where it is `urgent`. */
bool tidy_allowed(bool urgent);

#endif
