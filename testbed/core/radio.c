/* What the radio chips share: energy, the interrupt line, the FCS, acknowledgements. */
#include "core.h"

void radio_account(struct radio *radio, uint64_t now, int state, double ma)
{
    if (now <= radio->accounted)
        return;
    double s = (double)(now - radio->accounted) * 1e-9;
    if (radio->mote->alive) {
        radio->seconds[state] += s;
        radio->joule[state] += s * ma * 1e-3 * radio->mote->supply_mv * 1e-3;
    }
    radio->accounted = now;
}

bool radio_listening(const struct radio *radio)
{
    return radio->listening_since != NEVER && radio->receiving < 0;
}

void radio_interrupt(const struct radio *radio, bool level)
{
    if (radio->mote->cpu)
        radio->mote->backend->radio_interrupt(radio->mote->cpu, level);
}

uint16_t radio_fcs(const uint8_t *psdu, uint8_t length)
{
    uint16_t crc = 0;
    for (int i = 0; i < length; i++) {
        crc ^= psdu[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0x8408 : crc >> 1;
    }
    return crc;
}

void radio_send_acknowledgement(struct radio *radio, uint64_t now, uint8_t sequence, double dbm)
{
    uint8_t psdu[5] = {0x02, 0x00, sequence, 0, 0};
    uint16_t fcs = radio_fcs(psdu, 3);
    psdu[3] = (uint8_t)fcs;
    psdu[4] = (uint8_t)(fcs >> 8);
    radio->mote->counters.acks_sent++;
    medium_transmit(radio->mote, now, psdu, sizeof psdu, dbm, true);
}
