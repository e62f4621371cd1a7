/* AT86RF230, from its data sheet (doc5131E): registers, frame buffer, states and their times, interrupts. */
#include <math.h>
#include <string.h>

#include "core.h"

enum { P_ON = 0x00, BUSY_RX = 0x01, BUSY_TX = 0x02, RX_ON = 0x06, TRX_OFF = 0x08, PLL_ON = 0x09, SLEEP = 0x0F,
       BUSY_RX_AACK = 0x11, RX_AACK_ON = 0x16, TRANSITION = 0x1F };
enum { CMD_TX_START = 0x02, CMD_FORCE_TRX_OFF = 0x03 };
enum { TRX_STATUS = 0x01, TRX_STATE = 0x02, PHY_TX_PWR = 0x05, PHY_RSSI = 0x06, PHY_ED_LEVEL = 0x07, PHY_CC_CCA = 0x08,
       CCA_THRES = 0x09, IRQ_MASK = 0x0E, IRQ_STATUS = 0x0F, SHORT_ADDR = 0x20, PAN_ID = 0x22 };
enum { IRQ_PLL_LOCK = 0x01, IRQ_RX_START = 0x04, IRQ_TRX_END = 0x08 };

#define US 1000U
/* 7.1.4, table 7-2: worst-case transition times. */
#define WAKE_NS (880U * US)
#define PLL_SETTLE_NS (180U * US)
#define RX_PLL_NS (1U * US)
#define TX_DELAY_NS (16U * US)
#define CCA_NS (140U * US)
#define SENSITIVITY_DBM -101.0
#define ACK_NS (192U * US)

/* Table 11: output power by PHY_TX_PWR, dBm; and supply current at it, mA (12.6: 16.5 at +3, interpolated below). */
static const double tx_dbm[16] = {3.0, 2.6, 2.1, 1.6, 1.1, 0.5, -0.2, -1.2, -2.2, -3.2, -4.2, -5.2, -7.2, -9.2, -12.2, -17.2};
static double tx_ma(uint8_t power) { return 16.5 - 7.0 * (3.0 - tx_dbm[power]) / 20.2; }

static bool in_transition(const struct rf230 *radio, uint64_t now) { return now < radio->busy_until; }

bool rf230_listening(const struct rf230 *radio) { return radio->listening_since != NEVER && radio->receiving < 0; }

void rf230_account(struct rf230 *radio, uint64_t now)
{
    static const double ma[5] = {0.00002, 1.5, 7.8, 15.5, 0.0};
    int kind = radio->state == SLEEP ? RADIO_SLEEP
        : radio->state == TRX_OFF || radio->state == P_ON ? RADIO_OFF
        : radio->state == PLL_ON ? RADIO_IDLE
        : radio->state == BUSY_TX ? RADIO_TX : RADIO_RX;
    if (now <= radio->accounted) return;
    double s = (double)(now - radio->accounted) * 1e-9;
    double current = kind == RADIO_TX ? tx_ma(radio->registers[PHY_TX_PWR] & 15) : ma[kind];
    if (radio->mote->alive) {
        radio->seconds[kind] += s;
        radio->joule[kind] += s * current * 1e-3 * radio->mote->supply_mv * 1e-3;
    }
    radio->accounted = now;
}

static void update_line(struct rf230 *radio)
{
    if (radio->mote->cpu)
        radio->mote->backend->radio_interrupt(radio->mote->cpu, (radio->interrupts & radio->registers[IRQ_MASK]) != 0);
}

static void interrupt(struct rf230 *radio, uint8_t bits)
{
    radio->interrupts |= bits;
    update_line(radio);
}

static void enter(struct rf230 *radio, uint64_t now, uint8_t state, uint64_t delay)
{
    rf230_account(radio, now);
    bool listens = state == RX_ON || state == RX_AACK_ON;
    bool pll_was_off = radio->state == TRX_OFF;
    radio->state = state;
    radio->busy_until = now + delay;
    radio->listening_since = listens ? now + delay : NEVER;
    radio->receiving = -1;
    if (pll_was_off && (listens || state == PLL_ON))
        world_event(radio->mote->world, now + delay, EVENT_LOCKED, radio->mote->index, radio->generation, 0);
}

