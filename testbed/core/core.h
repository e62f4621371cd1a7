/* Inside the core: motes, their radios and sensors, and the medium they share. */
#ifndef CORE_H
#define CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "skerry_backend.h"
#include "skerry_core.h"

struct mote;

#define NEVER UINT64_MAX
#define FRAME_BYTES 127
#define SILENCE_DBM -200.0

/* ---- seeded randomness (random.c) ---- */
uint64_t random_bits(uint64_t *state); /* splitmix64 */
double random_unit(uint64_t *state);   /* [0, 1) */

/* ---- two states in turn (chain.c) ---- */
struct chain {
    double mean_ns[2];
    uint64_t random, until;
    bool on;
};
/* Both means more than 0. */
void chain_begin(struct chain *chain, double on_s, double off_s, uint64_t seed);
/* The state at a time not before that of the last call. */
bool chain_at(struct chain *chain, uint64_t now);
/* On to the next change, at `until`. */
void chain_step(struct chain *chain);

/* ---- radios: what all chips have in common, first member of each ---- */
enum { RADIO_SLEEP, RADIO_OFF, RADIO_IDLE, RADIO_RX, RADIO_TX, RADIO_STATES };
struct radio {
    struct mote *mote;
    const struct radio_model *model;
    uint64_t listening_since; /* NEVER when not listening */
    int32_t receiving;        /* transmission number, -1 none */
    uint32_t generation;      /* raised at reset: events of before are void */
    uint64_t accounted;       /* energy is settled up to here */
    double joule[RADIO_STATES], seconds[RADIO_STATES];
};

/* One chip. The functions from receive_start on are called at the exact time, with the mote's CPU
 * run up to it. */
struct radio_model {
    double sensitivity_dbm;
    int (*channel)(const struct radio *radio); /* 11..26 when it is tuned to one */
    /* receive_start comes with the SFD; else with the PHR, one byte later */
    bool locks_at_sfd;
    void (*power_on)(struct radio *radio, uint64_t now);
    void (*power_off)(struct radio *radio, uint64_t now);
    void (*pin)(struct radio *radio, uint64_t now, enum skerry_pin pin, int level);
    void (*account)(struct radio *radio, uint64_t now);
    void (*receive_start)(struct radio *radio, uint64_t now, int32_t transmission);
    void (*receive_end)(struct radio *radio, uint64_t now, const uint8_t *psdu, uint8_t length,
                        bool intact, double dbm, double quality);
    void (*transmit_sfd)(struct radio *radio, uint64_t now); /* may be NULL */
    void (*transmit_end)(struct radio *radio, uint64_t now);
    void (*acknowledge)(struct radio *radio, uint64_t now, uint8_t sequence);
    void (*locked)(struct radio *radio, uint64_t now); /* may be NULL */
};

/* Adds the time since the last call to a state that draws `ma`. */
void radio_account(struct radio *radio, uint64_t now, int state, double ma);
bool radio_listening(const struct radio *radio);
/* Level of the interrupt line. */
void radio_interrupt(const struct radio *radio, bool level);
/* FCS of an 802.15.4 frame (7.2.1.9): CRC-16 of the ITU-T, reflected. */
uint16_t radio_fcs(const uint8_t *psdu, uint8_t length);
/* Puts an acknowledgement on the air. */
void radio_send_acknowledgement(struct radio *radio, uint64_t now, uint8_t sequence, double dbm);

/* ---- AT86RF230 (rf230.c); doc5131E ---- */
struct rf230 {
    struct radio radio;
    uint8_t registers[0x40];
    uint8_t state;                       /* TRX_STATUS codes */
    uint64_t busy_until;                 /* a transition to `state` is under way until then */
    uint8_t wanted;                      /* command to run when BUSY_RX or BUSY_TX ends; 0 none */
    uint8_t buffer[1 + FRAME_BYTES + 1]; /* PHR, PSDU, LQI */
    uint8_t interrupts;                  /* IRQ_STATUS */
    bool sleep_pin, reset_pin, selected;
    uint8_t spi_mode, spi_position, spi_address;
    uint64_t cca_asked; /* NEVER: none since the last read */
};
extern const struct radio_model rf230_model;
uint8_t rf230_spi(struct rf230 *chip, uint64_t now, uint8_t out);

