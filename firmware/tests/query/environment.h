/* What query/ runs on in the host tests: the real kernel over a clock that jumps from timer to
 * timer, and everything below and beside query/ in this one file, steered and read by the tests. */
#ifndef SKERRY_TESTS_ENVIRONMENT_H
#define SKERRY_TESTS_ENVIRONMENT_H

#include <stdbool.h>
#include <stdint.h>

/* A record that query/ queued. */
struct environment_record {
    uint32_t local; /* ticks when it was queued */
    uint8_t type;
    uint8_t length;
    uint8_t body[128];
};

/* Everything as after boot, at a local time, in ticks; network time is unknown. Calls query_init.
 */
void environment_reset(uint32_t local);
/* Network time is `seconds` and `ticks` now and runs `ppm` faster than the local clock. Calls
 * app_time_changed. */
void environment_synchronise(uint32_t seconds, uint16_t ticks, int32_t ppm);
uint32_t environment_local(void);
/* Runs the kernel for `ticks` of local time. */
void environment_run(uint32_t ticks);
/* The attribute's sensor exists and reads `value`, or NULL. */
void environment_sensor(uint8_t attribute, int32_t value, bool null);
/* Ticks an acquisition takes. */
void environment_acquisition_time(uint32_t ticks);
uint16_t environment_acquisitions(void);
/* Acquisitions begun since environment_reset that an attribute was one of. */
uint16_t environment_reads(uint8_t attribute);
uint32_t environment_last_mask(void);
/* Starts an acquisition that is not query/'s; false while another is under way. */
bool environment_foreign_acquisition(void);
/* Parent and level; level 255: none. */
void environment_tree(uint16_t parent, uint8_t level);
/* The last refusal that the gateway was told of, and how many there were. */
struct environment_refusal {
    uint8_t query, reason;
    uint16_t missing;
};
const struct environment_refusal *environment_refusal(void);
uint8_t environment_refusals(void);
/* Events raised, commands run, and the last of these: operation << 16 | argument. */
uint16_t environment_signals(void);
int32_t environment_signal_value(void); /* of the last */
uint16_t environment_actions(void);
int32_t environment_action(void);
/* Whether floods have room for events, as they have after environment_reset. */
void environment_signal_room(bool room);
/* Another short address than 7, until environment_reset. */
void environment_identify(uint16_t node);
/* Whether it is a root; it is not after a reset. */
void environment_root(bool root);
/* Records for which ways have room from now on; none has at the beginning. */
void environment_ways(uint8_t room);
/* The last that a way was given since this was asked; its bytes, 0: none was. */
uint8_t environment_carried(uint16_t *destination, uint8_t *record);
/* Times that the mote has asked to be found. */
uint8_t environment_trails(void);
uint16_t environment_records(void);
const struct environment_record *environment_record(uint16_t index);
void environment_forget_records(void);

#endif
