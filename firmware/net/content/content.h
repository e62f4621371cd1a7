/* Content routing: motes find others by what never changes on them (Mihaylov et al. 2010, appendix
 * C). A SEARCH command has all motes grow three trees and tell their parents what is below, and
 * one of them search. All of it ends by itself, and where queries need the memory. */
#ifndef SKERRY_NET_CONTENT_H
#define SKERRY_NET_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

/* ---- what has come ---- */
/* The arguments of a SEARCH; what cannot be is left alone. */
void content_command(uint16_t token, const uint8_t *arguments, uint8_t length);
/* CONTENT and SEARCH from neighbours; false: malformed. */
bool content_heard(uint16_t from, const uint8_t *body, uint8_t length);
bool search_heard(uint16_t from, const uint8_t *body, uint8_t length);
/* An answer to this mote's search has come (false: malformed), or one was not carried on from
 * here. */
bool answer_came(uint8_t hops, const uint8_t *record, uint8_t length);
void answer_lost(uint8_t outcome, const uint8_t *record, uint8_t length);

/* ---- in control windows ---- */
/* One begins; `all_awake`: … in which all motes are. */
void content_window(bool all_awake);
bool content_waiting(void);
/* Sends a frame; false: there is none to send. */
bool content_send(void);

/* ---- implemented by net.c ---- */
/* A record is to go to the gateway. */
void content_tell(const struct wire_found *record);

#endif