void rf230_locked(struct rf230 *radio, uint64_t now)
{
    (void)now;
    if (radio->state != TRX_OFF && radio->state != SLEEP) interrupt(radio, IRQ_PLL_LOCK);
}

static void reset_registers(struct rf230 *radio)
{
    memset(radio->registers, 0, sizeof radio->registers);
    radio->registers[0x03] = 0x19;
    radio->registers[PHY_CC_CCA] = 0x2B;
    radio->registers[CCA_THRES] = 0xC7;
    radio->registers[IRQ_MASK] = 0xFF;
    radio->registers[0x10] = 0x04; /* VREG: digital supply good */
    radio->registers[0x11] = 0x22; /* BATMON */
    radio->registers[0x12] = 0xF0;
    radio->registers[0x1A] = 0x5F;
    radio->registers[0x1B] = 0x20;
    radio->registers[0x1C] = 2;
    radio->registers[0x1D] = 2;
    radio->registers[0x1E] = 0x1F;
    radio->registers[SHORT_ADDR] = radio->registers[SHORT_ADDR + 1] = 0xFF;
    radio->registers[PAN_ID] = radio->registers[PAN_ID + 1] = 0xFF;
    radio->registers[0x2C] = 0x38;
    radio->registers[0x2D] = 0xEA;
    radio->registers[0x2E] = 0xC2;
    radio->interrupts = 0;
    radio->wanted = 0;
    radio->cca_asked = NEVER;
    radio->generation++;
    update_line(radio);
}

void rf230_power_on(struct rf230 *radio, uint64_t now)
{
    radio->accounted = now;
    radio->state = P_ON;
    radio->reset_pin = true;
    radio->sleep_pin = radio->selected = false;
    reset_registers(radio);
    enter(radio, now, P_ON, WAKE_NS);
}

void rf230_power_off(struct rf230 *radio, uint64_t now)
{
    rf230_account(radio, now);
    radio->generation++;
    radio->listening_since = NEVER;
    radio->receiving = -1;
    radio->state = SLEEP;
}

static void command(struct rf230 *radio, uint64_t now, uint8_t cmd)
{
    uint8_t state = radio->state;
    if (cmd == CMD_FORCE_TRX_OFF) {
        if (state != SLEEP && state != P_ON) { radio->wanted = 0; enter(radio, now, TRX_OFF, RX_PLL_NS); }
        return;
    }
    if (state == P_ON) {
        if (cmd == TRX_OFF) enter(radio, now, TRX_OFF, radio->busy_until > now ? radio->busy_until - now : RX_PLL_NS);
        return;
    }
    if (state == SLEEP) return;
    if (state == BUSY_TX || ((state == BUSY_RX || state == BUSY_RX_AACK) && cmd != TRX_OFF)) {
        radio->wanted = cmd; /* runs when the frame is through */
        return;
    }
    switch (cmd) {
    case TRX_OFF: enter(radio, now, TRX_OFF, RX_PLL_NS); break;
    case PLL_ON: if (state != PLL_ON) enter(radio, now, PLL_ON, state == TRX_OFF ? PLL_SETTLE_NS : RX_PLL_NS); break;
    case RX_ON: case RX_AACK_ON:
        if (state == cmd) break;
        if (radio->busy_until > now && state == PLL_ON) enter(radio, now, cmd, radio->busy_until - now + RX_PLL_NS);
        else enter(radio, now, cmd, state == TRX_OFF ? PLL_SETTLE_NS : RX_PLL_NS);
        break;
    default: break;
    }
}

static void transmit(struct rf230 *radio, uint64_t now)
{
    if (radio->state != PLL_ON || in_transition(radio, now)) return;
    uint8_t length = radio->buffer[0] & 0x7F;
    if (length < 3) return;
    uint16_t crc = 0;
    for (int i = 0; i < length - 2; i++) {
        crc ^= radio->buffer[1 + i];
        for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ 0x8408 : crc >> 1;
    }
    uint8_t psdu[FRAME_BYTES];
    memcpy(psdu, radio->buffer + 1, length);
    if (radio->registers[PHY_TX_PWR] & 0x80) { psdu[length - 2] = (uint8_t)crc; psdu[length - 1] = (uint8_t)(crc >> 8); }
    enter(radio, now, BUSY_TX, 0);
    medium_transmit(radio->mote, now + TX_DELAY_NS, psdu, length, tx_dbm[radio->registers[PHY_TX_PWR] & 15], false);
    radio->mote->counters.sent++;
}

