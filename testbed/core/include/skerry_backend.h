/* What a CPU back-end offers the core, and what the core offers it. A back-end is a shared library
 * that exports `const skerry_backend *skerry_backend_get(void)`. Times are virtual ns since the
 * start of the world. */
#ifndef SKERRY_BACKEND_H
#define SKERRY_BACKEND_H

#include <stdint.h>

#define SKERRY_BACKEND_ABI 6

/* Output pins that the board gives a meaning. */
enum skerry_pin {
    SKERRY_PIN_RADIO_SELECT, /* low: SPI transfer */
    SKERRY_PIN_RADIO_SLEEP,  /* SLP_TR */
    SKERRY_PIN_RADIO_RESET,  /* low: reset; a radio on chip is reset with the chip */
    SKERRY_PIN_ACCEL_POWER,  /* the accelerometer alone (IRIS) */
    SKERRY_PIN_SENSOR_POWER, /* all of an analogue sensor board */
    SKERRY_PIN_RED,          /* LEDs, and a pin for an actuator: 1 is on */
    SKERRY_PIN_GREEN,
    SKERRY_PIN_YELLOW,
    SKERRY_PIN_ACTUATOR,
};

/* Analogue inputs, by what is connected to them. */
enum skerry_input {
    SKERRY_INPUT_TEMPERATURE,
    SKERRY_INPUT_HUMIDITY,
    SKERRY_INPUT_LIGHT,
    SKERRY_INPUT_ACCEL_X,
    SKERRY_INPUT_ACCEL_Y
};

/* CPU sleep states the energy meter tells apart. */
enum skerry_cpu_state { SKERRY_CPU_ACTIVE, SKERRY_CPU_IDLE, SKERRY_CPU_SAVE, SKERRY_CPU_STATES };

/* The radio that the core models for the mote. */
enum skerry_radio {
    SKERRY_RADIO_RF230,  /* on SPI and pins */
    SKERRY_RADIO_CC2538, /* on chip: registers */
};

/* Answer to a register access of a radio on chip. */
enum skerry_access {
    SKERRY_ACCESS_DONE,
    SKERRY_ACCESS_UNKNOWN, /* no such register in the model */
    /* a use that the chip, or another model of it, would take otherwise than meant */
    SKERRY_ACCESS_WRONG,
};

/* Calls from the back-end into the core; `mote` is what create() was given. All carry the exact
 * virtual time. */
typedef struct {
    void *mote;
    void (*pin)(void *mote, uint64_t now_ns, enum skerry_pin pin, int level);
    uint8_t (*spi)(void *mote, uint64_t now_ns, uint8_t out);
    /* Register of a radio on chip, by its offset in bytes from the radio's base. */
    enum skerry_access (*radio_read)(void *mote, uint64_t now_ns, uint32_t offset, uint32_t *value);
    enum skerry_access (*radio_write)(void *mote, uint64_t now_ns, uint32_t offset, uint32_t value);
    void (*uart)(void *mote, uint64_t now_ns, uint8_t byte);
    /* Two-wire bus: each returns 1 for an acknowledge. */
    int (*twi_start)(void *mote, uint64_t now_ns, uint8_t address, int read);
    int (*twi_write)(void *mote, uint64_t now_ns, uint8_t byte);
    uint8_t (*twi_read)(void *mote, uint64_t now_ns);
    void (*twi_stop)(void *mote, uint64_t now_ns);
    /* Microvolts at an analogue input, asked when a conversion starts. */
    uint32_t (*adc)(void *mote, uint64_t now_ns, enum skerry_input input);
    /* One line about something the model does not know; the mote runs on. */
    void (*message)(void *mote, uint64_t now_ns, const char *text);
    /* Under a debugger, before the instruction at `address`: 1 when the CPU is to stop there. */
    int (*instruction)(void *mote, uint32_t address);
} skerry_host;

typedef struct skerry_cpu skerry_cpu;

#define SKERRY_REGISTER_BYTES 8

/* What a debugger needs of a CPU. Numbers of registers and addresses of memory are GDB's for the
 * architecture, values have their least significant byte first. But for run() nothing here lets
 * time pass or changes what the CPU does next, unless it writes. A CPU that has not had power yet
 * shows what it will have after its reset, and cannot be written; one that has lost it shows what
 * it had. */
