/* AT86RF230, from its data sheet (doc5131E): registers, frame buffer, states and their times,
 * interrupts. */
#include <math.h>
#include <string.h>

#include "core.h"

enum {
    P_ON = 0x00,
    BUSY_RX = 0x01,
    BUSY_TX = 0x02,
    RX_ON = 0x06,
    TRX_OFF = 0x08,
    PLL_ON = 0x09,
    SLEEP = 0x0F,
    BUSY_RX_AACK = 0x11,
    RX_AACK_ON = 0x16,
    TRANSITION = 0x1F
};
enum { CMD_TX_START = 0x02, CMD_FORCE_TRX_OFF = 0x03 };
enum {
    TRX_STATUS = 0x01,
    TRX_STATE = 0x02,
    PHY_TX_PWR = 0x05,
    PHY_RSSI = 0x06,
    PHY_ED_LEVEL = 0x07,
    PHY_CC_CCA = 0x08,
    CCA_THRES = 0x09,
    IRQ_MASK = 0x0E,
    IRQ_STATUS = 0x0F,
    SHORT_ADDR = 0x20,
    PAN_ID = 0x22
};
enum { IRQ_PLL_LOCK = 0x01, IRQ_RX_START = 0x04, IRQ_TRX_END = 0x08 };

#define US 1000U
/* 7.1.4, table 7-2: worst-case transition times. */
#define WAKE_NS (880U * US)
#define PLL_SETTLE_NS (180U * US)
#define PLL_RETUNE_NS (150U * US)
#define RX_PLL_NS (1U * US)
#define TX_DELAY_NS (16U * US)
#define CCA_NS (140U * US)
#define SENSITIVITY_DBM -101.0
#define ACK_NS (192U * US)

/* Table 11: output power by PHY_TX_PWR, dBm; and supply current at it, mA (12.6: 16.5 at +3,
 * interpolated below). */
static const double tx_dbm[16] = {3.0,  2.6,  2.1,  1.6,  1.1,  0.5,  -0.2,  -1.2,
                                  -2.2, -3.2, -4.2, -5.2, -7.2, -9.2, -12.2, -17.2};
static double tx_ma(uint8_t power) { return 16.5 - 7.0 * (3.0 - tx_dbm[power]) / 20.2; }

static bool in_transition(const struct rf230 *chip, uint64_t now) { return now < chip->busy_until; }

static struct rf230 *chip_of(struct radio *radio) { return (struct rf230 *)radio; }

static int channel(const struct radio *radio)
{
    return ((const struct rf230 *)radio)->registers[PHY_CC_CCA] & 31;
}

static void account(struct radio *radio, uint64_t now)
{
    static const double ma[RADIO_STATES] = {0.00002, 1.5, 7.8, 15.5, 0.0};
    const struct rf230 *chip = chip_of(radio);
    int kind = chip->state == SLEEP                            ? RADIO_SLEEP
               : chip->state == TRX_OFF || chip->state == P_ON ? RADIO_OFF
               : chip->state == PLL_ON                         ? RADIO_IDLE
               : chip->state == BUSY_TX                        ? RADIO_TX
                                                               : RADIO_RX;
    radio_account(radio, now, kind,
                  kind == RADIO_TX ? tx_ma(chip->registers[PHY_TX_PWR] & 15) : ma[kind]);
}

static void update_line(struct rf230 *chip)
{
    radio_interrupt(&chip->radio, chip->interrupts & chip->registers[IRQ_MASK]);
}

static void interrupt(struct rf230 *chip, uint8_t bits)
{
    chip->interrupts |= bits;
    update_line(chip);
}

static void enter(struct rf230 *chip, uint64_t now, uint8_t state, uint64_t delay)
{
    account(&chip->radio, now);
    bool listens = state == RX_ON || state == RX_AACK_ON;
    bool pll_was_off = chip->state == TRX_OFF;
    chip->state = state;
    chip->busy_until = now + delay;
    chip->radio.listening_since = listens ? now + delay : NEVER;
    chip->radio.receiving = -1;
    if (pll_was_off && (listens || state == PLL_ON))
        world_event(chip->radio.mote->world, now + delay, EVENT_LOCKED, chip->radio.mote->index,
                    chip->radio.generation, 0);
}

static void locked(struct radio *radio, uint64_t now)
{
    struct rf230 *chip = chip_of(radio);
    (void)now;
    if (chip->state != TRX_OFF && chip->state != SLEEP)
        interrupt(chip, IRQ_PLL_LOCK);
}

