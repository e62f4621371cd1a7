/* Motes in lock-step, and what happens to them at exact times. */
#include <dlfcn.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"

#define DEFAULT_QUANTUM_NS 100000U
/* Of messages that nobody read yet; what does not fit is left out. */
#define MESSAGE_BYTES 65536U
#define UART_BYTE_NS 260417U /* 38400 baud, 10 bits */

static char error_text[512];
uint32_t skerry_interface(void) { return SKERRY_INTERFACE; }

const char *skerry_error(void) { return error_text; }

int world_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error_text, sizeof error_text, format, arguments);
    va_end(arguments);
    return -1;
}

/* ---- events: a binary heap by time, then by order of making ---- */
static bool earlier(const struct event *a, const struct event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void world_event(skerry_world *world, uint64_t at, enum event_kind kind, uint32_t mote,
                 uint32_t generation, int32_t value)
{
    if (world->event_count == world->event_capacity) {
        world->event_capacity = world->event_capacity ? 2 * world->event_capacity : 256;
        world->events = realloc(world->events, world->event_capacity * sizeof *world->events);
        if (!world->events)
            abort();
    }
    struct event new = {at, world->event_order++, kind, mote, generation, value};
    uint32_t i = world->event_count++;
    for (; i && earlier(&new, &world->events[(i - 1) / 2]); i = (i - 1) / 2)
        world->events[i] = world->events[(i - 1) / 2];
    world->events[i] = new;
}

static struct event event_take(skerry_world *world)
{
    struct event first = world->events[0], last = world->events[--world->event_count];
    uint32_t i = 0, child;
    while ((child = 2 * i + 1) < world->event_count) {
        if (child + 1 < world->event_count &&
            earlier(&world->events[child + 1], &world->events[child]))
            child++;
        if (!earlier(&world->events[child], &last))
            break;
        world->events[i] = world->events[child];
        i = child;
    }
    if (world->event_count)
        world->events[i] = last;
    return first;
}

/* ---- what a CPU asks of its mote ---- */
static void host_pin(void *m, uint64_t now, enum skerry_pin pin, int level)
{
    struct mote *mote = m;
    if (pin >= SKERRY_PIN_RED)
        mote->outputs = (uint8_t)((mote->outputs & ~(1 << (pin - SKERRY_PIN_RED))) |
                                  level << (pin - SKERRY_PIN_RED));
    else if (pin == SKERRY_PIN_ACCEL_POWER)
        sensors_accel_power(&mote->sensors, now, level);
    else if (pin == SKERRY_PIN_SENSOR_POWER)
        analogue_power(&mote->sensors, now, level);
    else
        mote->radio.model->pin(&mote->radio, now, pin, level);
}
static uint8_t host_spi(void *m, uint64_t now, uint8_t out)
{
    return rf230_spi(&((struct mote *)m)->rf230, now, out);
}
static enum skerry_access host_radio_read(void *m, uint64_t now, uint32_t offset, uint32_t *value)
{
    return cc2538_radio_read(&((struct mote *)m)->cc2538, now, offset, value);
}
static enum skerry_access host_radio_write(void *m, uint64_t now, uint32_t offset, uint32_t value)
{
    return cc2538_radio_write(&((struct mote *)m)->cc2538, now, offset, value);
}
static void host_uart(void *m, uint64_t now, uint8_t byte)
{
    struct ring *ring = &((struct mote *)m)->from_uart;
    (void)now;
    if (ring->head - ring->tail == UART_BYTES)
        ring->tail++;
    ring->bytes[ring->head++ % UART_BYTES] = byte;
}
static int host_twi_start(void *m, uint64_t now, uint8_t address, int read)
{
    return sensors_twi_start(&((struct mote *)m)->sensors, now, address, read);
}
static int host_twi_write(void *m, uint64_t now, uint8_t byte)
{
    return sensors_twi_write(&((struct mote *)m)->sensors, now, byte);
}
static uint8_t host_twi_read(void *m, uint64_t now)
{
    return sensors_twi_read(&((struct mote *)m)->sensors, now);
}
static void host_twi_stop(void *m, uint64_t now)
{
    sensors_twi_stop(&((struct mote *)m)->sensors, now);
}
static uint32_t host_adc(void *m, uint64_t now, enum skerry_input input)
{
    struct mote *mote = m;
    return sensors_adc(&mote->sensors, now, input, mote->supply_mv);
}
static void host_message(void *m, uint64_t now, const char *text)
{
    const struct mote *mote = m;
    skerry_world *world = mote->world;
    uint32_t room = MESSAGE_BYTES - world->messages_length;
    int length = snprintf(world->messages + world->messages_length, room, "mote %u at %.6f s: %s\n",
                          mote->node, (double)now * 1e-9, text);
    if (length > 0 && (uint32_t)length < room)
        world->messages_length += (uint32_t)length;
}

/* ---- world ---- */
skerry_world *skerry_world_create(const skerry_world_config *config)
{
    skerry_world *world = calloc(1, sizeof *world);
    if (world) {
        world->frames = calloc(65536, sizeof *world->frames);
        world->messages = calloc(1, MESSAGE_BYTES);
    }
    if (!world || !world->frames || !world->messages) {
        world_fail("out of memory");
        return NULL;
    }
    world->config = *config;
    if (!world->config.quantum_ns)
        world->config.quantum_ns = DEFAULT_QUANTUM_NS;
    world->random = config->seed;
    for (int i = 0; i < TRANSMISSIONS; i++)
        world->air[i].number = -1;
    return world;
}

void skerry_world_free(skerry_world *world)
{
    if (!world)
        return;
    for (uint32_t i = 0; i < world->mote_count; i++) {
        struct mote *mote = world->motes[i];
        if (mote->cpu)
            mote->backend->free(mote->cpu);
        links_free(mote);
        free(mote->debugger);
        free(mote);
    }
    interference_free(world);
    free(world->motes);
    free(world->events);
    free(world->frames);
    free(world->messages);
    free(world);
}

int skerry_backend_load(skerry_world *world, const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return world_fail("back-end %s: %s", path, dlerror());
    const skerry_backend *(*get)(void);
    *(void **)&get = dlsym(library, "skerry_backend_get");
    if (!get)
        return world_fail("back-end %s: no skerry_backend_get in it", path);
    const skerry_backend *backend = get();
    if (backend->abi != SKERRY_BACKEND_ABI)
        return world_fail("back-end %s: interface version %u, the core has %d", path, backend->abi,
                          SKERRY_BACKEND_ABI);
    if (world->backend_count == 4)
        return world_fail("back-end %s: more than 4 back-ends", path);
    world->backends[world->backend_count++] = backend;
    return 0;
}

int skerry_mote_add(skerry_world *world, const skerry_mote_config *config)
{
    const skerry_backend *backend = NULL;
    for (uint32_t i = 0; i < world->backend_count; i++)
        if (!strcmp(world->backends[i]->name, config->backend))
            backend = world->backends[i];
    if (!backend)
        return world_fail("mote %u: back-end '%s' is not loaded", config->node, config->backend);
    struct mote **motes = realloc(world->motes, (world->mote_count + 1) * sizeof *motes);
    struct mote *mote = calloc(1, sizeof *mote);
    if (motes)
        world->motes = motes;
    if (!motes || !mote) {
        free(mote);
        return world_fail("out of memory");
    }
    *mote = (struct mote){.world = world,
                          .index = world->mote_count,
                          .node = config->node,
                          .backend = backend,
                          .next = NEVER,
                          .supply_mv = config->supply_mv,
                          .boot_at = config->boot_ns};
    mote->radio = (struct radio){.mote = mote,
                                 .receiving = -1,
                                 .listening_since = NEVER,
                                 .model = backend->radio == SKERRY_RADIO_CC2538 ? &cc2538_model
                                                                                : &rf230_model};
    mote->sensors.value[SKERRY_SENSOR_TEMPERATURE] = 20;
    mote->sensors.value[SKERRY_SENSOR_HUMIDITY] = 50;
    mote->sensors.value[SKERRY_SENSOR_LIGHT] = 100;
    skerry_host host = {
        mote,      host_pin,       host_spi,         host_radio_read, host_radio_write,
        host_uart, host_twi_start, host_twi_write,   host_twi_read,   host_twi_stop,
        host_adc,  host_message,   debug_instruction};
    char text[256] = "";
    mote->cpu = backend->create(&host, config->elf, text);
    if (!mote->cpu) {
        free(mote);
        return world_fail("%s", text);
    }
    backend->supply(mote->cpu, (uint32_t)config->supply_mv);
    backend->clock(mote->cpu, config->clock_ppm);
    if (config->eeprom && backend->eeprom_write(mote->cpu, config->eeprom, config->eeprom_length)) {
        backend->free(mote->cpu);
        free(mote);
        return world_fail("mote %u: %u bytes of settings do not fit its EEPROM", config->node,
                          config->eeprom_length);
    }
    world->motes[world->mote_count] = mote;
    world_event(world, config->boot_ns, EVENT_BOOT, mote->index, 0, 0);
    return (int)world->mote_count++;
}

struct mote *world_mote(const skerry_world *world, uint32_t mote)
{
    if (mote < world->mote_count)
        return world->motes[mote];
    world_fail("mote index %u: the world has %u motes", mote, world->mote_count);
    return NULL;
}

static void power_on(struct mote *mote, uint64_t now)
{
    mote->alive = true;
    mote->backend->power_on(mote->cpu, now);
    debug_power_on(mote);
    mote->radio.model->power_on(&mote->radio, now);
    sensors_power_on(&mote->sensors, now);
    mote->next = now;
}

static void power_off(struct mote *mote, uint64_t now)
{
    mote->radio.model->power_off(&mote->radio, now);
    sensors_account(&mote->sensors, now);
    mote->alive = false;
    mote->next = NEVER;
}

static uint64_t run(struct mote *mote, uint64_t until)
{
    uint64_t next = mote->debugger ? debug_run(mote, until) : mote->backend->run(mote->cpu, until);
    if (mote->backend->power_lost && mote->backend->power_lost(mote->cpu))
        world_event(mote->world, until, EVENT_POWER_LOST, mote->index, 0, 0);
    return next;
}

static void catch_up(struct mote *mote, uint64_t now)
{
    if (mote->alive)
        mote->next = run(mote, now);
}

/* A byte a byte-time, as long as the mote takes them. */
static void uart_step(struct mote *mote, uint64_t now)
{
    mote->uart_busy = mote->to_uart.tail != mote->to_uart.head;
    if (!mote->uart_busy)
        return;
    if (!mote->alive) {
        mote->to_uart.tail = mote->to_uart.head;
        mote->uart_busy = false;
        return;
    }
    if (mote->backend->uart_receive(mote->cpu,
                                    mote->to_uart.bytes[mote->to_uart.tail % UART_BYTES]))
        mote->to_uart.tail++;
    world_event(mote->world, now + UART_BYTE_NS, EVENT_UART, mote->index, 0, 0);
}

static void handle(skerry_world *world, const struct event *event)
{
    struct mote *mote = world->motes[event->mote];
    uint64_t now = event->at;
    switch (event->kind) {
    case EVENT_BOOT:
        if (!mote->alive)
            power_on(mote, now);
        break;
    case EVENT_POWER_LOST:
        if (mote->alive)
            power_off(mote, now);
        mote->counters.resets++;
        power_on(mote, now);
        break;
    case EVENT_LOCKED:
        if (event->generation != mote->radio.generation)
            break;
        catch_up(mote, now);
        mote->radio.model->locked(&mote->radio, now);
        mote->next = now;
        break;
    case EVENT_TX_SFD:
    case EVENT_TX_PHR:
    case EVENT_TX_END:
        for (uint32_t i = 0; i < world->mote_count; i++) {
            struct mote *receiver = world->motes[i];
            if (receiver->radio.listening_since == NEVER)
                continue;
            if (receiver->radio.receiving == event->value || link_of(mote, i)) {
                catch_up(receiver, now);
                if (receiver->alive)
                    receiver->next = now;
            }
        }
        if (event->kind != EVENT_TX_END)
            medium_lock(world, now, event->value, event->kind == EVENT_TX_SFD);
        if (event->kind == EVENT_TX_PHR ||
            (event->kind == EVENT_TX_SFD && !mote->radio.model->transmit_sfd))
            break;
        catch_up(mote, now);
        if (event->kind == EVENT_TX_SFD) {
            if (event->generation == mote->radio.generation)
                mote->radio.model->transmit_sfd(&mote->radio, now);
            if (mote->alive)
                mote->next = now;
            break;
        }
        medium_end(world, now, event->value);
        if (event->generation == mote->radio.generation)
            mote->radio.model->transmit_end(&mote->radio, now);
        if (mote->alive)
            mote->next = now;
        break;
    case EVENT_ACK:
        if (event->generation != mote->radio.generation)
            break;
        catch_up(mote, now);
        mote->radio.model->acknowledge(&mote->radio, now, (uint8_t)event->value);
        mote->next = now;
        break;
    case EVENT_UART:
        catch_up(mote, now);
        uart_step(mote, now);
        if (mote->alive)
            mote->next = now;
        break;
    }
}

int skerry_world_run(skerry_world *world, uint64_t until_ns)
{
    while (world->now < until_ns) {
        if (world->stop) {
            world->stop = 0;
            return 1;
        }
        uint64_t next = until_ns;
        if (world->event_count && world->events[0].at < next)
            next = world->events[0].at;
        for (uint32_t i = 0; i < world->mote_count; i++)
            if (world->motes[i]->next < next)
                next = world->motes[i]->next;
        if (next < world->now)
            next = world->now;
        uint64_t end = next + world->config.quantum_ns;
        if (end > until_ns)
            end = until_ns;
        while (world->event_count && world->events[0].at <= end) {
            struct event event = event_take(world);
            handle(world, &event);
        }
        for (uint32_t i = 0; i < world->mote_count; i++) {
            struct mote *mote = world->motes[i];
            if (mote->next < end)
                mote->next = run(mote, end);
        }
        world->now = end;
    }
    return 0;
}

int skerry_world_watch(skerry_world *world, uint32_t line, uint64_t slice_ns, uint64_t until_ns)
{
    const struct mote *root = world_mote(world, line);
    if (!root)
        return -1;
    while (world->now < until_ns) {
        uint64_t end = (world->now / slice_ns + 1) * slice_ns;
        if (skerry_world_run(world, end < until_ns ? end : until_ns))
            return 1;
        if (world->stop_handler || world->messages_length ||
            world->frame_tail != world->frame_head || root->from_uart.tail != root->from_uart.head)
            break;
    }
    return 0;
}

void skerry_world_stop(skerry_world *world) { world->stop = 1; }
uint64_t skerry_world_now(const skerry_world *world) { return world->now; }

int skerry_sensor_set(skerry_world *world, uint32_t index, int32_t sensor, double value)
{
    struct mote *mote = world_mote(world, index);
    if (!mote)
        return -1;
    if (sensor < 0 || sensor > SKERRY_SENSOR_SUPPLY)
        return world_fail("sensor %d: 0..%d exist", sensor, SKERRY_SENSOR_SUPPLY);
    if (sensor == SKERRY_SENSOR_SUPPLY) {
        bool known = value > 0 && isfinite(value);
        mote->radio.model->account(&mote->radio, world->now);
        if (known)
            mote->supply_mv = value * 1000;
        mote->backend->supply(mote->cpu, known ? (uint32_t)(value * 1000 + 0.5) : 0);
    } else
        mote->sensors.value[sensor] = value;
    return 0;
}

int skerry_uart_read(skerry_world *world, uint32_t index, uint8_t *data, uint32_t capacity)
{
    struct mote *mote = world_mote(world, index);
    if (!mote)
        return -1;
    uint32_t n = 0;
    while (n < capacity && mote->from_uart.tail != mote->from_uart.head)
        data[n++] = mote->from_uart.bytes[mote->from_uart.tail++ % UART_BYTES];
    return (int)n;
}

int skerry_uart_write(skerry_world *world, uint32_t index, const uint8_t *data, uint32_t length)
{
    struct mote *mote = world_mote(world, index);
    if (!mote)
        return -1;
    uint32_t n = 0;
    while (n < length && mote->to_uart.head - mote->to_uart.tail < UART_BYTES)
        mote->to_uart.bytes[mote->to_uart.head++ % UART_BYTES] = data[n++];
    if (n && !mote->uart_busy) {
        mote->uart_busy = true;
        world_event(world, world->now + UART_BYTE_NS, EVENT_UART, index, 0, 0);
    }
    return (int)n;
}

int skerry_mote_kill(skerry_world *world, uint32_t index)
{
    struct mote *mote = world_mote(world, index);
    if (!mote)
        return -1;
    if (mote->alive)
        power_off(mote, world->now);
    return 0;
}

int skerry_mote_reboot(skerry_world *world, uint32_t index)
{
    struct mote *mote = world_mote(world, index);
    if (!mote)
        return -1;
    if (mote->alive)
        power_off(mote, world->now);
    mote->counters.resets++;
    power_on(mote, world->now);
    return 0;
}

int skerry_mote_flash(skerry_world *world, uint32_t index, const uint8_t *data, uint32_t length)
{
    struct mote *mote = world_mote(world, index);
    if (!mote || skerry_mote_kill(world, index))
        return -1;
    if (mote->backend->eeprom_write(mote->cpu, data, length))
        return world_fail("mote %u: %u bytes of settings do not fit its EEPROM", mote->node,
                          length);
    return skerry_mote_reboot(world, index);
}

int skerry_mote_cut(skerry_world *world, uint32_t index, uint32_t after, uint32_t seed)
{
    struct mote *mote = world_mote(world, index);
    if (!mote)
        return -1;
    if (!mote->backend->cut)
        return world_fail("mote %u: the back-end %s has no flash that is counted", mote->node,
                          mote->backend->name);
    mote->backend->cut(mote->cpu, after, seed);
    return 0;
}

int skerry_mote_wear(const skerry_world *world, uint32_t index, uint32_t *erasures,
                     uint32_t capacity)
{
    struct mote *mote = world_mote(world, index);
    if (!mote)
        return -1;
    return mote->backend->wear ? (int)mote->backend->wear(mote->cpu, erasures, capacity) : 0;
}

int skerry_mote_clock(skerry_world *world, uint32_t index, double ppm)
{
    struct mote *mote = world_mote(world, index);
    if (!mote)
        return -1;
    catch_up(mote, world->now);
    mote->backend->clock(mote->cpu, ppm);
    if (mote->alive)
        mote->next = world->now; /* what it waits for comes at another time now */
    return 0;
}

int skerry_mote_coarse(skerry_world *world, uint32_t index, uint64_t timer_step_ns,
                       uint32_t tail_reads)
{
    struct mote *mote = world_mote(world, index);
    if (!mote)
        return -1;
    if (!mote->backend->timer_step || mote->backend->radio != SKERRY_RADIO_CC2538)
        return world_fail("mote %u: the back-end %s has no coarse model", mote->node,
                          mote->backend->name);
    if (tail_reads > UINT8_MAX)
        return world_fail("mote %u: tail_reads = %u: expected at most %u", mote->node, tail_reads,
                          UINT8_MAX);
    catch_up(mote, world->now);
    mote->backend->timer_step(mote->cpu, timer_step_ns);
    mote->cc2538.tail_reads = (uint8_t)tail_reads;
    if (mote->alive)
        mote->next = world->now; /* what it waits for comes at another time now */
    return 0;
}

int skerry_mote_button(skerry_world *world, uint32_t index, int down)
{
    struct mote *mote = world_mote(world, index);
    if (!mote)
        return -1;
    catch_up(mote, world->now);
    mote->backend->button(mote->cpu, down);
    if (mote->alive)
        mote->next = world->now;
    return 0;
}

int skerry_mote_outputs(const skerry_world *world, uint32_t index)
{
    const struct mote *mote = world_mote(world, index);
    return mote ? mote->outputs : -1;
}

int skerry_mote_alive(const skerry_world *world, uint32_t index)
{
    struct mote *mote = world_mote(world, index);
    return mote ? mote->alive : -1;
}

const char *skerry_mote_fault(const skerry_world *world, uint32_t index)
{
    struct mote *mote = world_mote(world, index);
    return mote ? mote->backend->fault(mote->cpu) : error_text;
}

int skerry_mote_energy(const skerry_world *world, uint32_t index, skerry_energy *energy)
{
    struct mote *mote = world_mote(world, index);
    if (!mote)
        return -1;
    if (mote->alive) {
        mote->radio.model->account(&mote->radio, world->now);
        sensors_account(&mote->sensors, world->now);
    }
    uint64_t ns[SKERRY_CPU_STATES];
    mote->backend->state_times(mote->cpu, mote->alive ? world->now : 0, ns);
    const double *ma = mote->backend->current_ma;
    double volts = mote->supply_mv * 1e-3, j[SKERRY_CPU_STATES], s[SKERRY_CPU_STATES];
    for (int i = 0; i < SKERRY_CPU_STATES; i++) {
        s[i] = (double)ns[i] * 1e-9;
        j[i] = s[i] * ma[i] * 1e-3 * volts;
    }
    const struct radio *r = &mote->radio;
    *energy = (skerry_energy){j[0],
                              j[1],
                              j[2],
                              r->joule[RADIO_SLEEP],
                              r->joule[RADIO_OFF],
                              r->joule[RADIO_IDLE],
                              r->joule[RADIO_RX],
                              r->joule[RADIO_TX],
                              mote->sensors.joule,
                              s[0],
                              s[1],
                              s[2],
                              r->seconds[RADIO_SLEEP],
                              r->seconds[RADIO_OFF],
                              r->seconds[RADIO_IDLE],
                              r->seconds[RADIO_RX],
                              r->seconds[RADIO_TX]};
    return 0;
}

int skerry_mote_counters(const skerry_world *world, uint32_t index, skerry_counters *counters)
{
    struct mote *mote = world_mote(world, index);
    if (!mote)
        return -1;
    *counters = mote->counters;
    counters->resets += mote->backend->resets(mote->cpu);
    counters->crashes = mote->backend->fault(mote->cpu)[0] != 0;
    return 0;
}

int skerry_mote_eeprom(const skerry_world *world, uint32_t index, uint8_t *data, uint32_t capacity)
{
    struct mote *mote = world_mote(world, index);
    return mote ? (int)mote->backend->eeprom_read(mote->cpu, data, capacity) : -1;
}

uint64_t skerry_mote_memory(const skerry_world *world, uint32_t index)
{
    struct mote *mote = world_mote(world, index);
    return mote ? sizeof *mote + mote->link_capacity * sizeof *mote->links +
                      mote->backend->memory(mote->cpu)
                : 0;
}

int skerry_frames_read(skerry_world *world, skerry_frame *frames, uint32_t capacity)
{
    uint32_t n = 0;
    while (n < capacity && world->frame_tail != world->frame_head)
        frames[n++] = world->frames[world->frame_tail++ % 65536U];
    return (int)n;
}

uint64_t skerry_frames_dropped(const skerry_world *world) { return world->frames_dropped; }

int skerry_messages_read(skerry_world *world, char *text, uint32_t capacity)
{
    uint32_t length = world->messages_length < capacity ? world->messages_length : capacity;
    memcpy(text, world->messages, length);
    memmove(world->messages, world->messages + length, world->messages_length - length);
    world->messages_length -= length;
    return (int)length;
}