typedef struct {
    /* GDB's target description (XML); NULL where it knows the registers by the architecture. */
    const char *description;
    /* A debugger comes, or goes: in between, the core calls this run(), not the back-end's. */
    void (*attach)(skerry_cpu *cpu, int attached);
    /* As the back-end's run(), to the bit, but asks host.instruction() before each instruction.
     * Where that says so it returns before the instruction with *stopped = 1, and goes on from
     * there when called again, by either run(). */
    uint64_t (*run)(skerry_cpu *cpu, uint64_t until_ns, int *stopped);
    /* Number of bytes, at most SKERRY_REGISTER_BYTES; 0: no such register. */
    uint32_t (*register_read)(skerry_cpu *cpu, uint32_t number, uint8_t *value);
    /* -1: no such register, or not of that length, or no power. */
    int (*register_write)(skerry_cpu *cpu, uint32_t number, const uint8_t *value, uint32_t length);
    /* How many bytes from `address` on were read, or written; 0 when there is no memory. What
     * changes when it is read (a FIFO) is not read; a write to a peripheral does what the program's
     * would. */
    uint32_t (*memory_read)(skerry_cpu *cpu, uint32_t address, uint8_t *data, uint32_t length);
    uint32_t (*memory_write)(skerry_cpu *cpu, uint32_t address, const uint8_t *data,
                             uint32_t length);
} skerry_debug;

typedef struct {
    uint32_t abi;
    const char *name;
    enum skerry_radio radio;
    /* Supply current in each skerry_cpu_state, mA. */
    double current_ma[SKERRY_CPU_STATES];
    /* NULL with a line in error (256 bytes) on failure. */
    skerry_cpu *(*create)(const skerry_host *host, const char *elf, char *error);
    void (*free)(skerry_cpu *cpu);
    /* Power-on at `now_ns`: RAM and registers lost, non-volatile memory kept. */
    void (*power_on)(skerry_cpu *cpu, uint64_t now_ns);
    /* Runs until a virtual time; returns when the CPU next has something to do if nothing happens
     * outside
     * (<= until_ns when it is awake). */
    uint64_t (*run)(skerry_cpu *cpu, uint64_t until_ns);
    /* Level of the radio's interrupt line. */
    void (*radio_interrupt)(skerry_cpu *cpu, int level);
    /* A byte arrives at the UART. 0 when its buffer is full. */
    int (*uart_receive)(skerry_cpu *cpu, uint8_t byte);
    /* The board's button, which pulls its pin low. */
    void (*button)(skerry_cpu *cpu, int down);
    /* mV; 0: it stays as it was, and what measures it fails. */
    void (*supply)(skerry_cpu *cpu, uint32_t millivolts);
    /* Error of the crystal in ppm, from now on. */
    void (*clock)(skerry_cpu *cpu, double ppm);
    /* Non-volatile settings: EEPROM, or the flash that stands for it. */
    /* Erases it all, and writes its beginning. */
    int (*eeprom_write)(skerry_cpu *cpu, const uint8_t *data, uint32_t length);
    uint32_t (*eeprom_read)(const skerry_cpu *cpu, uint8_t *data, uint32_t capacity);
    /* ns spent in each skerry_cpu_state since creation, up to `now_ns`, until which the CPU has
     * nothing to do. */
    void (*state_times)(const skerry_cpu *cpu, uint64_t now_ns, uint64_t times[SKERRY_CPU_STATES]);
    /* "" or what stopped the CPU. */
    const char *(*fault)(const skerry_cpu *cpu);
    uint64_t (*resets)(const skerry_cpu *cpu);
    uint64_t (*memory)(const skerry_cpu *cpu);
    /* NULL: no debugger for this CPU. */
    const skerry_debug *debug;
    /* From now on the crystal's timer is read, and its alarms come, in steps of so many ns; 0: in
     * its ticks. NULL where nobody emulates it so. */
    void (*timer_step)(skerry_cpu *cpu, uint64_t ns);
    /* NULL, all three, where flash is not counted. How often each page was erased; the number of
     * pages, at most capacity. */
    uint32_t (*wear)(const skerry_cpu *cpu, uint32_t *erasures, uint32_t capacity);
    /* Power is to go in the midst of writing a word or of erasing a page, after so many of them;
     * how far that one comes is drawn by the seed. */
    void (*cut)(skerry_cpu *cpu, uint32_t after, uint32_t seed);
    /* Whether it has gone, which is told once. */
    int (*power_lost)(skerry_cpu *cpu);
} skerry_backend;

const skerry_backend *skerry_backend_get(void);

#endif
