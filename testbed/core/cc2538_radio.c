/* RF core of the CC2538, from its user's guide (SWRU319C, chapter 23): what the firmware uses of
 * it. Where silicon and Renode's model differ, a use that only one of them takes as meant is
 * refused: an image that runs here runs on both. */
#include <math.h>
#include <string.h>

#include "core.h"

/* Offsets from 0x40088000. */
enum {
    FFSM_AND_XREG = 0x400,
    PAN_ID0 = 0x5C8,
    PAN_ID1 = 0x5CC,
    SHORT_ADDR0 = 0x5D0,
    SHORT_ADDR1 = 0x5D4,
    FRMFILT0 = 0x600,
    FRMFILT1 = 0x604,
    SRCMATCH = 0x608,
    FRMCTRL0 = 0x624,
    FREQCTRL = 0x63C,
    TXPOWER = 0x640,
    FSMSTAT1 = 0x64C,
    FIFOPCTRL = 0x650,
    CCACTRL0 = 0x658,
    RSSISTAT = 0x664,
    RFIRQM0 = 0x68C,
    RFIRQM1 = 0x690,
    FSCAL1 = 0x6B8,
    AGCCTRL1 = 0x6C8,
    TXFILTCFG = 0x7E8,
    RFDATA = 0x828,
    RFIRQF1 = 0x830,
    RFIRQF0 = 0x834,
    RFST = 0x838
};
enum {
    ISRXON = 0xE3,
    ISTXON = 0xE9,
    ISFLUSHRX = 0xED,
    ISFLUSHTX = 0xEE,
    ISRFOFF = 0xEF,
    PROGRAM_RFOFF = 0xDF
};
enum {
    STATUS_TX = 1 << 1,
    STATUS_CLEAR = 1 << 4,
    STATUS_SFD = 1 << 5,
    STATUS_FIFOP = 1 << 6,
    STATUS_FIFO = 1 << 7
};
enum {
    FLAG0_SFD = 1 << 1,
    FLAG0_FIFOP = 1 << 2,
    FLAG0_ACCEPTED = 1 << 5,
    FLAG0_RXPKTDONE = 1 << 6,
    FLAG1_TXACKDONE = 1 << 0,
    FLAG1_TXDONE = 1 << 1
};
enum { FILTER = 1 << 0, AUTOACK = 1 << 5, AUTOCRC = 1 << 6 };

#define US 1000U
/* RX and TX calibration and turnaround: 192 us each (23.11). */
#define TURNAROUND_NS (192U * US)
#define RSSI_NS (128U * US)
#define OFFSET_DBM 73
/* SWRS096D: with the CPU idle (7 mA) 24 mA while waiting for a signal; 24 mA at 0 dBm, 34 mA at 7
 * dBm. */
#define RX_MA 17.0

static struct cc2538_radio *chip_of(struct radio *radio) { return (struct cc2538_radio *)radio; }
static uint8_t *reg(struct cc2538_radio *chip, uint32_t offset)
{
    return &chip->registers[(offset - FFSM_AND_XREG) / 4];
}

/* 23.5: 2394 MHz + FREQ; 802.15.4's channel 11 is at 2405 MHz, the others 5 MHz apart. */
static int channel(const struct radio *radio)
{
    return 11 +
           (((const struct cc2538_radio *)radio)->registers[(FREQCTRL - FFSM_AND_XREG) / 4] - 11) /
               5;
}

/* Output power by TXPOWER (SmartRF Studio's table), dBm; codes between are taken for the next lower
 * one. */
static double tx_dbm(uint8_t code)
{
    static const struct {
        uint8_t code;
        double dbm;
    } powers[] = {
        {0xFF, 7},  {0xED, 5},  {0xD5, 3},  {0xC5, 1},   {0xB6, 0},   {0xB0, -1},  {0xA1, -3},
        {0x91, -5}, {0x88, -7}, {0x72, -9}, {0x62, -11}, {0x58, -13}, {0x42, -15},
    };
    for (unsigned i = 0; i < sizeof powers / sizeof *powers; i++)
        if (code >= powers[i].code)
            return powers[i].dbm;
    return -24;
}

static void account(struct radio *radio, uint64_t now)
{
    struct cc2538_radio *chip = chip_of(radio);
    int kind = chip->state == CC2538_OFF  ? RADIO_SLEEP
               : chip->state == CC2538_TX ? RADIO_TX
                                          : RADIO_RX;
    double dbm = tx_dbm(*reg(chip, TXPOWER));
    radio_account(radio, now, kind,
                  kind == RADIO_SLEEP ? 0
                  : kind == RADIO_RX  ? RX_MA
                                      : 17.0 + fmax(0, dbm) * 10.0 / 7.0);
}