static void after_frame(struct rf230 *radio, uint64_t now, uint8_t state)
{
    enter(radio, now, state, 0);
    if (radio->wanted) { uint8_t cmd = radio->wanted; radio->wanted = 0; command(radio, now, cmd); }
}

void rf230_transmit_end(struct rf230 *radio, uint64_t now)
{
    if (radio->state == BUSY_TX) { after_frame(radio, now, PLL_ON); interrupt(radio, IRQ_TRX_END); }
    else if (radio->state == BUSY_RX_AACK) { after_frame(radio, now, RX_AACK_ON); } /* its acknowledgement is out */
}

void rf230_receive_start(struct rf230 *radio, uint64_t now, int32_t transmission)
{
    rf230_account(radio, now);
    radio->state = radio->state == RX_AACK_ON ? BUSY_RX_AACK : BUSY_RX;
    radio->receiving = transmission;
    interrupt(radio, IRQ_RX_START);
}

/* 7.2.3.5: what RX_AACK lets through, and whether it is acknowledged. */
static bool accepted(const struct rf230 *radio, const uint8_t *psdu, uint8_t length, bool *acknowledge)
{
    *acknowledge = false;
    if (length < 11 || (psdu[0] & 7) != 1) return false;
    uint16_t pan = (uint16_t)(psdu[3] | psdu[4] << 8), to = (uint16_t)(psdu[5] | psdu[6] << 8);
    uint16_t my_pan = (uint16_t)(radio->registers[PAN_ID] | radio->registers[PAN_ID + 1] << 8);
    uint16_t me = (uint16_t)(radio->registers[SHORT_ADDR] | radio->registers[SHORT_ADDR + 1] << 8);
    if (pan != my_pan && pan != 0xFFFF) return false;
    if (to == 0xFFFF) return true;
    *acknowledge = psdu[0] & 0x20;
    return to == me;
}

void rf230_receive_end(struct rf230 *radio, uint64_t now, const uint8_t *psdu, uint8_t length, bool intact, double dbm, double quality)
{
    bool aack = radio->state == BUSY_RX_AACK, acknowledge = false;
    radio->receiving = -1;
    radio->buffer[0] = length;
    memcpy(radio->buffer + 1, psdu, length);
    if (!intact) radio->buffer[1 + length / 2] ^= 0x5A;
    radio->buffer[1 + length] = (uint8_t)(quality * 255.0 + 0.5);
    double steps = floor((dbm + 91.0) / 3.0) + 1.0;
    radio->registers[PHY_RSSI] = (uint8_t)((intact ? 0x80 : 0) | (uint8_t)fmax(0, fmin(28, steps)));
    radio->registers[PHY_ED_LEVEL] = (uint8_t)fmax(0, fmin(84, dbm + 91.0));
    if (!aack) { after_frame(radio, now, RX_ON); interrupt(radio, IRQ_TRX_END); return; }
    if (!intact || !accepted(radio, psdu, length, &acknowledge)) { after_frame(radio, now, RX_AACK_ON); return; }
    interrupt(radio, IRQ_TRX_END);
    if (acknowledge) world_event(radio->mote->world, now + ACK_NS, EVENT_ACK, radio->mote->index, radio->generation, psdu[2]);
    else after_frame(radio, now, RX_AACK_ON);
}

void rf230_acknowledge(struct rf230 *radio, uint64_t now, uint8_t sequence)
{
    if (radio->state != BUSY_RX_AACK) return;
    uint8_t psdu[5] = {0x02, 0x00, sequence, 0, 0};
    uint16_t crc = 0;
    for (int i = 0; i < 3; i++) {
        crc ^= psdu[i];
        for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ 0x8408 : crc >> 1;
    }
    psdu[3] = (uint8_t)crc;
    psdu[4] = (uint8_t)(crc >> 8);
    radio->mote->counters.acks_sent++;
    medium_transmit(radio->mote, now, psdu, 5, tx_dbm[radio->registers[PHY_TX_PWR] & 15], true);
}

