/* A way from a mote to another one, as one that it leads by knows it. */
#ifndef SKERRY_NET_WAY_H
#define SKERRY_NET_WAY_H

#include <stdbool.h>
#include <stdint.h>

/* Openings of a way that are counted in its number: one that comes round is told from one that was
 * begun later, and may come by others. */
#define WAY_OPENINGS 8

struct way {
    uint16_t source; /* where it begins; WIRE_NO_NODE: free */
    uint16_t destination;
    uint16_t previous;  /* by whom it comes; WIRE_NO_NODE: it begins here */
    uint16_t next;      /* by whom it goes on; WIRE_NO_NODE: it ends here, or that is not known */
    uint8_t number;     /* of the source's, and of its opening */
    uint8_t hop : 7;    /* from the source */
    bool by_vector : 1; /* it leads by motes that its source has named */
    uint8_t sequence;   /* of the last record that came, or that began here */
    uint8_t every : 4;  /* its cells are in one round of 2 to this power */
    uint8_t tries : 4;  /* to open it on, in vain */
    uint8_t idle : 5;   /* rounds with cells of it, in a row, in which nothing came or went */
    bool down : 1;      /* it comes by a trail, and does not go up any more */
    bool opening : 1;   /* the next mote has not acknowledged it yet */
    bool lost : 1;      /* it does not lead on, and the previous mote is to be told */
    bool due : 1;       /* … it can be, in this window */
    bool by_place : 1;  /* it leads to a place, or to a mote by where that stands */
    bool ends : 1;      /* it leads no further than here */
    uint8_t vain : 2;   /* cells, in a row, in which its next mote acknowledged nothing */
    bool back : 1;      /* it is lost as it would lead back to the previous mote */
    bool denied : 1;    /* the previous mote has no trail to the destination, … */
    bool denies : 1;    /* … nor has this one, which the next is to know */
    bool confirms : 1;  /* it leads to a place, which the previous mote is to know … */
    bool ready : 1;     /* … and does: what begins here may go */
    bool awaits : 1;    /* it has gone on in this window: where it leads may be told in it, too */
    bool deaf : 1;      /* its next mote has not acknowledged it in the last window */
};

/* ---- implemented by carried: records that wait for a way ---- */
bool way_has_records(const struct way *way);
/* Nothing went on it in its last rounds, nor waits, and nobody has it opened to a place, or is yet
 * to send by it for the first time: another one may take its room. */
bool way_is_idle(const struct way *way);
/* It is forgotten without a word, given up, or ends where it begins: they are dropped, lost or have
 * arrived. */
void way_drops_records(const struct way *way);
void way_loses_records(const struct way *way);
void way_delivers_records(const struct way *way);

#endif
