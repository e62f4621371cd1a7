/* CC2538 RF core (SWRU319C, chapter 23): radio.h on chip.
 *
 * The chip filters frames and acknowledges them by itself. It is used so that the image also runs
 * where the chip is modelled more simply (Renode sends in no time, knows no TX FIFO memory, and
 * stores what is written to the flag registers, where silicon clears): flags are cleared by a plain
 * 0 after a read that was not 0, then the state is read from FSMSTAT1, past the reads for which a
 * frame that is over still shows there; the FIFO is filled in order, so the time stamp is fixed
 * before it. */
#include <string.h>

#include "board.h"
#include "drivers/cc2538/registers.h"
#include "drivers/radio.h"
#include "kernel/event.h"
#include "kernel/power.h"
#include "kernel/timer.h"
#include "wire.h"

void rf_isr(void);

/* TXON to the end of the SFD: 192 us of turnaround, 5 bytes of 32 us (23.9), in ticks of 30.5
 * us: 11.5. A receiver's stamp, too, is rounded down: over many hops neither makes clocks fast. */
#define SFD_DELAY 11
/* From fixing a time stamp to the strobe that makes it true: longer than 125 bytes take into the
 * FIFO. */
#define STAMP_LEAD 8
/* Longest wait for TXDONE: 133 bytes on the air and the turnaround; for an acknowledgement: 54
 * symbols (864 us; 802.15.4-2006 7.4.2) and the handler's latency, in ticks. */
#define SEND_LIMIT CLOCK_MS(8)
#define ACK_LIMIT 32
/* Switching off is tried again after this while a frame comes in. */
#define OFF_RETRY CLOCK_MS(3)
/* Polls before an RSSI that does not become valid is no longer waited for; 8 symbols (128 us) are
 * due. */
#define PATIENCE 2000
/* Offsets of RSSI in dBm (table 23-9), of the correlation of a barely received frame, and its span
 * up to a perfect one. */
#define RSSI_OFFSET 73
#define CORRELATION_LEAST 50
#define CORRELATION_SPAN 60
/* CCA threshold -81 dBm, less the offset. */
#define CCA_THRESHOLD 0xF8
/* +3 dBm, as the IRIS sends with (table of SmartRF Studio in the data sheet SWRS096D). */
#define POWER_3_DBM 0xD5
#define STAMPS 4
/* Renode shows TX_ACTIVE for up to so many reads of FSMSTAT1 after a send. On silicon the bit goes
 * with the send (23.11), so that these reads, 1 us, change nothing. */
#define TX_READS 4

static enum { ASLEEP, LISTENING, SENDING, AWAITING_ACK } mode;
static bool accept_unicast = true, snooping, off_wanted, retune_wanted, ack_requested;
static uint8_t tx_power = POWER_3_DBM;
/* nothing is acknowledged now, but what is in the FIFO came before that: its senders have their
 * acknowledgements */
static bool acknowledged;
static uint8_t channel, sequence;
static uint16_t own_pan, own_address;
static volatile ticks_t edge, stamps[STAMPS];
static volatile uint8_t stamp_in;
static uint8_t stamp_out;
static volatile bool sent;
static ticks_t on_since;
static uint64_t on_ticks;
static uint16_t malformed;
static uint8_t buffer[RADIO_FRAME_MAXIMUM];
static struct timer limit;
static enum radio_outcome outcome;

static void serve(void);
static void report(void);
static struct event interrupt_event = {.handler = serve};
static struct event outcome_event = {.handler = report};

void rf_isr(void)
{
    ticks_t now = clock_now();
    uint32_t receive = RFCORE_SFR_RFIRQF0;
    if (receive)
        RFCORE_SFR_RFIRQF0 = 0;
    uint32_t transmit = RFCORE_SFR_RFIRQF1;
    if (transmit)
        RFCORE_SFR_RFIRQF1 = 0;
    if (receive & IRQ0_SFD)
        edge = now;
    if (receive & IRQ0_RXPKTDONE)
        stamps[stamp_in++ % STAMPS] = edge;
    if (transmit & IRQ1_TXDONE)
        sent = true;
    event_post(&interrupt_event);
}

static void strobe(uint32_t command) { RFCORE_SFR_RFST = command; }

