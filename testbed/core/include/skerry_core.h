/* The testbed's core: emulated motes in lock-step on one radio medium.
 *
 * Knows no CPU: motes come from back-ends (skerry_backend.h) loaded at run time. Knows no geometry:
 * the caller sets the gain of every directed link. All times are virtual nanoseconds since the
 * start; every random choice comes from the world's seed, so that a run is repeatable to the bit.
 *
 * Functions that can fail return 0 or a handle on success, and -1 or NULL on failure, with one line
 * in skerry_error(). One world is used by one thread. Read by cffi as it stands: plain declarations
 * and #define of integers only. */

#include <stdint.h>

typedef struct skerry_world skerry_world;

typedef struct {
    uint64_t seed;
    uint64_t quantum_ns; /* lock-step quantum; 0 means the default of 100 us */
    double noise_dbm;    /* noise floor, e.g. -98 */
    double capture_db;   /* a frame survives interference this much weaker than itself, e.g. 3 */
    int32_t collisions;  /* 0: overlapping frames do not hurt each other */
} skerry_world_config;

typedef struct {
    uint16_t node;         /* short address, for reports; the firmware reads its own from EEPROM */
    const char *backend;   /* name of a loaded back-end, e.g. "avr" */
    const char *elf;       /* path of the firmware */
    const uint8_t *eeprom; /* initial non-volatile settings, may be NULL */
    uint32_t eeprom_length;
    double clock_ppm; /* error of the 32,768 Hz crystal */
    double supply_mv; /* battery voltage, e.g. 3000 */
    uint64_t boot_ns; /* virtual time of power-on */
} skerry_mote_config;

/* What a mote's surroundings offer to its sensors, in SI units; a NaN makes the sensor fail. What
 * the supply is then, or where it would not be more than 0 V, stays as it was. */
#define SKERRY_SENSOR_TEMPERATURE 0 /* degC */
#define SKERRY_SENSOR_HUMIDITY 1    /* %RH */
#define SKERRY_SENSOR_LIGHT 2       /* lx */
#define SKERRY_SENSOR_ACCEL_X 3     /* g */
#define SKERRY_SENSOR_ACCEL_Y 4     /* g */
#define SKERRY_SENSOR_SUPPLY 5      /* V, overrides supply_mv */

/* Energy in joule and time in seconds, per component and state, since power-on. */
typedef struct {
    double cpu_active_j, cpu_idle_j, cpu_save_j;
    double radio_sleep_j, radio_off_j, radio_idle_j, radio_rx_j, radio_tx_j;
    double sensors_j;
    double cpu_active_s, cpu_idle_s, cpu_save_s;
    double radio_sleep_s, radio_off_s, radio_idle_s, radio_rx_s, radio_tx_s;
} skerry_energy;

typedef struct {
    uint64_t sent; /* frames put on the air, acknowledgements excluded */
    uint64_t acks_sent;
    uint64_t received;  /* frames whose FCS was right, at a receiver that listened */
    uint64_t lost_link; /* to noise or reception probability, at a receiver that listened */
    uint64_t lost_collision;
    uint64_t cca_busy;
    uint64_t resets;            /* watchdog and commanded */
    uint64_t crashes;           /* CPU stopped on a fault; skerry_mote_fault says which */
    uint64_t lost_interference; /* would have been received but for a source of interference */
    uint64_t overrun; /* received, and not fetched by the firmware before the next one came */
} skerry_counters;

/* One frame that was on the air. */
typedef struct {
    uint64_t start_ns; /* of the preamble */
    uint64_t end_ns;
    uint32_t sender;      /* mote index */
    uint32_t received_by; /* number of motes that received it intact */
    uint8_t length;       /* PSDU with FCS, <= 127 */
    uint8_t psdu[127];
} skerry_frame;

const char *skerry_error(void);
/* The first 32 bits of this file's SHA-256, as it was when the core was built: whoever calls by it
 * sees whether both belong together. */
uint32_t skerry_interface(void);

skerry_world *skerry_world_create(const skerry_world_config *config);
void skerry_world_free(skerry_world *world);
/* Loads a back-end library; it names itself. */
int skerry_backend_load(skerry_world *world, const char *path);
/* Index of the new mote, 0.. in order of creation; -1 on failure. */
int skerry_mote_add(skerry_world *world, const skerry_mote_config *config);

