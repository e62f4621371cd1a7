/* The air: who hears whom, how strongly, and what overlaps. O-QPSK at 250 kbit/s: 32 us a byte. */
#include <math.h>
#include <string.h>

#include "core.h"

#define BYTE_NS 32000U
#define SHR_BYTES 5U

static struct transmission *transmission(skerry_world *world, int32_t number)
{
    struct transmission *t = &world->air[number % TRANSMISSIONS];
    return t->number == number ? t : NULL;
}

static const struct link *link_of(const struct mote *from, uint32_t to)
{
    for (uint32_t i = 0; i < from->link_count; i++)
        if (from->links[i].to == to) return &from->links[i];
    return NULL;
}

int32_t medium_transmit(struct mote *sender, uint64_t start, const uint8_t *psdu, uint8_t length, double dbm, bool ack)
{
    skerry_world *world = sender->world;
    int32_t number = world->air_next++;
    struct transmission *t = &world->air[number % TRANSMISSIONS];
    *t = (struct transmission){.number = number, .sender = sender->index, .start = start, .dbm = dbm, .length = length, .ack = ack,
                               .end = start + (uint64_t)(SHR_BYTES + 1 + length) * BYTE_NS};
    memcpy(t->psdu, psdu, length);
    world_event(world, start + SHR_BYTES * BYTE_NS, EVENT_TX_SFD, sender->index, sender->radio.generation, number);
    world_event(world, start + (SHR_BYTES + 1) * BYTE_NS, EVENT_TX_PHR, sender->index, 0, number);
    world_event(world, t->end, EVENT_TX_END, sender->index, sender->radio.generation, number);
    return number;
}

double medium_power(const struct mote *mote, uint64_t from, uint64_t to)
{
    const skerry_world *world = mote->world;
    double strongest = -200.0;
    for (int i = 0; i < TRANSMISSIONS; i++) {
        const struct transmission *t = &world->air[i];
        if (t->end == 0 || t->end < from || t->start > to || t->sender == mote->index) continue;
        const struct link *link = link_of(world->motes[t->sender], mote->index);
        if (link && t->dbm + link->gain > strongest) strongest = t->dbm + link->gain;
    }
    return strongest;
}

/* Who listens since the preamble locks on to the frame (7.1: two octets of it suffice). */
void medium_lock(skerry_world *world, uint64_t now, int32_t number, bool sfd)
{
    struct transmission *t = transmission(world, number);
    if (!t) return;
    const struct mote *sender = world->motes[t->sender];
    for (uint32_t i = 0; i < sender->link_count; i++) {
        struct mote *receiver = world->motes[sender->links[i].to];
        double dbm = t->dbm + sender->links[i].gain;
        struct radio *radio = &receiver->radio;
        if (radio->model->locks_at_sfd != sfd || !receiver->alive || dbm < radio->model->sensitivity_dbm || sender->links[i].prr == 0.0) continue;
        if (!radio_listening(radio) || radio->listening_since > t->start + 2 * BYTE_NS) continue;
        radio->model->receive_start(radio, now, number);
    }
}

/* 802.15.4-2006 E.4.1.8: bit error rate of the 2.4 GHz PHY. */
static double bit_error_rate(double sinr)
{
    double sum = 0, choose = 16;
    for (int k = 2; k <= 16; k++) {
        choose = choose * (16 - k + 1) / k;
        sum += (k % 2 ? -1.0 : 1.0) * choose * exp(20.0 * sinr * (1.0 / k - 1.0));
    }
    return 8.0 / 15.0 / 16.0 * sum;
}

static double milliwatt(double dbm) { return pow(10.0, dbm / 10.0); }

/* Sum of the frames that overlap t at a receiver, in mW. */
static double interference(const skerry_world *world, const struct transmission *t, const struct mote *receiver)
{
    double sum = 0;
    for (int i = 0; i < TRANSMISSIONS; i++) {
        const struct transmission *other = &world->air[i];
        if (other == t || other->end <= t->start || other->start >= t->end || other->sender == receiver->index) continue;
        const struct link *link = link_of(world->motes[other->sender], receiver->index);
        if (link) sum += milliwatt(other->dbm + link->gain);
    }
    return sum;
}

static void deliver(skerry_world *world, uint64_t now, struct transmission *t, const struct link *link)
{
    struct mote *receiver = world->motes[link->to];
    if (receiver->radio.receiving != t->number) return;
    double dbm = t->dbm + link->gain, noise = milliwatt(world->config.noise_dbm);
    double others = world->config.collisions ? interference(world, t, receiver) : 0.0;
    double probability = isnan(link->prr) ? pow(1.0 - bit_error_rate(milliwatt(dbm) / noise), 8.0 * t->length)
                                          : pow(link->prr, (t->length + 6) / 106.0);
    bool collided = others > 0 && dbm - 10.0 * log10(others + noise) < world->config.capture_db;
    bool intact = random_unit(&world->random) < probability && !collided;
    double quality = isnan(link->prr) ? fmax(0, fmin(1, (dbm - world->config.noise_dbm) / 20.0)) : link->prr;
    if (intact) { t->received_by++; receiver->counters.received += !t->ack; }
    else if (collided) receiver->counters.lost_collision += !t->ack;
    else receiver->counters.lost_link += !t->ack;
    receiver->radio.model->receive_end(&receiver->radio, now, t->psdu, t->length, intact, dbm, quality);
}

void medium_end(skerry_world *world, uint64_t now, int32_t number)
{
    struct transmission *t = transmission(world, number);
    if (!t) return;
    struct mote *sender = world->motes[t->sender];
    for (uint32_t i = 0; i < sender->link_count; i++) deliver(world, now, t, &sender->links[i]);
    skerry_frame *frame = &world->frames[world->frame_head++ % 65536U];
    if (world->frame_head - world->frame_tail > 65536U) { world->frame_tail++; world->frames_dropped++; }
    *frame = (skerry_frame){.start_ns = t->start, .end_ns = t->end, .sender = t->sender, .received_by = t->received_by, .length = t->length};
    memcpy(frame->psdu, t->psdu, t->length);
}