static void update_line(struct cc2538_radio *chip)
{
    radio_interrupt(&chip->radio, (chip->flags[0] & *reg(chip, RFIRQM0)) ||
                                      (chip->flags[1] & *reg(chip, RFIRQM1)));
}

static void raise_flags(struct cc2538_radio *chip, uint8_t flags0, uint8_t flags1)
{
    chip->flags[0] |= flags0;
    chip->flags[1] |= flags1;
    update_line(chip);
}

static void enter(struct cc2538_radio *chip, uint64_t now, int state, uint64_t listening_since)
{
    account(&chip->radio, now);
    chip->state = state;
    chip->radio.listening_since = listening_since;
    chip->radio.receiving = -1;
}

static void reset(struct cc2538_radio *chip, uint64_t now)
{
    chip->radio.generation++;
    enter(chip, now, CC2538_OFF, NEVER);
    memset(chip->registers, 0, sizeof chip->registers);
    *reg(chip, FRMFILT0) = 0x0D;
    *reg(chip, FRMFILT1) = 0x78;
    *reg(chip, SRCMATCH) = 0x07;
    *reg(chip, FRMCTRL0) = 0x40;
    *reg(chip, FREQCTRL) = 0x0B;
    *reg(chip, TXPOWER) = 0xF5;
    *reg(chip, FIFOPCTRL) = 0x40;
    *reg(chip, CCACTRL0) = 0xE0;
    *reg(chip, FSCAL1) = 0x2B;
    *reg(chip, AGCCTRL1) = 0x11;
    *reg(chip, TXFILTCFG) = 0x0F;
    memset(chip->flags, 0, sizeof chip->flags);
    memset(chip->flags_read, 0, sizeof chip->flags_read);
    chip->rx_count = chip->tx_count = 0;
    chip->overflow = chip->loaded = false;
    update_line(chip);
}

static void power_on(struct radio *radio, uint64_t now)
{
    radio->accounted = now;
    reset(chip_of(radio), now);
}

static void power_off(struct radio *radio, uint64_t now)
{
    enter(chip_of(radio), now, CC2538_OFF, NEVER);
    radio->generation++;
}

static void pin(struct radio *radio, uint64_t now, enum skerry_pin which, int level)
{
    if (which == SKERRY_PIN_RADIO_RESET && !level)
        reset(chip_of(radio), now);
}

/* ---- receiving ---- */
static void receive_start(struct radio *radio, uint64_t now, int32_t transmission)
{
    account(radio, now);
    radio->receiving = transmission;
    raise_flags(chip_of(radio), FLAG0_SFD, 0);
}

/* 23.9.5: frame filtering by version, type, PAN and short address. */
static bool accepted(struct cc2538_radio *chip, const uint8_t *psdu, uint8_t length)
{
    uint8_t type = psdu[0] & 7;
    if (!(*reg(chip, FRMFILT0) & FILTER))
        return true;
    if (type > 3 || !(*reg(chip, FRMFILT1) >> (3 + type) & 1) ||
        (psdu[1] >> 4 & 3) > (*reg(chip, FRMFILT0) >> 2 & 3))
        return false;
    if (type == 2)
        return length == 5;
    if (length < 9 || (psdu[1] >> 2 & 3) != 2)
        return false;
    uint16_t pan = (uint16_t)(psdu[3] | psdu[4] << 8), to = (uint16_t)(psdu[5] | psdu[6] << 8);
    uint16_t own_pan = (uint16_t)(*reg(chip, PAN_ID0) | *reg(chip, PAN_ID1) << 8);
    uint16_t own = (uint16_t)(*reg(chip, SHORT_ADDR0) | *reg(chip, SHORT_ADDR1) << 8);
    return (pan == own_pan || pan == 0xFFFF) && (to == own || to == 0xFFFF);
}

