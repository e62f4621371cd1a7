/* Atmel AT86RF230 (doc5131E): radio.h over SPI.
 *
 * Listens in RX_AACK_ON, where the chip filters and acknowledges by itself; sends from PLL_ON;
 * waits for the acknowledgement in RX_ON. The interrupt handler fetches what comes in and turns to
 * the acknowledgement, which begins 192 us behind the frame, however long the main loop takes; all
 * else happens there. */
#include <avr/interrupt.h>
#include <string.h>

#include "board.h"
#include "drivers/radio.h"
#include "drivers/rf230/pins.h"
#include "kernel/assert.h"
#include "kernel/event.h"
#include "kernel/power.h"
#include "kernel/timer.h"
#include "wire.h"

enum reg {
    TRX_STATUS = 0x01,
    TRX_STATE = 0x02,
    PHY_TX_PWR = 0x05,
    PHY_RSSI = 0x06,
    PHY_ED_LEVEL = 0x07,
    PHY_CC_CCA = 0x08,
    IRQ_MASK = 0x0E,
    IRQ_STATUS = 0x0F,
    PART_NUM = 0x1C,
    SHORT_ADDR_0 = 0x20,
    PAN_ID_0 = 0x22,
    CSMA_SEED_1 = 0x2E
};
enum state {
    BUSY_RX = 0x01,
    RX_ON = 0x06,
    TRX_OFF = 0x08,
    PLL_ON = 0x09,
    BUSY_RX_AACK = 0x11,
    RX_AACK_ON = 0x16,
    FORCE_TRX_OFF = 0x03
};
enum { FRAME_READ = 0x20, SRAM_WRITE = 0x40, FRAME_WRITE = 0x60 };
enum { IRQ_RX_START = 0x04, IRQ_TRX_END = 0x08 };
enum {
    TX_AUTO_CRC = 0x80,
    CCA_REQUEST = 0x80,
    CCA_CARRIER_SENSE = 0x40,
    CCA_CLEAR = 0x40,
    RX_CRC_VALID = 0x80
};

/* SLP_TR edge to the end of the SFD: 16 us, 5 bytes of 32 us (9.1.2); in ticks of 30.5 us, rounded.
 */
#define SFD_DELAY 6
/* From one tick on, a stamp is reckoned and written into the chip in fewer ticks than these. */
#define STAMP_LEAD 8
/* RX_START comes one byte, the PHR, after the SFD. */
#define PHR_DELAY 1
/* Longest wait for TRX_END: 133 bytes on the air; for an acknowledgement: 54 symbols (864 us;
 * 802.15.4-2006 7.4.2) and the handler's latency, in ticks. Longer, and a sibling's acknowledgement
 * of the same number would be taken for ours. */
#define SEND_LIMIT CLOCK_MS(8)
#define ACK_LIMIT 32
/* Switching off is tried again after this while a frame comes in. */
#define OFF_RETRY CLOCK_MS(3)

static volatile enum { ASLEEP, LISTENING, SENDING, AWAITING_ACK } mode;
static bool accept_unicast = true, snooping, off_wanted;
static uint8_t channel, sequence, tx_power;
static bool ack_requested;
/* a frame is being sent: until it ends, the main loop leaves the SPI alone */
static volatile bool on_air;
static volatile bool ack_begins; /* the handler has just turned to AWAITING_ACK */
static volatile ticks_t started;
/* How long it was on: whole eighths of a second, and since then; while it is asleep, the ticks that
 * are left over. */
static uint32_t on_ms;
static ticks_t on_since;
static uint16_t on_ticks;
static uint16_t malformed;
static struct timer limit;

/* The chip holds one frame, and the next may begin a millisecond after its acknowledgement: the
 * interrupt handler fetches it, and it waits here for the main loop. One place more is for the
 * frame that begins as the others fill, and for what comes instead of an acknowledgement. */
#define WAITING (RADIO_HELD - 1)
struct received {
    struct radio_frame frame;
    /* by the chip, in RX_AACK: a unicast frame is this mote's and was acknowledged */
    bool filtered;
    uint8_t psdu[RADIO_FRAME_MAXIMUM + 2];
};
static struct received waiting[WAITING + 1];
static volatile uint8_t waiting_first, waiting_count;
/* There is no room for another: nothing is acknowledged until there is. */
static volatile bool held;
/* How the frame that is coming in began. A change of state takes effect behind it, so this alone
 * tells whether it is acknowledged. */
static enum { NOT_SEEN, UNFILTERED, FILTERED } begun;
static enum radio_outcome outcome;

static void fetch(ticks_t when);
static void await_ack(void);
static void serve(void);
static void report(void);
static struct event interrupt_event = {.handler = serve};
static struct event outcome_event = {.handler = report};

