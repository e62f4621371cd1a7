/* What follows in routing from the passing of a control window. */
#ifndef SKERRY_NET_AGEING_H
#define SKERRY_NET_AGEING_H

/* To be called after each, in the tree and outside: what has not been heard in it is older by one.
 */
void routing_age(void);

#endif
