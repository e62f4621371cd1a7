/* Functions that stay functions. */
#ifndef SKERRY_QUERY_CALLS_H
#define SKERRY_QUERY_CALLS_H

/* The compiler copies what it takes for small, or sees called once, into the callers. That is dear
 * where the copies are larger than calls, where most ways through a caller do without it, and where
 * it has a row in its frame, which puts a caller's variables out of an instruction's reach and lies
 * on the stack below all that the caller calls. */
#define NOT_INLINED __attribute__((noinline))

#endif