ISR(TIMER1_CAPT_vect)
{
    /* 1 us = 0.0328 ticks; the age is the latency of this handler. */
    ticks_t edge = clock_now() - (ticks_t)((uint32_t)rf230_capture_age() * 2147U >> 16);
    if (mode == LISTENING)
        fetch(edge);
    else if (on_air && ack_requested)
        await_ack();
    event_post(&interrupt_event);
}

/* The interrupt handler uses the SPI while LISTENING, and the main loop then accesses registers
 * only. */
static uint8_t exchange_register(uint8_t command, uint8_t value)
{
    board_interrupts state = board_interrupts_off();
    rf230_select();
    rf230_exchange(command);
    value = rf230_exchange(value);
    rf230_deselect();
    board_interrupts_restore(state);
    return value;
}

static uint8_t read_register(uint8_t address) { return exchange_register(0x80 | address, 0); }

static void write_register(uint8_t address, uint8_t value)
{
    exchange_register(0xC0 | address, value);
}

static uint8_t status(void) { return read_register(TRX_STATUS) & 0x1F; }

/* Commands a state and waits for it, at most ~1 ms; false when the chip does not get there. */
static bool go(uint8_t state)
{
    write_register(TRX_STATE, state);
    uint8_t expected = state == FORCE_TRX_OFF ? TRX_OFF : state;
    for (uint8_t i = 0; i < 100; i++) {
        uint8_t now = status();
        if (now == expected || (expected == RX_AACK_ON && now == BUSY_RX_AACK) ||
            (expected == RX_ON && now == BUSY_RX))
            return true;
        _delay_us(5);
    }
    return false;
}

static uint8_t listening_state(void)
{
    return accept_unicast && !held && !snooping ? RX_AACK_ON : RX_ON;
}

static void tune(void) { write_register(PHY_CC_CCA, CCA_CARRIER_SENSE | channel); }

/* What came in while it did not listen holds the interrupt line: unread, no later edge would tell
 * of a frame. */
static bool listen(void)
{
    board_interrupts state = board_interrupts_off();
    begun = NOT_SEEN;
    mode = LISTENING;
    (void)read_register(IRQ_STATUS);
    board_interrupts_restore(state);
    return go(listening_state());
}

static void configure(uint16_t pan, uint16_t address)
{
    write_register(IRQ_MASK, IRQ_RX_START | IRQ_TRX_END);
    write_register(PHY_TX_PWR, TX_AUTO_CRC | tx_power);
    tune();
    write_register(SHORT_ADDR_0, (uint8_t)address);
    write_register(SHORT_ADDR_0 + 1, (uint8_t)(address >> 8));
    write_register(PAN_ID_0, (uint8_t)pan);
    write_register(PAN_ID_0 + 1, (uint8_t)(pan >> 8));
    (void)read_register(IRQ_STATUS);
}

static uint16_t own_pan, own_address;

static bool reset(void)
{
    rf230_sleep_low();
    rf230_reset_low();
    _delay_us(6);
    rf230_reset_high();
    _delay_us(900);
    if (read_register(PART_NUM) != 2 || !go(TRX_OFF))
        return false;
    configure(own_pan, own_address);
    return true;
}

bool radio_init(uint16_t pan, uint16_t address, uint8_t radio_channel)
{
    own_pan = pan;
    own_address = address;
    channel = radio_channel;
    bool ok = reset();
    rf230_sleep_high();
    mode = ASLEEP;
    return ok;
}

/* The PLL locks again within 150 us (9.6): whoever listens from here on loses no more than that. */
void radio_channel(uint8_t to)
{
    if (to == channel)
        return;
    channel = to;
    if (mode == LISTENING)
        tune();
}

void radio_on(void)
{
    off_wanted = false;
    if (mode != ASLEEP)
        return;
    power_hold(POWER_RADIO);
    on_since = clock_now() - on_ticks;
    rf230_sleep_low();
    _delay_us(900); /* SLEEP to TRX_OFF (7.1.4) */
    rf230_capture_on();
    write_register(PHY_TX_PWR, TX_AUTO_CRC | tx_power);
    tune();
    if (!go(PLL_ON) || !listen()) {
        reset();
        listen();
    }
}

static uint32_t on_until(ticks_t now) { return on_ms + (now - on_since) / 4096 * 125; }

static void sleep_now(void)
{
    timer_stop(&limit);
    go(FORCE_TRX_OFF);
    (void)read_register(IRQ_STATUS);
    rf230_sleep_high();
    rf230_capture_off();
    ticks_t now = clock_now();
    on_ms = on_until(now);
    on_ticks = (uint16_t)(now - on_since) % 4096;
    power_release(POWER_RADIO);
    mode = ASLEEP;
    off_wanted = false;
}

static void off_again(void)
{
    if (off_wanted)
        radio_off();
}

/* A frame being received may be acknowledged before it is read: it is waited for, or its sender
 * would take it for delivered. */