/* ---- RF core of the CC2538 (cc2538_radio.c); SWRU319C, chapter 23 ---- */
#define CC2538_FIFO_BYTES 128
struct cc2538_radio {
    struct radio radio;
    uint8_t registers[0x200]; /* FFSM and XREG, one byte for each word from offset 0x400 on */
    enum { CC2538_OFF, CC2538_RX, CC2538_TX, CC2538_ACKNOWLEDGING } state;
    uint8_t flags[2];   /* RFIRQF0, RFIRQF1 */
    bool flags_read[2]; /* read as not 0 since they were last written */
    uint8_t rx[CC2538_FIFO_BYTES], tx[CC2538_FIFO_BYTES];
    uint16_t rx_count, tx_count;
    bool overflow;
    /* a frame was put into the TX FIFO, and nobody has asked for the channel since */
    bool loaded;
    /* of another emulator's model: FSMSTAT1 shows TX active for so many reads after a send, of
     * which so many are left */
    uint8_t tail_reads, tail;
};
extern const struct radio_model cc2538_model;
enum skerry_access cc2538_radio_read(struct cc2538_radio *chip, uint64_t now, uint32_t offset,
                                     uint32_t *value);
enum skerry_access cc2538_radio_write(struct cc2538_radio *chip, uint64_t now, uint32_t offset,
                                      uint32_t value);

/* ---- sensors (sensors.c) ---- */
struct sensors {
    double value[6];
    int address; /* device addressed on the bus, 0 none */
    uint8_t sht_command;
    uint64_t sht_ready;
    uint8_t sht_data[3];
    uint8_t sht_position;
    uint8_t sht_user;
    uint8_t tsl_command;
    uint8_t tsl_control, tsl_timing;
    uint64_t tsl_power;
    bool tsl_first;
    bool accel_on;
    uint64_t accel_since;
    bool analogue_on;
    uint64_t analogue_since;
    double joule;
    uint64_t tsl_accounted, power_accounted;
};
void sensors_power_on(struct sensors *sensors, uint64_t now);
int sensors_twi_start(struct sensors *sensors, uint64_t now, uint8_t address, int read);
int sensors_twi_write(struct sensors *sensors, uint64_t now, uint8_t byte);
uint8_t sensors_twi_read(struct sensors *sensors, uint64_t now);
void sensors_twi_stop(struct sensors *sensors, uint64_t now);
void sensors_accel_power(struct sensors *sensors, uint64_t now, bool on);
/* The analogue board of the CC2538 mote (analogue.c). */
void analogue_power(struct sensors *sensors, uint64_t now, bool on);
/* Microvolts at an input of either board. */
uint32_t sensors_adc(const struct sensors *sensors, uint64_t now, enum skerry_input input,
                     double supply_mv);
uint32_t analogue_adc(const struct sensors *sensors, uint64_t now, enum skerry_input input,
                      double supply_mv);
void sensors_account(struct sensors *sensors, uint64_t now);

/* ---- motes and world (world.c) ---- */
#define UART_BYTES 16384
struct ring {
    uint8_t bytes[UART_BYTES];
    uint32_t head, tail;
};

/* Bursts of losses: in the bad state frames of 100 bytes arrive `reception` times as often. */
struct bursts {
    struct chain bad;
    double reception;
};
struct link {
    uint32_t to;
    double gain, prr;
    struct bursts *bursts; /* may be NULL */
};