/* Directed link. gain_db: received minus transmitted power; -1000 for none. prr: probability that a
 * frame of 100 bytes is received in silence, 0..1; NaN: from signal to noise (O-QPSK, 802.15.4-2006
 * E.4.1.8). */
int skerry_link_set(skerry_world *world, uint32_t from, uint32_t to, double gain_db, double prr);

/* Losses in bursts (Gilbert-Elliott in continuous time) on a link that there is: it is good and bad
 * in turn, for exponentially distributed times with these means, s; while bad, a frame of 100 bytes
 * arrives `reception` (0..1) times as often as the link says. Changes follow from the seed alone:
 * two links with one seed are bad together. bad_s = 0 ends it. A link that is removed loses its
 * bursts. */
int skerry_link_bursts(skerry_world *world, uint32_t from, uint32_t to, double good_s, double bad_s,
                       double reception, uint64_t seed);

/* Something else on the air: on for exponentially distributed times with mean on_s, off for such
 * with mean off_s (0: never off). */
typedef struct {
    int32_t channel; /* 11..26; radios on others do not notice */
    double on_s, off_s;
    uint64_t begin_ns, end_ns;
    uint64_t seed;
} skerry_interference_config;
/* Number of the new source, 0.. in order of creation. It raises the noise, and the energy that a
 * clear-channel assessment sees. */
int skerry_interference_add(skerry_world *world, const skerry_interference_config *config);
/* Its power at a mote while it is on, dBm; -200 or less: none (as at first). */
int skerry_interference_level(skerry_world *world, uint32_t source, uint32_t mote, double dbm);

/* Runs all motes up to a virtual time. Returns early, with 1, when skerry_world_stop() was called
 * from another thread or a signal handler. */
int skerry_world_run(skerry_world *world, uint64_t until_ns);
/* The same by slices, each up to a multiple of `slice_ns`: returns at the end of the first in which
 * there was something to read, of frames, messages or the serial line of mote `line`, or in which
 * a debugger may have stopped a mote. */
int skerry_world_watch(skerry_world *world, uint32_t line, uint64_t slice_ns, uint64_t until_ns);
void skerry_world_stop(skerry_world *world);
uint64_t skerry_world_now(const skerry_world *world);

int skerry_sensor_set(skerry_world *world, uint32_t mote, int32_t sensor, double value);
/* Bytes the mote sent on its UART since the last call; at most capacity. */
int skerry_uart_read(skerry_world *world, uint32_t mote, uint8_t *data, uint32_t capacity);
/* Queues bytes for the mote's receiver, delivered at its baud rate; returns how many fitted. */
int skerry_uart_write(skerry_world *world, uint32_t mote, const uint8_t *data, uint32_t length);

/* Faults. */
/* power off, for good or until reboot */
int skerry_mote_kill(skerry_world *world, uint32_t mote);
/* power cycle: RAM lost, EEPROM kept */
int skerry_mote_reboot(skerry_world *world, uint32_t mote);
/* … that is erased and written before it has power again: as at a first start */
int skerry_mote_flash(skerry_world *world, uint32_t mote, const uint8_t *data, uint32_t length);
/* power goes, and comes back at once, in the midst of writing a word of flash or erasing a page,
 * after so many of them; how far that one comes is drawn by the seed. -1 where flash is not
 * counted. */
int skerry_mote_cut(skerry_world *world, uint32_t mote, uint32_t after, uint32_t seed);
int skerry_mote_clock(skerry_world *world, uint32_t mote, double ppm);
/* From now on a CC2538 mote is modelled as simply as Renode's is: its sleep timer goes on in
 * steps of so many ns, and the radio shows itself as sending for `tail_reads` (at most 255) reads
 * of FSMSTAT1 after a frame. 0, 0 ends it. -1 for a mote of another board. */
int skerry_mote_coarse(skerry_world *world, uint32_t mote, uint64_t timer_step_ns,
                       uint32_t tail_reads);
/* Presses the mote's button, or lets it go. */
int skerry_mote_button(skerry_world *world, uint32_t mote, int down);
/* What its firmware has switched on: bit 0 the red LED, 1 the green, 2 the yellow, 3 the actuator
 * pin; -1 on failure. */
