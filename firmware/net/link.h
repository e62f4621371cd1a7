/* The root's serial line to the gateway: link frames in COBS, reliable both ways (skerry_protocol/framing.py). */
#ifndef SKERRY_NET_LINK_H
#define SKERRY_NET_LINK_H

/* At the root only. */
void link_init(void);
/* There may be records to send. */
void link_pump(void);

#endif
