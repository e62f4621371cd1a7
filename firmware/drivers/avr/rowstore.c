/* Rows in the ATmega1281's 4 KB EEPROM, behind the settings. */
#include "drivers/rowstore.h"

#include <avr/eeprom.h>
#include <avr/interrupt.h>
#include <avr/io.h>
#include <string.h>

#include "board.h"
#include "drivers/avr/eeprom.h"
#include "wire.h"

#define BLOCKS ((E2END + 1 - EEPROM_SETTINGS) / WIRE_STORE_BLOCK)
/* Rows on their way: one being written, one behind it. */
#define PENDING 2

struct pending {
    uint16_t address;
    uint8_t size, done;
    uint8_t bytes[ROWSTORE_ROW_MAXIMUM];
};

/* Shared with the interrupt handler. */
static struct pending pending[PENDING];
static volatile uint8_t first, count;

/* Interrupts are off and no byte is being written: writes the next one, and asks to be called when
 * it is there. */
static void write_next(void)
{
    while (count > 0 && pending[first].done == pending[first].size) {
        first = (uint8_t)((first + 1) % PENDING);
        count--;
    }
    if (count == 0) {
        EECR &= (uint8_t)~_BV(EERIE);
        return;
    }
    struct pending *row = &pending[first];
    EEAR = row->address + row->done;
    EEDR = row->bytes[row->done++];
    EECR |= _BV(EEMPE); /* EEPE has to follow within four cycles (5.3) */
    EECR |= _BV(EEPE);
    EECR |= _BV(EERIE);
}

ISR(EE_READY_vect) { write_next(); }

/* Nothing is written in the background until `resume`; the byte under way is waited for. */
static void pause(void)
{
    board_interrupts state = board_interrupts_off();
    EECR &= (uint8_t)~_BV(EERIE);
    board_interrupts_restore(state);
    eeprom_busy_wait();
}

static void resume(void)
{
    board_interrupts state = board_interrupts_off();
    write_next();
    board_interrupts_restore(state);
}

void eeprom_read(uint16_t address, void *bytes, uint8_t length)
{
    pause();
    eeprom_read_block(bytes, (const void *)address, length);
    resume();
}

void eeprom_update(uint16_t address, const void *bytes, uint8_t length)
{
    pause();
    eeprom_update_block(bytes, (void *)address, length);
    eeprom_busy_wait();
    resume();
}

uint8_t rowstore_blocks(void) { return BLOCKS; }

uint16_t rowstore_rows(const struct rowstore_ring *ring)
{
    return (uint16_t)ring->blocks * WIRE_STORE_BLOCK / ring->size;
}

static uint16_t address_of(const struct rowstore_ring *ring, uint16_t place)
{
    return (uint16_t)(EEPROM_SETTINGS + (uint16_t)ring->block * WIRE_STORE_BLOCK +
                      place * ring->size);
}

void rowstore_read(const struct rowstore_ring *ring, uint16_t place, void *bytes)
{
    uint16_t address = address_of(ring, place);
    pause();
    eeprom_read_block(bytes, (const void *)address, ring->size);
    /* Rows on their way count as written. */
    for (uint8_t i = 0; i < count; i++) {
        const struct pending *row = &pending[(first + i) % PENDING];
        if (row->address == address)
            memcpy(bytes, row->bytes, ring->size);
    }
    resume();
}

bool rowstore_write(const struct rowstore_ring *ring, uint16_t place, const void *bytes)
{
    board_interrupts state = board_interrupts_off();
    bool room = count < PENDING;
    if (room) {
        struct pending *row = &pending[(first + count) % PENDING];
        row->address = address_of(ring, place);
        row->size = ring->size;
        row->done = 0;
        memcpy(row->bytes, bytes, ring->size);
        if (count++ == 0)
            write_next();
    }
    board_interrupts_restore(state);
    return room;
}