int skerry_mote_outputs(const skerry_world *world, uint32_t mote);
int skerry_mote_alive(const skerry_world *world, uint32_t mote);
/* "" or what stopped the CPU, with its program counter. */
const char *skerry_mote_fault(const skerry_world *world, uint32_t mote);

int skerry_mote_energy(const skerry_world *world, uint32_t mote, skerry_energy *energy);
int skerry_mote_counters(const skerry_world *world, uint32_t mote, skerry_counters *counters);
int skerry_mote_eeprom(const skerry_world *world, uint32_t mote, uint8_t *data, uint32_t capacity);
/* Lines, each ended by a newline, about what motes did that their model does not know, since the
 * last call; returns their length. */
int skerry_messages_read(skerry_world *world, char *text, uint32_t capacity);
/* Bytes of host memory the mote holds. */
/* How often each page of flash was erased; the number of pages, 0 where that is not counted. */
int skerry_mote_wear(const skerry_world *world, uint32_t mote, uint32_t *erasures,
                     uint32_t capacity);
uint64_t skerry_mote_memory(const skerry_world *world, uint32_t mote);

/* Frames that ended since the last call, oldest first; returns how many were written. The core
 * keeps at most 65,536; skerry_frames_dropped() counts what was overwritten. */
int skerry_frames_read(skerry_world *world, skerry_frame *frames, uint32_t capacity);
uint64_t skerry_frames_dropped(const skerry_world *world);

/* A debugger at a mote. Numbers of registers and addresses are GDB's for its architecture. */
#define SKERRY_STOP_BREAKPOINT 1
#define SKERRY_STOP_STEP 2
#define SKERRY_STOP_WATCHPOINT 3 /* what it watches has changed */
#define SKERRY_STOP_FAULT 4      /* the CPU goes no further: skerry_mote_fault() says why */
/* Called within skerry_world_run() when a mote under a debugger stops before an instruction: the
 * virtual time of all motes stands still until it returns, and then the mote goes on. Of this
 * interface it may only call what follows here, and what reads. `address`: of the watchpoint. */
typedef void (*skerry_stop_handler)(void *context, uint32_t mote, int32_t reason, uint32_t address);
void skerry_debug_handler(skerry_world *world, skerry_stop_handler handler, void *context);
/* From now on the mote can be stopped, and its CPU takes longer; else it does what it would
 * without, to the bit. Needs a handler. */
int skerry_debug_attach(skerry_world *world, uint32_t mote);
/* Takes its breakpoints and watchpoints along. */
int skerry_debug_detach(skerry_world *world, uint32_t mote);
/* GDB's target description (XML), "" where it needs none; NULL on failure. */
const char *skerry_debug_description(const skerry_world *world, uint32_t mote);
/* Bytes of the register, at most 8. */
int skerry_debug_register_read(skerry_world *world, uint32_t mote, uint32_t number, uint8_t *value);
int skerry_debug_register_write(skerry_world *world, uint32_t mote, uint32_t number,
                                const uint8_t *value, uint32_t length);
/* How many bytes from `address` on were read or written; -1 for none. */
int skerry_debug_memory_read(skerry_world *world, uint32_t mote, uint32_t address, uint8_t *data,
                             uint32_t length);
int skerry_debug_memory_write(skerry_world *world, uint32_t mote, uint32_t address,
                              const uint8_t *data, uint32_t length);
/* Stops before the instruction at `address`, at most 64 of them. Setting one that is set, or
 * clearing one that is not, changes nothing. */
int skerry_debug_breakpoint(skerry_world *world, uint32_t mote, uint32_t address, int set);
/* Stops after the instruction that changes any of these bytes, whatever wrote them; at most 8 of at
 * most 64 bytes. */
int skerry_debug_watchpoint(skerry_world *world, uint32_t mote, uint32_t address, uint32_t length,
                            int set);
/* When the mote goes on it stops after one instruction, or after the first that leaves [from, to).
 * An instruction after which the CPU sleeps ends when it wakes. */
int skerry_debug_step(skerry_world *world, uint32_t mote, uint32_t from, uint32_t to);
/* When the mote goes on it does so to a breakpoint or watchpoint (as at first). */
int skerry_debug_continue(skerry_world *world, uint32_t mote);