static void flush_received(void)
{
    /* Twice: once leaves a byte behind when a frame is just coming in (CC2538 errata, as for the
     * CC2520). */
    strobe(ISFLUSHRX);
    strobe(ISFLUSHRX);
    stamp_out = stamp_in;
}

static uint32_t state(void)
{
    uint32_t status = RFCORE_XREG_FSMSTAT1;
    for (uint8_t i = 0; i < TX_READS && status & FSMSTAT1_TX; i++)
        status = RFCORE_XREG_FSMSTAT1;
    return status;
}

static bool acknowledging(void) { return accept_unicast && !snooping; }

static void filter(void)
{
    RFCORE_XREG_FRMFILT0 = (snooping ? 0 : FRMFILT0_ENABLE) | FRMFILT0_VERSIONS;
    RFCORE_XREG_FRMCTRL0 = FRMCTRL0_AUTOCRC | (acknowledging() ? FRMCTRL0_AUTOACK : 0);
}

static void tune(void) { RFCORE_XREG_FREQCTRL = 11 + 5 * (uint32_t)(channel - 11); }

/* All of it each time: less than 100 cycles, and it does not matter what the power mode kept. */
static void configure(void)
{
    RFCORE_XREG_TXFILTCFG = 0x09; /* better than the reset values: 23.15 */
    RFCORE_XREG_AGCCTRL1 = 0x15;
    RFCORE_XREG_FSCAL1 = 0x01;
    ANA_REGS_IVCTRL = 0x0B;
    RFCORE_XREG_CCACTRL0 = CCA_THRESHOLD;
    RFCORE_XREG_TXPOWER = tx_power;
    RFCORE_XREG_FIFOPCTRL = 127; /* FIFOP means a whole frame */
    RFCORE_XREG_SRCMATCH = 0;
    RFCORE_XREG_FRMFILT1 = FRMFILT1_DATA | FRMFILT1_ACK;
    filter();
    tune();
    RFCORE_FFSM_PAN_ID0 = own_pan & 0xFF;
    RFCORE_FFSM_PAN_ID1 = own_pan >> 8;
    RFCORE_FFSM_SHORT_ADDR0 = own_address & 0xFF;
    RFCORE_FFSM_SHORT_ADDR1 = own_address >> 8;
    if (RFCORE_SFR_RFIRQF0)
        RFCORE_SFR_RFIRQF0 = 0;
    if (RFCORE_SFR_RFIRQF1)
        RFCORE_SFR_RFIRQF1 = 0;
    RFCORE_XREG_RFIRQM0 = IRQ0_SFD | IRQ0_RXPKTDONE;
    RFCORE_XREG_RFIRQM1 = IRQ1_TXDONE;
}

void radio_set_power(int8_t dbm)
{
    /* SmartRF Studio's table has a level for each odd number of dBm down to -15. */
    static const uint8_t codes[] = {POWER_3_DBM, 0xC5, 0xB0, 0xA1, 0x91,
                                    0x88,        0x72, 0x62, 0x58, 0x42};
    uint8_t index = (uint8_t)(dbm >= 3 ? 0 : (3 - dbm) / 2);
    tx_power = codes[index < sizeof codes ? index : sizeof codes - 1];
    if (mode != ASLEEP)
        RFCORE_XREG_TXPOWER = tx_power;
}

bool radio_init(uint16_t pan, uint16_t address, uint8_t radio_channel)
{
    own_pan = pan;
    own_address = address;
    channel = radio_channel;
    mode = ASLEEP;
    SYS_CTRL_RCGCRFC = 1;
    SYS_CTRL_SCGCRFC = 1;
    NVIC_ISER(IRQ_RF / 32) = 1UL << IRQ_RF % 32;
    return true;
}

static void listen(void)
{
    flush_received();
    strobe(ISRXON);
    mode = LISTENING;
}

/* A new frequency takes effect with the next calibration, which RXON begins; 192 us (23.11). */
static void retune(void)
{
    strobe(ISRFOFF);
    tune();
    if (RFCORE_XREG_FSMSTAT1 & FSMSTAT1_FIFOP)
        strobe(ISRXON);
    else
        listen(); /* leaves nothing of a frame that was cut off */
}