struct mote {
    skerry_world *world;
    uint32_t index;
    uint16_t node;
    const skerry_backend *backend;
    skerry_cpu *cpu;
    bool alive;
    uint8_t outputs; /* skerry_mote_outputs */
    uint64_t boot_at;
    uint64_t next; /* when the CPU has something to do */
    double supply_mv;
    union {
        struct radio radio;
        struct rf230 rf230;
        struct cc2538_radio cc2538;
    };
    struct sensors sensors;
    struct ring from_uart, to_uart;
    bool uart_busy;
    struct link *links;
    uint32_t link_count, link_capacity;
    skerry_counters counters;
    uint64_t resets_before;
    struct debugger *debugger; /* NULL: none */
};

enum event_kind {
    EVENT_BOOT,
    EVENT_LOCKED,
    EVENT_TX_SFD,
    EVENT_TX_PHR,
    EVENT_TX_END,
    EVENT_ACK,
    EVENT_UART,
    EVENT_POWER_LOST
};
struct event {
    uint64_t at;
    uint64_t order;
    enum event_kind kind;
    uint32_t mote;
    uint32_t generation;
    int32_t value;
};

struct transmission {
    int32_t number;
    uint32_t sender;
    uint64_t start, end;
    double dbm;
    int channel;
    uint8_t length;
    uint8_t psdu[FRAME_BYTES];
    uint32_t received_by;
    bool ack;
};
#define TRANSMISSIONS 256

struct skerry_world {
    skerry_world_config config;
    uint64_t now, random;
    volatile int stop;
    struct mote **motes;
    uint32_t mote_count;
    const skerry_backend *backends[4];
    uint32_t backend_count;
    struct event *events;
    uint32_t event_count, event_capacity;
    uint64_t event_order;
    struct transmission air[TRANSMISSIONS];
    int32_t air_next;
    skerry_frame *frames;
    uint32_t frame_head, frame_tail;
    uint64_t frames_dropped;
    char *messages;
    uint32_t messages_length;
    struct source **sources;
    uint32_t source_count;
    skerry_stop_handler stop_handler;
    void *stop_context;
};
/* -1, with the line for skerry_error(). */
int world_fail(const char *format, ...);
/* NULL, with that line: there is none. */
struct mote *world_mote(const skerry_world *world, uint32_t index);
void world_event(skerry_world *world, uint64_t at, enum event_kind kind, uint32_t mote,
                 uint32_t generation, int32_t value);

/* ---- debugger (debug.c) ---- */
/* As the back-end's run(), for a mote with a debugger, where time may stand still. */
uint64_t debug_run(struct mote *mote, uint64_t until);
/* Whether it is to stop before the instruction at `address`. */
int debug_instruction(void *mote, uint32_t address);
/* Its faults are new ones from here on. */
void debug_power_on(struct mote *mote);

/* ---- links (links.c) ---- */
const struct link *link_of(const struct mote *from, uint32_t to); /* NULL: none */
void links_free(struct mote *mote);

/* ---- interference (interference.c) ---- */
#define SOURCE_CHANGES 256
struct source {
    skerry_interference_config config;
    struct chain chain;
    uint64_t changes[SOURCE_CHANGES];
    uint32_t change_count;
    double *mw;
    uint32_t mote_count; /* power at each mote */
};
/* Mean power of all sources at a mote within [from, to), mW. */
double interference_mw(skerry_world *world, uint32_t mote, int channel, uint64_t from, uint64_t to);
void interference_free(skerry_world *world);

/* ---- medium (medium.c) ---- */
int32_t medium_transmit(struct mote *sender, uint64_t start, const uint8_t *psdu, uint8_t length,
                        double dbm, bool ack);
/* Receivers lock on: those that do at the SFD, or those that do at the PHR. */
void medium_lock(skerry_world *world, uint64_t now, int32_t number, bool sfd);
void medium_end(skerry_world *world, uint64_t now, int32_t number);
/* Strongest frame at a mote within [from, to], on the channel it is tuned to, dBm; -200 in silence.
 */
double medium_carrier(const struct mote *mote, uint64_t from, uint64_t to);
/* The same or what interferes, whichever is stronger. */
double medium_energy(const struct mote *mote, uint64_t from, uint64_t to);
#endif
