/* Outside the tree: when a mote listens for a network. */
#ifndef SKERRY_NET_SEARCH_H
#define SKERRY_NET_SEARCH_H

/* This mote is not in a tree, or does not know the time: begins to search, or begins anew. */
void search_begin(void);
/* It has joined. */
void search_end(void);

#endif