void radio_channel(uint8_t to)
{
    if (to == channel)
        return;
    channel = to;
    if (mode == LISTENING)
        retune();
    else
        retune_wanted = mode != ASLEEP;
}

void radio_on(void)
{
    off_wanted = false;
    if (mode != ASLEEP)
        return;
    power_hold(POWER_RADIO);
    board_clock_wait();
    on_since = clock_now();
    sent = false;
    configure();
    listen();
}

static void sleep_now(void)
{
    timer_stop(&limit);
    strobe(ISRFOFF);
    strobe(RF_OFF_PROGRAM);
    RFCORE_XREG_RFIRQM0 = 0;
    RFCORE_XREG_RFIRQM1 = 0;
    flush_received();
    on_ticks += clock_now() - on_since;
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
    if (mode == LISTENING && !(state() & (FSMSTAT1_SFD | FSMSTAT1_TX | FSMSTAT1_FIFOP)) &&
        !interrupt_event.pending) {
        sleep_now();
        return;
    }
    off_wanted = true;
    if (mode == LISTENING)
        timer_start(&limit, clock_now() + OFF_RETRY, off_again);
}

bool radio_is_on(void) { return mode != ASLEEP; }
ticks_t radio_last_start(void) { return edge; }

uint32_t radio_on_time(void)
{
    uint64_t ticks = on_ticks + (mode == ASLEEP ? 0 : clock_now() - on_since);
    return (uint32_t)(ticks * 125 / 4096);
}

uint16_t radio_malformed(void) { return malformed; }

static void change(bool *flag, bool to)
{
    bool before = acknowledging();
    *flag = to;
    if (mode != ASLEEP && acknowledging() != before)
        acknowledged = before && RFCORE_XREG_FSMSTAT1 & (FSMSTAT1_SFD | FSMSTAT1_FIFOP);
    filter();
}

void radio_accept_unicast(bool accept) { change(&accept_unicast, accept); }
void radio_snoop(bool snoop) { change(&snooping, snoop); }

static void report(void) { radio_sent(outcome); }

static void finish(enum radio_outcome result)
{
    timer_stop(&limit);
    outcome = result;
    mode = LISTENING;
    if (result == RADIO_FAILED) {
        strobe(ISRFOFF);
        configure();
        listen();
    }
    if (retune_wanted)
        retune();
    retune_wanted = false;
    if (off_wanted)
        radio_off();
    event_post(&outcome_event);
}

static void out_of_step(void) { finish(RADIO_FAILED); }
static void no_ack(void) { finish(RADIO_NO_ACK); }

static void upload(const uint8_t *psdu, uint8_t length, uint8_t stamp, ticks_t sfd)
{
    uint8_t bytes[RADIO_STAMP_SIZE];
    if (stamp != RADIO_NO_STAMP)
        radio_stamp(bytes, sfd);
    strobe(ISFLUSHTX);
    RFCORE_SFR_RFDATA = length + 2U;
    for (uint8_t i = 0; i < length; i++)
        RFCORE_SFR_RFDATA = stamp != RADIO_NO_STAMP && i >= stamp && i < stamp + RADIO_STAMP_SIZE
                                ? bytes[i - stamp]
                                : psdu[i];
}

static bool channel_clear(void)
{
    uint32_t status = state();
    return status & FSMSTAT1_CLEAR && !(status & (FSMSTAT1_SFD | FSMSTAT1_TX));
}

/* By how many ticks the clock goes on at once where that is more than one, as an emulator's may;
 * else 0. Waits for it to go on, with interrupts off so that none passes for a step. */
static ticks_t coarseness(void)
{
    board_interrupts interrupts = board_interrupts_off();
    ticks_t before = clock_now(), now = before;
    while (now == before)
        now = clock_now();
    board_interrupts_restore(interrupts);
    return now - before > 1 ? now - before : 0;
}

/* Fills the FIFO and sends; a stamped frame at the very tick its stamp speaks of. An interrupt may
 * cost another try; a clock that does not show that tick cannot be waited for to it, and the frame
 * goes with the first one that it shows. False when no try was in time. */
