/* How long the slots of the levels are. The root makes a table of them from the motes and the
 * traffic that it hears of; beacons carry it, and the round from which it holds. The deepest level
 * has the first slot (TinyDB 2005, 6.1.1). */
#ifndef SKERRY_NET_SLOT_TABLE_H
#define SKERRY_NET_SLOT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "net/mac/mac_conf.h"
#include "wire.h"

/* A session of the root begins: the table holds that all networks begin with. */
void slot_table_forget(void);
/* A round of network time begins: a table that was announced may hold from now on. */
void slot_table_round(uint16_t second);
/* Start and end of the slot of a level in its round, ms; 0 is not a level that sends. */
uint16_t slot_table_start(uint8_t level);
uint16_t slot_table_end(uint8_t level);
/* Its length in cells, 3..88. */
uint8_t slot_table_cells(uint8_t level);
/* When all slots of a round are over, ms: below 1000. */
uint16_t slot_table_over(void);
/* Levels that share the first slot with those next to them. */
bool slot_table_shared(uint8_t level);
/* Bytes of the wire_slots_entry, two at most, with which a beacon's entries begin. */
uint8_t slot_table_length(const uint8_t *entries, uint8_t length);
/* Whether what these say can be. */
bool slot_table_possible(const uint8_t *entries, uint8_t length);
/* Takes them over, of a beacon of this session. */
void slot_table_take(const uint8_t *entries, uint8_t length);
/* Writes them, where they are not those of the beginning; their bytes. */
uint8_t slot_table_write(uint8_t *entries);

/* At the root: a mote's STATUS of its level, bytes of a bundle. */
void slot_table_mote(uint8_t level);
void slot_table_traffic(uint8_t bytes);
/* … and after each round. Motes say their level each `reports` rounds, a power of two, and hear
 * beacons each `windows`. */
void slot_table_decide(uint32_t round, uint16_t reports, uint8_t windows);

#endif