void radio_off(void)
{
    if (mode == ASLEEP)
        return;
    uint8_t now = mode == LISTENING ? status() : 0;
    if (mode == LISTENING && now != BUSY_RX && now != BUSY_RX_AACK) {
        sleep_now();
        return;
    }
    off_wanted = true;
    if (mode == LISTENING)
        timer_after(&limit, OFF_RETRY, off_again);
}

bool radio_is_on(void) { return mode != ASLEEP; }

ticks_t radio_last_start(void)
{
    board_interrupts state = board_interrupts_off();
    ticks_t last = started;
    board_interrupts_restore(state);
    return last;
}

uint32_t radio_on_time(void) { return mode == ASLEEP ? on_ms : on_until(clock_now()); }

uint16_t radio_malformed(void) { return malformed; }

/* Asleep, the chip takes no register: it is written whenever it wakes. */
void radio_set_power(int8_t dbm)
{
    /* Table 9-2: about half a dB a step down to 0.5 dBm, then one to -5.2, then coarser. */
    if (dbm >= 0)
        tx_power = (uint8_t)(dbm > 3 ? 0 : 2 * (3 - dbm));
    else if (dbm >= -5)
        tx_power = (uint8_t)(6 - dbm);
    else
        tx_power = (uint8_t)(dbm >= -8 ? 12 : dbm >= -10 ? 13 : dbm >= -14 ? 14 : 15);
    if (mode != ASLEEP)
        write_register(PHY_TX_PWR, TX_AUTO_CRC | tx_power);
}

static void change(bool *flag, bool to)
{
    if (*flag == to)
        return;
    board_interrupts state = board_interrupts_off();
    *flag = to;
    if (mode == LISTENING)
        write_register(TRX_STATE, listening_state());
    board_interrupts_restore(state);
}

void radio_accept_unicast(bool accept) { change(&accept_unicast, accept); }
void radio_snoop(bool snoop) { change(&snooping, snoop); }

static void report(void) { radio_sent(outcome); }

static void finish(enum radio_outcome result)
{
    timer_stop(&limit);
    on_air = false;
    outcome = result;
    if (result == RADIO_FAILED) {
        reset();
        go(PLL_ON);
    }
    tune(); /* another channel may have been asked for meanwhile */
    listen();
    if (off_wanted)
        sleep_now();
    event_post(&outcome_event);
}

static void out_of_step(void) { finish(RADIO_FAILED); }
static void no_ack(void) { finish(RADIO_NO_ACK); }

/* A whole frame, behind its length, or a part of it, behind its place. */
static void upload(uint8_t command, uint8_t first, const uint8_t *bytes, uint8_t length)
{
    rf230_select();
    rf230_exchange(command);
    rf230_exchange(first);
    for (uint8_t i = 0; i < length; i++)
        rf230_exchange(bytes[i]);
    rf230_deselect();
}

/* Patches the stamp into the chip's frame buffer and starts at once: interrupts are off in between.
 */
static void start(uint8_t stamp)
{
    board_interrupts state = board_interrupts_off();
    if (stamp != RADIO_NO_STAMP) {
        uint8_t bytes[RADIO_STAMP_SIZE];
        ticks_t due = clock_now() + STAMP_LEAD;
        radio_stamp(bytes, due + SFD_DELAY);
        upload(SRAM_WRITE, (uint8_t)(1 + stamp), bytes, sizeof bytes);
        while (!clock_reached(clock_now(), due)) {}
    }
    on_air = true;
    rf230_sleep_high();
    rf230_sleep_low();
    board_interrupts_restore(state);
}

static bool channel_clear(void)
{
    if (!go(RX_ON))
        return false;
    write_register(PHY_CC_CCA, CCA_REQUEST | CCA_CARRIER_SENSE | channel);
    _delay_us(140);
    uint8_t answer = read_register(TRX_STATUS);
    return answer & CCA_CLEAR && !(read_register(IRQ_STATUS) & IRQ_RX_START);
}

/* To SENDING; false, and LISTENING still, while a frame comes in or waits to be fetched: it may
 * have been acknowledged. */
static bool stop_listening(void)
{
    board_interrupts state = board_interrupts_off();
    write_register(TRX_STATE, PLL_ON);
    uint8_t now = status();
    bool idle = now != BUSY_RX && now != BUSY_RX_AACK && !rf230_capture_pending() &&
                waiting_count <= WAITING;
    if (idle)
        mode = SENDING;
    else
        write_register(TRX_STATE, listening_state());
    board_interrupts_restore(state);
    return idle;
}

