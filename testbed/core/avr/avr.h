/* Inside the AVR back-end: an ATmega1281 by libsimavr.
 *
 * Copyright (c) 2026 the skerry authors. These files are MIT, but the library they are built into
 * links libsimavr and is therefore GPL-3 as a whole: docs/licences.md. */
#ifndef AVR_H
#define AVR_H

#include <stdbool.h>
#include <stdint.h>

#include <simavr/sim_avr.h>

#include "instructions.h"
#include "skerry_backend.h"

#define EEPROM_BYTES 4096
/* Registers and RAM (2549Q, 8.2). */
#define DATA_BYTES 0x2200U

enum twi_phase { TWI_CLOSED, TWI_ADDRESS, TWI_WRITING, TWI_READING };

struct skerry_cpu {
    skerry_host host;
    avr_t *avr;
    const struct image *image;
    struct image *own; /* the image where something has written to it since; else NULL */
    uint8_t eeprom[EEPROM_BYTES];
    uint64_t base_ns, base_cycle; /* cycle base_cycle happens at base_ns */
    double ns_per_cycle, ppm;
    uint32_t millivolts;
    uint64_t slept[SKERRY_CPU_STATES]; /* cycles of this power-on */
    uint64_t times[SKERRY_CPU_STATES]; /* ns of earlier ones */
    uint64_t resets;
    bool powered, uart_full;
    bool supply_unknown; /* the band gap fails, by which it is measured */
    enum twi_phase twi_phase;
    uint64_t latched; /* cycle at which timer 2 has taken over what was written last */
    char fault[128];
    void (*core_reset)(struct avr_t *);
};

/* ---- avr.c ---- */
/* Until a virtual time, or with `stopped` to where a debugger stops it. */
uint64_t avr_debug_run(skerry_cpu *cpu, uint64_t until, int *stopped);
/* Copies what the CPU's EEPROM holds to cpu->eeprom. */
void eeprom_save(skerry_cpu *cpu);

/* ---- image.c ---- */
/* NULL with a line in `error` (256 bytes). */
const struct image *image_load(const char *path, char *error);
/* Writes to the flash of this CPU alone. */
void image_write(skerry_cpu *cpu, uint32_t address, const uint8_t *data, uint32_t length);

/* ---- decode.c ---- */
/* Decodes anew what is in these bytes of the flash. */
void decode(struct image *image, uint32_t address, uint32_t length);

/* ---- execute.c ---- */
/* As simavr's avr_run_one(), to the bit: runs until a timer is due, an interrupt is, or the CPU
 * sleeps; returns the address to go on at. */
avr_flashaddr_t execute(skerry_cpu *cpu);

/* ---- debug.c ---- */
extern const skerry_debug avr_debug;

#endif
