/* What content routing knows while it is needed. It lies in memory that queries lend. */
#ifndef SKERRY_NET_CONTENT_STATE_H
#define SKERRY_NET_CONTENT_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "join/search.h"
#include "net/transport/transport_conf.h"
#include "wire.h"

/* Children in all trees of which a mote knows what is below them; where it has more, it sends
 * searches to all. */
#define CHILDREN 12
/* Of a hand: bits behind those of the children. */
#define TO_ALL (1U << 14)
#define TO_PARENT (1U << 15)
/* Bytes of a path vector that an answer goes by. */
#define ANSWER_VECTOR WIRE_VECTOR_MAXIMUM

/* A search that this mote passes on. */
struct hand {
    struct search search;
    uint16_t token;
    uint16_t next;  /* who is to have it: a bit for each child, TO_ALL and TO_PARENT */
    uint8_t frames; /* that have gone */
    uint8_t tries;  /* windows in which the next one did not acknowledge it */
    bool used : 1;
    bool has : 1; /* this mote has what is searched for */
    bool due : 1; /* it may go in this window */
};

struct content {
    struct summary_shape shape;
    uint8_t attribute;
    uint8_t left; /* control windows until all of this is forgotten */
    bool all_awake;
    /* ---- trees ---- */
    bool has;
    struct summary_value value;
    uint16_t roots[WIRE_SEARCH_TREES];
    struct far_place in_trees[WIRE_SEARCH_TREES];
    uint8_t silent[WIRE_SEARCH_TREES]; /* control windows since the parent was heard */
    uint8_t more;                      /* as in struct search_mote */
    struct search_child children[CHILDREN];
    uint8_t again; /* control windows in which this mote is to tell where it stands */
    uint8_t told;  /* times that it has in this one */
    bool due;      /* it is to, in this one */
    /* ---- searches ---- */
    struct hand hands[WIRE_SEARCH_TREES];
    uint8_t sending; /* whose frame is on its way, and to whom */
    uint16_t sending_to;
    struct {
        uint16_t seeker, token;
        uint8_t trees; /* a bit for each in which it was here */
        bool answered;
    } last;
    struct {
        struct summary_ask ask;
        uint16_t token;
        uint8_t wait; /* control windows until it begins; 0: there is none */
    } own;
    struct {
        uint16_t seeker;
        struct wire_answer record;
        uint8_t tries; /* that are left; 0: there is none to send */
        uint8_t length;
        uint8_t vector[ANSWER_VECTOR];
    } answer;
};

/* NULL: there is none, or queries have taken the memory back. */
struct content *content_state(void);
/* This mote as searches come to it; `linked` has room for NEIGHBOURS numbers, or is NULL. */
void content_mote(const struct content *content, struct search_mote *mote, uint16_t *linked);
/* A child that does not answer is one no more. */
void content_forget_child(struct content *content, uint8_t place);
/* A control window begins; and frames of searches, likewise. */
void searches_window(struct content *content);
bool searches_waiting(const struct content *content);
bool searches_send(struct content *content);

#endif