static void reset_registers(struct rf230 *chip)
{
    memset(chip->registers, 0, sizeof chip->registers);
    chip->registers[0x03] = 0x19;
    chip->registers[PHY_CC_CCA] = 0x2B;
    chip->registers[CCA_THRES] = 0xC7;
    chip->registers[IRQ_MASK] = 0xFF;
    chip->registers[0x10] = 0x04; /* VREG: digital supply good */
    chip->registers[0x11] = 0x22; /* BATMON */
    chip->registers[0x12] = 0xF0;
    chip->registers[0x1A] = 0x5F;
    chip->registers[0x1B] = 0x20;
    chip->registers[0x1C] = 2;
    chip->registers[0x1D] = 2;
    chip->registers[0x1E] = 0x1F;
    chip->registers[SHORT_ADDR] = chip->registers[SHORT_ADDR + 1] = 0xFF;
    chip->registers[PAN_ID] = chip->registers[PAN_ID + 1] = 0xFF;
    chip->registers[0x2C] = 0x38;
    chip->registers[0x2D] = 0xEA;
    chip->registers[0x2E] = 0xC2;
    chip->interrupts = 0;
    chip->wanted = 0;
    chip->cca_asked = NEVER;
    chip->radio.generation++;
    update_line(chip);
}

static void power_on(struct radio *radio, uint64_t now)
{
    struct rf230 *chip = chip_of(radio);
    chip->radio.accounted = now;
    chip->state = P_ON;
    chip->reset_pin = true;
    chip->sleep_pin = chip->selected = false;
    reset_registers(chip);
    enter(chip, now, P_ON, WAKE_NS);
}

static void power_off(struct radio *radio, uint64_t now)
{
    struct rf230 *chip = chip_of(radio);
    account(&chip->radio, now);
    chip->radio.generation++;
    chip->radio.listening_since = NEVER;
    chip->radio.receiving = -1;
    chip->state = SLEEP;
}

static void command(struct rf230 *chip, uint64_t now, uint8_t cmd)
{
    uint8_t state = chip->state;
    if (cmd == CMD_FORCE_TRX_OFF) {
        if (state != SLEEP && state != P_ON) {
            chip->wanted = 0;
            enter(chip, now, TRX_OFF, RX_PLL_NS);
        }
        return;
    }
    if (state == P_ON) {
        if (cmd == TRX_OFF)
            enter(chip, now, TRX_OFF, chip->busy_until > now ? chip->busy_until - now : RX_PLL_NS);
        return;
    }
    if (state == SLEEP)
        return;
    if (state == BUSY_TX || ((state == BUSY_RX || state == BUSY_RX_AACK) && cmd != TRX_OFF)) {
        chip->wanted = cmd; /* runs when the frame is through */
        return;
    }
    switch (cmd) {
    case TRX_OFF: enter(chip, now, TRX_OFF, RX_PLL_NS); break;
    case PLL_ON:
        if (state != PLL_ON)
            enter(chip, now, PLL_ON, state == TRX_OFF ? PLL_SETTLE_NS : RX_PLL_NS);
        break;
    case RX_ON:
    case RX_AACK_ON:
        if (state == cmd)
            break;
        if (chip->busy_until > now && state == PLL_ON)
            enter(chip, now, cmd, chip->busy_until - now + RX_PLL_NS);
        else
            enter(chip, now, cmd, state == TRX_OFF ? PLL_SETTLE_NS : RX_PLL_NS);
        break;
    default: break;
    }
}

static void transmit(struct rf230 *chip, uint64_t now)
{
    if (chip->state != PLL_ON || in_transition(chip, now))
        return;
    uint8_t length = chip->buffer[0] & 0x7F;
    if (length < 3)
        return;
    uint8_t psdu[FRAME_BYTES];
    memcpy(psdu, chip->buffer + 1, length);
    if (chip->registers[PHY_TX_PWR] & 0x80) {
        uint16_t fcs = radio_fcs(psdu, length - 2);
        psdu[length - 2] = (uint8_t)fcs;
        psdu[length - 1] = (uint8_t)(fcs >> 8);
    }
    enter(chip, now, BUSY_TX, 0);
    medium_transmit(chip->radio.mote, now + TX_DELAY_NS, psdu, length,
                    tx_dbm[chip->registers[PHY_TX_PWR] & 15], false);
    chip->radio.mote->counters.sent++;
}

static void after_frame(struct rf230 *chip, uint64_t now, uint8_t state)
{
    enter(chip, now, state, 0);
    if (chip->wanted) {
        uint8_t cmd = chip->wanted;
        chip->wanted = 0;
        command(chip, now, cmd);
    }
}

static void transmit_end(struct radio *radio, uint64_t now)
{
    struct rf230 *chip = chip_of(radio);
    if (chip->state == BUSY_TX) {
        after_frame(chip, now, PLL_ON);
        interrupt(chip, IRQ_TRX_END);
    } else if (chip->state == BUSY_RX_AACK) {
        after_frame(chip, now, RX_AACK_ON);
    } /* its acknowledgement is out */
}

