/* The network layer as main sees it. */
#ifndef SKERRY_NET_NET_H
#define SKERRY_NET_NET_H

/* Joins the network as the settings say, or begins one as its root. Settings, radio and query must
 * be up. */
void net_init(void);

#endif
