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

int32_t medium_transmit(struct mote *sender, uint64_t start, const uint8_t *psdu, uint8_t length,
                        double dbm, bool ack)
{
    skerry_world *world = sender->world;
    int32_t number = world->air_next++;
    struct transmission *t = &world->air[number % TRANSMISSIONS];
    *t = (struct transmission){.number = number,
                               .sender = sender->index,
                               .start = start,
                               .dbm = dbm,
                               .length = length,
                               .ack = ack,
                               .channel = sender->radio.model->channel(&sender->radio),
                               .end = start + (uint64_t)(SHR_BYTES + 1 + length) * BYTE_NS};
    memcpy(t->psdu, psdu, length);
    world_event(world, start + SHR_BYTES * BYTE_NS, EVENT_TX_SFD, sender->index,
                sender->radio.generation, number);
    world_event(world, start + (SHR_BYTES + 1) * BYTE_NS, EVENT_TX_PHR, sender->index, 0, number);
    world_event(world, t->end, EVENT_TX_END, sender->index, sender->radio.generation, number);
    return number;
}

static int channel_of(const struct mote *mote) { return mote->radio.model->channel(&mote->radio); }

double medium_carrier(const struct mote *mote, uint64_t from, uint64_t to)
{
    const skerry_world *world = mote->world;
    int channel = channel_of(mote);
    double strongest = SILENCE_DBM;
    for (int i = 0; i < TRANSMISSIONS; i++) {
        const struct transmission *t = &world->air[i];
        if (t->end == 0 || t->end < from || t->start > to || t->sender == mote->index ||
            t->channel != channel)
            continue;
        const struct link *link = link_of(world->motes[t->sender], mote->index);
        if (link && t->dbm + link->gain > strongest)
            strongest = t->dbm + link->gain;
    }
    return strongest;
}

double medium_energy(const struct mote *mote, uint64_t from, uint64_t to)
{
    double mw = interference_mw(mote->world, mote->index, channel_of(mote), from,
                                to > from ? to : from + 1);
    return fmax(medium_carrier(mote, from, to), mw > 0 ? 10.0 * log10(mw) : SILENCE_DBM);
}

/* Who listens since the preamble locks on to the frame (7.1: two octets of it suffice). */
void medium_lock(skerry_world *world, uint64_t now, int32_t number, bool sfd)
{
    struct transmission *t = transmission(world, number);
    if (!t)
        return;
    const struct mote *sender = world->motes[t->sender];
    for (uint32_t i = 0; i < sender->link_count; i++) {
        struct mote *receiver = world->motes[sender->links[i].to];
        double dbm = t->dbm + sender->links[i].gain;
        struct radio *radio = &receiver->radio;
        if (radio->model->locks_at_sfd != sfd || !receiver->alive ||
            dbm < radio->model->sensitivity_dbm || sender->links[i].prr == 0.0)
            continue;
        if (channel_of(receiver) != t->channel)
            continue;
        if (!radio_listening(radio) || radio->listening_since > t->start + 2 * BYTE_NS)
            continue;
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
static double overlapping(const skerry_world *world, const struct transmission *t,
                          const struct mote *receiver)
{
    double sum = 0;
    for (int i = 0; i < TRANSMISSIONS; i++) {
        const struct transmission *other = &world->air[i];
        if (other == t || other->end <= t->start || other->start >= t->end ||
            other->sender == receiver->index || other->channel != t->channel)
            continue;
        const struct link *link = link_of(world->motes[other->sender], receiver->index);
        if (link)
            sum += milliwatt(other->dbm + link->gain);
    }
    return sum;
}

/* Probability that what interferes spoils no byte of a frame that noise alone lets through
 * (`clean`: a bit's error rate in noise alone, mW). */
static double undisturbed(skerry_world *world, const struct transmission *t,
                          const struct mote *receiver, double signal, double noise, double clean)
{
    if (!world->source_count)
        return 1.0;
    double probability = 1.0;
    for (uint64_t at = t->start; at < t->end; at += BYTE_NS) {
        double mw = interference_mw(world, receiver->index, t->channel, at, at + BYTE_NS);
        if (mw > 0)
            probability *= pow((1.0 - bit_error_rate(signal / (noise + mw))) / (1.0 - clean), 8.0);
    }
    return probability;
}

static void deliver(skerry_world *world, uint64_t now, struct transmission *t,
                    const struct link *link)
{
    struct mote *receiver = world->motes[link->to];
    double dbm = t->dbm + link->gain, signal = milliwatt(dbm),
           noise = milliwatt(world->config.noise_dbm);
    double others = world->config.collisions ? overlapping(world, t, receiver) : 0.0;
    bool by_noise = isnan(link->prr);
    double clean = by_noise ? bit_error_rate(signal / noise) : 0.0,
           frames = (t->length + 6) / 106.0;
    double probability = by_noise ? pow(1.0 - clean, 8.0 * t->length) : pow(link->prr, frames);
    double quality =
        by_noise ? fmax(0, fmin(1, (dbm - world->config.noise_dbm) / 20.0)) : link->prr;
    if (link->bursts && chain_at(&link->bursts->bad, t->start)) {
        probability *= pow(link->bursts->reception, frames);
        quality *= link->bursts->reception;
    }
    double in_silence = probability, drawn = random_unit(&world->random);
    probability *= undisturbed(world, t, receiver, signal, noise, clean);
    bool collided = others > 0 && dbm - 10.0 * log10(others + noise) < world->config.capture_db;
    bool intact = drawn < probability && !collided;
    if (intact) {
        t->received_by++;
        receiver->counters.received += !t->ack;
    } else if (collided)
        receiver->counters.lost_collision += !t->ack;
    else if (drawn < in_silence)
        receiver->counters.lost_interference += !t->ack;
    else
        receiver->counters.lost_link += !t->ack;
    receiver->radio.model->receive_end(&receiver->radio, now, t->psdu, t->length, intact, dbm,
                                       quality);
}

void medium_end(skerry_world *world, uint64_t now, int32_t number)
{
    struct transmission *t = transmission(world, number);
    if (!t)
        return;
    struct mote *sender = world->motes[t->sender];
    for (uint32_t i = 0; i < world->mote_count; i++) {
        if (world->motes[i]->radio.receiving != number)
            continue;
        const struct link *link = link_of(sender, i);
        /* A link that went down in the midst of a frame leaves its receiver with noise. */
        deliver(world, now, t, link ? link : &(struct link){.to = i, .gain = SILENCE_DBM});
    }
    skerry_frame *frame = &world->frames[world->frame_head++ % 65536U];
    if (world->frame_head - world->frame_tail > 65536U) {
        world->frame_tail++;
        world->frames_dropped++;
    }
    *frame = (skerry_frame){.start_ns = t->start,
                            .end_ns = t->end,
                            .sender = t->sender,
                            .received_by = t->received_by,
                            .length = t->length};
    memcpy(frame->psdu, t->psdu, t->length);
}