bool radio_send(const uint8_t *psdu, uint8_t length, uint8_t stamp)
{
    if (mode != LISTENING || outcome_event.pending)
        return false;
    if (!stop_listening()) {
        outcome = RADIO_BUSY;
        event_post(&outcome_event);
        return true;
    }
    ack_begins = false;
    sequence = psdu[2];
    ack_requested = psdu[0] & 0x20;
    if (!go(PLL_ON)) {
        finish(RADIO_FAILED);
        return true;
    }
    upload(FRAME_WRITE, (uint8_t)(length + 2), psdu, length);
    if (!channel_clear() || !go(PLL_ON)) {
        finish(RADIO_BUSY);
        return true;
    }
    timer_after(&limit, SEND_LIMIT, out_of_step);
    start(stamp);
    return true;
}

/* Reads the frame buffer and what the chip says of it into a place that is free; NULL when it is no
 * frame. */
static struct received *download(void)
{
    struct received *into = &waiting[(waiting_first + waiting_count) % (WAITING + 1)];
    bool intact = read_register(PHY_RSSI) & RX_CRC_VALID;
    rf230_select();
    rf230_exchange(FRAME_READ);
    uint8_t length = rf230_exchange(0);
    if (length < 3 || length > sizeof into->psdu) {
        rf230_deselect();
        malformed++;
        return NULL;
    }
    for (uint8_t i = 0; i < length; i++)
        into->psdu[i] = rf230_exchange(0);
    into->frame.lqi = rf230_exchange(0);
    rf230_deselect();
    into->frame.psdu = into->psdu;
    into->frame.length = (uint8_t)(length - 2);
    into->frame.rssi = (int8_t)(read_register(PHY_ED_LEVEL) - 91);
    return intact ? into : NULL;
}

/* In the interrupt handler, while LISTENING. */
static void fetch(ticks_t when)
{
    uint8_t causes = read_register(IRQ_STATUS);
    if (causes & IRQ_RX_START) {
        uint8_t now = status();
        started = when - PHR_DELAY;
        begun = now == BUSY_RX_AACK || now == RX_AACK_ON ? FILTERED : UNFILTERED;
    }
    if (!(causes & IRQ_TRX_END) || waiting_count > WAITING)
        return;
    if (waiting_count + 1 >= WAITING) {
        /* Takes effect once the acknowledgement is out. The next frame may begin before this
         * handler ends: there is a place for it. */
        held = true;
        write_register(TRX_STATE, RX_ON);
    }
    struct received *place = download();
    if (place) {
        place->filtered = begun == FILTERED;
        place->frame.sfd = started;
        /* A frame that began while this mote was about to send: the start is as long ago as its
         * bytes take, 32 us each (268/256 ticks). */
        if (begun == NOT_SEEN || causes & IRQ_RX_START)
            place->frame.sfd = when - (uint16_t)(place->frame.length + 3U) * 268U / 256;
        waiting_count++;
    }
    begun = NOT_SEEN;
}

/* In RX_ON nothing is filtered: what needs this mote's acknowledgement may not pass. */
static bool passes(const struct received *received)
{
    const struct wire_mac_header *header = (const struct wire_mac_header *)received->psdu;
    return received->filtered ||
           (received->frame.length >= sizeof *header && header->pan == own_pan &&
            (header->destination == WIRE_BROADCAST ||
             (snooping && header->destination != own_address)));
}

static void deliver(void)
{
    INVARIANT(waiting_count <= WAITING + 1, RADIO_HELD);
    while (waiting_count > 0) {
        if (passes(&waiting[waiting_first]))
            radio_received(&waiting[waiting_first].frame);
        board_interrupts state = board_interrupts_off();
        waiting_first = (uint8_t)((waiting_first + 1) % (WAITING + 1));
        waiting_count--;
        board_interrupts_restore(state);
    }
    if (!held)
        return;
    board_interrupts state = board_interrupts_off();
    held = false;
    if (mode == LISTENING)
        write_register(TRX_STATE, listening_state());
    board_interrupts_restore(state);
}

/* In the interrupt handler, while on the air. */
static void await_ack(void)
{
    if (!(read_register(IRQ_STATUS) & IRQ_TRX_END))
        return;
    write_register(TRX_STATE, RX_ON);
    on_air = false;
    ack_begins = true;
    mode = AWAITING_ACK;
}

static void serve(void)
{
    deliver();
    if (mode != SENDING && mode != AWAITING_ACK)
        return;
    if (ack_begins) {
        ack_begins = false;
        timer_after(&limit, ACK_LIMIT, no_ack);
    }
    /* The acknowledgement may be here as well, if the main loop was busy for so long. */
    if (!(read_register(IRQ_STATUS) & IRQ_TRX_END))
        return;
    if (mode == SENDING) {
        finish(RADIO_SENT);
        return;
    }
    const struct received *place = download();
    if (place && place->frame.length == 3 && place->psdu[0] == (WIRE_FRAME_CONTROL_ACK & 0xFF) &&
        place->psdu[2] == sequence)
        finish(RADIO_SENT);
}