static void receive_end(struct radio *radio, uint64_t now, const uint8_t *psdu, uint8_t length,
                        bool intact, double dbm, double quality)
{
    struct cc2538_radio *chip = chip_of(radio);
    account(radio, now);
    radio->receiving = -1;
    if (length < 3 || !accepted(chip, psdu, length))
        return;
    if (chip->overflow || chip->rx_count + length + 1 > CC2538_FIFO_BYTES) {
        chip->overflow = true;
        radio->mote->counters.overrun++;
        raise_flags(chip, FLAG0_FIFOP, 0);
        return;
    }
    uint8_t *to = &chip->rx[chip->rx_count];
    to[0] = length;
    memcpy(to + 1, psdu, length);
    if (!intact)
        to[1 + (length - 2) / 2] ^= 0x5A;
    if (*reg(chip, FRMCTRL0) & AUTOCRC) {
        to[length - 1] = (uint8_t)(int8_t)fmax(-128, fmin(127, round(dbm + OFFSET_DBM)));
        to[length] = (uint8_t)((intact ? 0x80 : 0) | (int)(50.0 + 60.0 * quality + 0.5));
    }
    chip->rx_count = (uint16_t)(chip->rx_count + length + 1);
    raise_flags(chip, FLAG0_FIFOP | FLAG0_ACCEPTED | FLAG0_RXPKTDONE, 0);
    bool to_all = psdu[5] == 0xFF && psdu[6] == 0xFF;
    if (intact && (psdu[0] & 7) == 1 && psdu[0] & 0x20 && !to_all &&
        *reg(chip, FRMCTRL0) & AUTOACK && chip->state == CC2538_RX) {
        enter(chip, now, CC2538_ACKNOWLEDGING, NEVER);
        world_event(radio->mote->world, now + TURNAROUND_NS, EVENT_ACK, radio->mote->index,
                    radio->generation, psdu[2]);
    }
}

static void acknowledge(struct radio *radio, uint64_t now, uint8_t sequence)
{
    struct cc2538_radio *chip = chip_of(radio);
    if (chip->state != CC2538_ACKNOWLEDGING)
        return;
    radio_send_acknowledgement(radio, now, sequence, tx_dbm(*reg(chip, TXPOWER)));
}

/* ---- sending ---- */
static void transmit(struct cc2538_radio *chip, uint64_t now)
{
    uint8_t length = chip->tx[0] & 0x7F;
    bool whole = chip->tx_count > 0 && length >= 3 && chip->tx_count >= length - 1;
    if (!whole || chip->state == CC2538_TX || chip->state == CC2538_ACKNOWLEDGING)
        return;
    uint8_t psdu[FRAME_BYTES] = {0};
    memcpy(psdu, chip->tx + 1, length);
    if (*reg(chip, FRMCTRL0) & AUTOCRC) {
        uint16_t fcs = radio_fcs(psdu, length - 2);
        psdu[length - 2] = (uint8_t)fcs;
        psdu[length - 1] = (uint8_t)(fcs >> 8);
    }
    enter(chip, now, CC2538_TX, NEVER);
    medium_transmit(chip->radio.mote, now + TURNAROUND_NS, psdu, length,
                    tx_dbm(*reg(chip, TXPOWER)), false);
    chip->radio.mote->counters.sent++;
}

static void transmit_sfd(struct radio *radio, uint64_t now)
{
    (void)now;
    if (chip_of(radio)->state != CC2538_OFF)
        raise_flags(chip_of(radio), FLAG0_SFD, 0);
}

static void transmit_end(struct radio *radio, uint64_t now)
{
    struct cc2538_radio *chip = chip_of(radio);
    uint8_t flag = chip->state == CC2538_TX              ? FLAG1_TXDONE
                   : chip->state == CC2538_ACKNOWLEDGING ? FLAG1_TXACKDONE
                                                         : 0;
    if (!flag)
        return;
    enter(chip, now, CC2538_RX, now + TURNAROUND_NS);
    chip->tail = chip->tail_reads;
    raise_flags(chip, 0, flag);
}

/* ---- registers ---- */
static bool rssi_valid(const struct cc2538_radio *chip, uint64_t now)
{
    return chip->state == CC2538_RX && chip->radio.listening_since != NEVER &&
           now >= chip->radio.listening_since + RSSI_NS;
}

static bool channel_clear(struct cc2538_radio *chip, uint64_t now)
{
    if (!rssi_valid(chip, now) || chip->radio.receiving >= 0)
        return false;
    double threshold = (int8_t)*reg(chip, CCACTRL0) - OFFSET_DBM;
    return medium_energy(chip->radio.mote, now - RSSI_NS, now) < threshold;
}

static uint32_t status(struct cc2538_radio *chip, uint64_t now)
{
    bool clear = channel_clear(chip, now);
    /* The register is read for its other bits as well: only who has just loaded a frame asks
     * whether it may go. */
    if (chip->loaded && !clear)
        chip->radio.mote->counters.cca_busy++;
    chip->loaded = false;
    bool sending = chip->state == CC2538_TX || chip->state == CC2538_ACKNOWLEDGING;
    if (!sending && chip->tail) {
        chip->tail--;
        sending = true;
    }
    return (sending ? STATUS_TX : 0) | (clear ? STATUS_CLEAR : 0) |
           (chip->radio.receiving >= 0 ? STATUS_SFD : 0) |
           (chip->rx_count || chip->overflow ? STATUS_FIFOP : 0) |
           (chip->rx_count && !chip->overflow ? STATUS_FIFO : 0);
}