void rf230_pin(struct rf230 *radio, uint64_t now, enum skerry_pin pin, int level)
{
    switch (pin) {
    case SKERRY_PIN_RADIO_SELECT:
        radio->selected = !level;
        radio->spi_position = 0;
        break;
    case SKERRY_PIN_RADIO_RESET:
        if (radio->reset_pin && !level) { reset_registers(radio); enter(radio, now, TRX_OFF, 120 * US); }
        radio->reset_pin = level;
        break;
    case SKERRY_PIN_RADIO_SLEEP:
        if (level && !radio->sleep_pin) {
            if (radio->state == TRX_OFF) enter(radio, now, SLEEP, 0);
            else if (radio->state == PLL_ON) transmit(radio, now);
        } else if (!level && radio->sleep_pin && radio->state == SLEEP) enter(radio, now, TRX_OFF, WAKE_NS);
        radio->sleep_pin = level;
        break;
    default: break;
    }
}

static uint8_t read_register(struct rf230 *radio, uint64_t now, uint8_t address)
{
    uint8_t value = radio->registers[address];
    switch (address) {
    case TRX_STATUS:
        value = in_transition(radio, now) ? TRANSITION : radio->state;
        if (radio->cca_asked != NEVER && now >= radio->cca_asked + CCA_NS) {
            double threshold = -91.0 + 2.0 * (radio->registers[CCA_THRES] & 15);
            double dbm = medium_power(radio->mote, radio->cca_asked, radio->cca_asked + 128 * US);
            uint8_t mode = radio->registers[PHY_CC_CCA] >> 5 & 3;
            bool busy = mode == 2 ? dbm > SENSITIVITY_DBM : dbm > threshold;
            value |= 0x80 | (busy ? 0 : 0x40);
            radio->mote->counters.cca_busy += busy;
            radio->cca_asked = NEVER;
        }
        break;
    case PHY_RSSI:
        if (radio->listening_since != NEVER && radio->receiving < 0) {
            double dbm = medium_power(radio->mote, now, now);
            value = (uint8_t)((value & 0x80) | (uint8_t)fmax(0, fmin(28, floor((dbm + 91.0) / 3.0) + 1.0)));
        }
        break;
    case IRQ_STATUS:
        value = radio->interrupts;
        radio->interrupts = 0;
        update_line(radio);
        break;
    case PHY_CC_CCA: value &= 0x7F; break;
    default: break;
    }
    return value;
}

static void write_register(struct rf230 *radio, uint64_t now, uint8_t address, uint8_t value)
{
    if (address == TRX_STATUS || address == IRQ_STATUS || (address >= 0x1C && address <= 0x1F)) return;
    if (address == PHY_TX_PWR) rf230_account(radio, now);
    radio->registers[address] = value;
    if (address == TRX_STATE) {
        if ((value & 0x1F) == CMD_TX_START) transmit(radio, now);
        else command(radio, now, value & 0x1F);
    }
    if (address == PHY_CC_CCA && value & 0x80 && radio->state == RX_ON) radio->cca_asked = now;
    if (address == IRQ_MASK) update_line(radio);
}

/* 6: the first byte of a transfer says what it is. */
uint8_t rf230_spi(struct rf230 *radio, uint64_t now, uint8_t out)
{
    if (!radio->selected || !radio->reset_pin || (radio->state == SLEEP)) return 0;
    uint8_t position = radio->spi_position;
    if (radio->spi_position < 255) radio->spi_position++;
    if (position == 0) {
        radio->spi_mode = out;
        radio->spi_address = out & 0x3F;
        return 0; /* PHY_STATUS is a later chip's */
    }
    if (radio->spi_mode & 0x80) { /* register access, two bytes */
        if (position != 1) return 0;
        if (radio->spi_mode & 0x40) { write_register(radio, now, radio->spi_address, out); return 0; }
        return read_register(radio, now, radio->spi_address);
    }
    uint8_t at;
    switch (radio->spi_mode & 0xE0) {
    case 0x20: case 0x60: at = (uint8_t)(position - 1); break;     /* frame buffer from the PHR on */
    default:                                                        /* SRAM: address byte, then data */
        if (position == 1) { radio->spi_address = out; return 0; }
        at = (uint8_t)(radio->spi_address + position - 2);
    }
    if (at >= sizeof radio->buffer) return 0;
    if (radio->spi_mode & 0x40) { radio->buffer[at] = out; return 0; }
    return radio->buffer[at];
}
