/* The application as main sees it; what the network calls of it is net/app.h. */
#ifndef SKERRY_QUERY_QUERY_H
#define SKERRY_QUERY_QUERY_H

/* No query is held, and nothing is sampled. */
void query_init(void);

#endif