static bool plain(uint32_t offset)
{
    static const uint16_t known[] = {PAN_ID0,   PAN_ID1,  SHORT_ADDR0, SHORT_ADDR1, FRMFILT0,
                                     FRMFILT1,  SRCMATCH, FRMCTRL0,    FREQCTRL,    TXPOWER,
                                     FIFOPCTRL, CCACTRL0, RFIRQM0,     RFIRQM1,     FSCAL1,
                                     AGCCTRL1,  TXFILTCFG};
    for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i] == offset)
            return true;
    return false;
}

static uint8_t take_received(struct cc2538_radio *chip)
{
    uint8_t byte = chip->rx[0];
    memmove(chip->rx, chip->rx + 1, --chip->rx_count);
    return byte;
}

enum skerry_access cc2538_radio_read(struct cc2538_radio *chip, uint64_t now, uint32_t offset,
                                     uint32_t *value)
{
    *value = 0;
    if (plain(offset)) {
        *value = *reg(chip, offset);
        return SKERRY_ACCESS_DONE;
    }
    switch (offset) {
    case FSMSTAT1: *value = status(chip, now); break;
    case RSSISTAT: *value = rssi_valid(chip, now); break;
    case RFDATA:
        if (!chip->rx_count)
            return SKERRY_ACCESS_WRONG; /* RX FIFO underflow */
        *value = take_received(chip);
        break;
    case RFIRQF0:
    case RFIRQF1:
        *value = chip->flags[offset == RFIRQF1];
        if (*value)
            chip->flags_read[offset == RFIRQF1] = true;
        break;
    default: return SKERRY_ACCESS_UNKNOWN;
    }
    return SKERRY_ACCESS_DONE;
}

static enum skerry_access strobe(struct cc2538_radio *chip, uint64_t now, uint32_t command)
{
    switch (command) {
    case ISRXON:
        if (chip->state == CC2538_OFF || chip->state == CC2538_RX)
            enter(chip, now, CC2538_RX, now + TURNAROUND_NS);
        break;
    case ISTXON: transmit(chip, now); break;
    case ISRFOFF:
        chip->radio.generation++;
        enter(chip, now, CC2538_OFF, NEVER);
        break;
    case PROGRAM_RFOFF: break; /* an instruction of a program that nobody starts */
    case ISFLUSHRX:
        chip->rx_count = 0;
        chip->overflow = false;
        break;
    case ISFLUSHTX: chip->tx_count = 0; break;
    default: return SKERRY_ACCESS_UNKNOWN;
    }
    return SKERRY_ACCESS_DONE;
}

enum skerry_access cc2538_radio_write(struct cc2538_radio *chip, uint64_t now, uint32_t offset,
                                      uint32_t value)
{
    if (offset == TXPOWER)
        account(&chip->radio, now);
    if (plain(offset)) {
        /* takes effect with the next calibration only */
        if (offset == FREQCTRL && chip->state != CC2538_OFF)
            return SKERRY_ACCESS_WRONG;
        *reg(chip, offset) = (uint8_t)value;
        if (offset == RFIRQM0 || offset == RFIRQM1)
            update_line(chip);
        return SKERRY_ACCESS_DONE;
    }
    switch (offset) {
    case RFDATA:
        if (chip->tx_count == CC2538_FIFO_BYTES)
            return SKERRY_ACCESS_WRONG; /* TX FIFO overflow */
        chip->tx[chip->tx_count++] = (uint8_t)value;
        chip->loaded = true;
        break;
    case RFST: return strobe(chip, now, value);
    case RFIRQF0:
    case RFIRQF1: {
        /* Silicon clears where 0 is written and keeps where 1 is; Renode stores what is written. A
         * plain 0 after a read that was not 0 means the same. */
        int which = offset == RFIRQF1;
        if (value || !chip->flags_read[which])
            return SKERRY_ACCESS_WRONG;
        chip->flags[which] = 0;
        chip->flags_read[which] = false;
        update_line(chip);
        break;
    }
    default: return SKERRY_ACCESS_UNKNOWN;
    }
    return SKERRY_ACCESS_DONE;
}

const struct radio_model cc2538_model = {
    .sensitivity_dbm = -97,
    .channel = channel,
    .locks_at_sfd = true,
    .power_on = power_on,
    .power_off = power_off,
    .pin = pin,
    .account = account,
    .receive_start = receive_start,
    .receive_end = receive_end,
    .transmit_sfd = transmit_sfd,
    .transmit_end = transmit_end,
    .acknowledge = acknowledge,
};