static void receive_start(struct radio *radio, uint64_t now, int32_t transmission)
{
    struct rf230 *chip = chip_of(radio);
    account(&chip->radio, now);
    chip->state = chip->state == RX_AACK_ON ? BUSY_RX_AACK : BUSY_RX;
    chip->radio.receiving = transmission;
    interrupt(chip, IRQ_RX_START);
}

/* 7.2.3.5: what RX_AACK lets through, and whether it is acknowledged. */
static bool accepted(const struct rf230 *chip, const uint8_t *psdu, uint8_t length,
                     bool *acknowledge)
{
    *acknowledge = false;
    if (length < 11 || (psdu[0] & 7) != 1)
        return false;
    uint16_t pan = (uint16_t)(psdu[3] | psdu[4] << 8), to = (uint16_t)(psdu[5] | psdu[6] << 8);
    uint16_t my_pan = (uint16_t)(chip->registers[PAN_ID] | chip->registers[PAN_ID + 1] << 8);
    uint16_t me = (uint16_t)(chip->registers[SHORT_ADDR] | chip->registers[SHORT_ADDR + 1] << 8);
    if (pan != my_pan && pan != 0xFFFF)
        return false;
    if (to == 0xFFFF)
        return true;
    *acknowledge = psdu[0] & 0x20;
    return to == me;
}

static void receive_end(struct radio *radio, uint64_t now, const uint8_t *psdu, uint8_t length,
                        bool intact, double dbm, double quality)
{
    struct rf230 *chip = chip_of(radio);
    bool aack = chip->state == BUSY_RX_AACK, acknowledge = false;
    chip->radio.receiving = -1;
    chip->buffer[0] = length;
    memcpy(chip->buffer + 1, psdu, length);
    if (!intact)
        chip->buffer[1 + length / 2] ^= 0x5A;
    chip->buffer[1 + length] = (uint8_t)(quality * 255.0 + 0.5);
    double steps = floor((dbm + 91.0) / 3.0) + 1.0;
    chip->registers[PHY_RSSI] = (uint8_t)((intact ? 0x80 : 0) | (uint8_t)fmax(0, fmin(28, steps)));
    chip->registers[PHY_ED_LEVEL] = (uint8_t)fmax(0, fmin(84, dbm + 91.0));
    /* One buffer: the frame of an end that nobody has asked for yet is gone. */
    chip->radio.mote->counters.overrun += (!aack || intact) && chip->interrupts & IRQ_TRX_END;
    if (!aack) {
        after_frame(chip, now, RX_ON);
        interrupt(chip, IRQ_TRX_END);
        return;
    }
    if (!intact || !accepted(chip, psdu, length, &acknowledge)) {
        after_frame(chip, now, RX_AACK_ON);
        return;
    }
    interrupt(chip, IRQ_TRX_END);
    if (!acknowledge) {
        after_frame(chip, now, RX_AACK_ON);
        return;
    }
    chip->radio.listening_since = NEVER; /* until the acknowledgement is out */
    world_event(chip->radio.mote->world, now + ACK_NS, EVENT_ACK, chip->radio.mote->index,
                chip->radio.generation, psdu[2]);
}

static void acknowledge(struct radio *radio, uint64_t now, uint8_t sequence)
{
    struct rf230 *chip = chip_of(radio);
    if (chip->state != BUSY_RX_AACK)
        return;
    radio_send_acknowledgement(radio, now, sequence, tx_dbm[chip->registers[PHY_TX_PWR] & 15]);
}

static void pin(struct radio *radio, uint64_t now, enum skerry_pin pin, int level)
{
    struct rf230 *chip = chip_of(radio);
    switch (pin) {
    case SKERRY_PIN_RADIO_SELECT:
        chip->selected = !level;
        chip->spi_position = 0;
        break;
    case SKERRY_PIN_RADIO_RESET:
        if (chip->reset_pin && !level) {
            reset_registers(chip);
            enter(chip, now, TRX_OFF, 120 * US);
        }
        chip->reset_pin = level;
        break;
    case SKERRY_PIN_RADIO_SLEEP:
        if (level && !chip->sleep_pin) {
            if (chip->state == TRX_OFF)
                enter(chip, now, SLEEP, 0);
            else if (chip->state == PLL_ON)
                transmit(chip, now);
        } else if (!level && chip->sleep_pin && chip->state == SLEEP)
            enter(chip, now, TRX_OFF, WAKE_NS);
        chip->sleep_pin = level;
        break;
    default: break;
    }
}