static bool start(const uint8_t *psdu, uint8_t length, uint8_t stamp, bool *clear)
{
    ticks_t step = 0;
    for (uint8_t tries = 0; tries < 3; tries++) {
        ticks_t at = clock_now() + STAMP_LEAD;
        upload(psdu, length, stamp, at + SFD_DELAY);
        if (stamp != RADIO_NO_STAMP)
            while (!clock_reached(clock_now(), at - 1)) {}
        board_interrupts interrupts = board_interrupts_off();
        bool in_time = stamp == RADIO_NO_STAMP || !clock_reached(clock_now(), at + step);
        if (in_time && stamp != RADIO_NO_STAMP)
            while (!clock_reached(clock_now(), at)) {}
        *clear = in_time && channel_clear();
        if (*clear)
            strobe(ISTXON);
        board_interrupts_restore(interrupts);
        if (in_time)
            return true;
        step = coarseness();
    }
    return false;
}

bool radio_send(const uint8_t *psdu, uint8_t length, uint8_t stamp)
{
    if (mode != LISTENING || outcome_event.pending)
        return false;
    for (uint32_t i = 0; i < PATIENCE && !(RFCORE_XREG_RSSISTAT & 1); i++) {}
    sequence = psdu[2];
    ack_requested = psdu[0] & 0x20;
    sent = false;
    mode = SENDING;
    bool clear = false;
    if (!interrupt_event.pending && !start(psdu, length, stamp, &clear)) {
        mode = LISTENING;
        return false;
    }
    if (!clear) {
        finish(RADIO_BUSY);
        return true;
    }
    timer_start(&limit, clock_now() + SEND_LIMIT, out_of_step);
    return true;
}

/* Takes one frame from the FIFO: its bytes, RSSI, and whether the FCS was right with the
 * correlation (23.9.7). */
static bool download(struct radio_frame *frame)
{
    uint32_t length = RFCORE_SFR_RFDATA;
    frame->sfd = stamp_out == stamp_in ? clock_now() : stamps[stamp_out++ % STAMPS];
    if (length < 3 || length > RADIO_FRAME_MAXIMUM + 2) {
        flush_received();
        malformed++;
        return false;
    }
    frame->length = (uint8_t)(length - 2);
    for (uint8_t i = 0; i < frame->length; i++)
        buffer[i] = (uint8_t)RFCORE_SFR_RFDATA;
    int32_t rssi = (int8_t)RFCORE_SFR_RFDATA - RSSI_OFFSET;
    uint32_t last = RFCORE_SFR_RFDATA;
    int32_t quality = ((int32_t)(last & 0x7F) - CORRELATION_LEAST) * 255 / CORRELATION_SPAN;
    frame->rssi = (int8_t)(rssi < -128 ? -128 : rssi);
    frame->lqi = (uint8_t)(quality < 0 ? 0 : quality > 255 ? 255 : quality);
    return last & 0x80;
}

static void received(void)
{
    struct radio_frame frame = {.psdu = buffer};
    if (!download(&frame))
        return;
    const struct wire_mac_header *header = (const struct wire_mac_header *)buffer;
    bool ack = frame.length == 3 && buffer[0] == (WIRE_FRAME_CONTROL_ACK & 0xFF);
    if (ack) {
        if (mode == AWAITING_ACK && buffer[2] == sequence)
            finish(RADIO_SENT);
        return;
    }
    /* A unicast frame that the chip did not acknowledge was not received. */
    if (!acknowledging() && !acknowledged &&
        (frame.length < sizeof *header || (header->destination != WIRE_BROADCAST &&
                                           !(snooping && header->destination != own_address))))
        return;
    radio_received(&frame);
}

static void serve(void)
{
    if (mode == ASLEEP)
        return;
    if (sent && mode == SENDING) {
        sent = false;
        timer_stop(&limit);
        if (ack_requested) {
            mode = AWAITING_ACK;
            timer_start(&limit, clock_now() + ACK_LIMIT, no_ack);
        } else
            finish(RADIO_SENT);
    }
    for (;;) {
        uint32_t status = RFCORE_XREG_FSMSTAT1;
        if (!(status & (FSMSTAT1_FIFOP | FSMSTAT1_SFD)))
            acknowledged = false;
        if (mode == ASLEEP || !(status & FSMSTAT1_FIFOP))
            return;
        if (!(status & FSMSTAT1_FIFO)) { /* overflow (23.9.4) */
            flush_received();
            malformed++;
            return;
        }
        received();
    }
}
