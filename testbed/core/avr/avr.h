/* Inside the AVR back-end: an ATmega1281 by libsimavr.
 *
 * Copyright (c) 2026 the skerry authors. These files are MIT, but the library they are built into
 * links libsimavr and is therefore GPL-3 as a whole: docs/licences.md. */
#ifndef AVR_H
#define AVR_H

#include <stdbool.h>
#include <stdint.h>

#include <simavr/sim_avr.h>

#include "skerry_backend.h"

#define EEPROM_BYTES 4096
#define FLASH_BYTES (128U * 1024U)
/* Registers and RAM (2549Q, 8.2). */
#define DATA_BYTES 0x2200U

enum twi_phase { TWI_CLOSED, TWI_ADDRESS, TWI_WRITING, TWI_READING };

struct skerry_cpu {
    skerry_host host;
    avr_t *avr;
    uint8_t *image;
    uint32_t image_length;
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

/* ---- debug.c ---- */
extern const skerry_debug avr_debug;

#endif
