/* Functions that stay functions, so that the stack stays small. */
#ifndef SKERRY_LIB_CALLS_H
#define SKERRY_LIB_CALLS_H

/* What the compiler takes for small, or sees called once, it copies into the caller, and the copy's
 * variables lie in the caller's frame, beneath all that the caller calls. This keeps a row or
 * another large variable out of the frame of a caller that goes deeper without it. */
#define NOT_INLINED __attribute__((noinline))

#endif