static uint8_t read_register(struct rf230 *chip, uint64_t now, uint8_t address)
{
    uint8_t value = chip->registers[address];
    switch (address) {
    case TRX_STATUS:
        value = in_transition(chip, now) ? TRANSITION : chip->state;
        if (chip->cca_asked != NEVER && now >= chip->cca_asked + CCA_NS) {
            double threshold = -91.0 + 2.0 * (chip->registers[CCA_THRES] & 15);
            const struct mote *mote = chip->radio.mote;
            uint64_t from = chip->cca_asked, to = from + 128 * US;
            /* 7.5.3: 1 energy, 2 carrier, 3 both */
            uint8_t mode = chip->registers[PHY_CC_CCA] >> 5 & 3;
            bool carrier = medium_carrier(mote, from, to) > SENSITIVITY_DBM,
                 energy = medium_energy(mote, from, to) > threshold;
            bool busy = mode == 2 ? carrier : mode == 3 ? carrier && energy : energy;
            value |= 0x80 | (busy ? 0 : 0x40);
            chip->radio.mote->counters.cca_busy += busy;
            chip->cca_asked = NEVER;
        }
        break;
    case PHY_RSSI:
        if (chip->radio.listening_since != NEVER && chip->radio.receiving < 0) {
            double dbm = medium_energy(chip->radio.mote, now, now);
            value = (uint8_t)((value & 0x80) |
                              (uint8_t)fmax(0, fmin(28, floor((dbm + 91.0) / 3.0) + 1.0)));
        }
        break;
    case IRQ_STATUS:
        value = chip->interrupts;
        chip->interrupts = 0;
        update_line(chip);
        break;
    case PHY_CC_CCA: value &= 0x7F; break;
    default: break;
    }
    return value;
}

static void write_register(struct rf230 *chip, uint64_t now, uint8_t address, uint8_t value)
{
    if (address == TRX_STATUS || address == IRQ_STATUS || (address >= 0x1C && address <= 0x1F))
        return;
    if (address == PHY_TX_PWR)
        account(&chip->radio, now);
    bool retuned = address == PHY_CC_CCA && (value ^ chip->registers[address]) & 31;
    chip->registers[address] = value;
    /* 9.6: the PLL settles anew; a frame that is coming in is lost, and without its end. */
    if (retuned && chip->radio.listening_since != NEVER)
        enter(chip, now,
              chip->state == BUSY_RX        ? RX_ON
              : chip->state == BUSY_RX_AACK ? RX_AACK_ON
                                            : chip->state,
              PLL_RETUNE_NS);
    if (address == TRX_STATE) {
        if ((value & 0x1F) == CMD_TX_START)
            transmit(chip, now);
        else
            command(chip, now, value & 0x1F);
    }
    if (address == PHY_CC_CCA && value & 0x80 && chip->state == RX_ON)
        chip->cca_asked = now;
    if (address == IRQ_MASK)
        update_line(chip);
}

/* 6: the first byte of a transfer says what it is. */
uint8_t rf230_spi(struct rf230 *chip, uint64_t now, uint8_t out)
{
    if (!chip->selected || !chip->reset_pin || (chip->state == SLEEP))
        return 0;
    uint8_t position = chip->spi_position;
    if (chip->spi_position < 255)
        chip->spi_position++;
    if (position == 0) {
        chip->spi_mode = out;
        chip->spi_address = out & 0x3F;
        return 0; /* PHY_STATUS is a later chip's */
    }
    if (chip->spi_mode & 0x80) { /* register access, two bytes */
        if (position != 1)
            return 0;
        if (chip->spi_mode & 0x40) {
            write_register(chip, now, chip->spi_address, out);
            return 0;
        }
        return read_register(chip, now, chip->spi_address);
    }
    uint8_t at;
    switch (chip->spi_mode & 0xE0) {
    /* frame buffer from the PHR on */
    case 0x20:
    case 0x60: at = (uint8_t)(position - 1); break;
    /* SRAM: address byte, then data */
    default:
        if (position == 1) {
            chip->spi_address = out;
            return 0;
        }
        at = (uint8_t)(chip->spi_address + position - 2);
    }
    if (at >= sizeof chip->buffer)
        return 0;
    if (chip->spi_mode & 0x40) {
        chip->buffer[at] = out;
        return 0;
    }
    return chip->buffer[at];
}

const struct radio_model rf230_model = {
    .sensitivity_dbm = SENSITIVITY_DBM,
    .channel = channel,
    .power_on = power_on,
    .power_off = power_off,
    .pin = pin,
    .account = account,
    .receive_start = receive_start,
    .receive_end = receive_end,
    .transmit_end = transmit_end,
    .acknowledge = acknowledge,
    .locked = locked,
};
