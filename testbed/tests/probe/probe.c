/* A back-end without a CPU, to measure the air: a mote that sends numbered frames, listens, or asks
 * whether the channel is clear. Its settings are a struct plan; each observation is a byte on its
 * UART. */
#include <stdlib.h>
#include <string.h>

#include "skerry_backend.h"

enum {
    FRMFILT0 = 0x600,
    FRMCTRL0 = 0x624,
    FREQCTRL = 0x63C,
    FSMSTAT1 = 0x64C,
    CCACTRL0 = 0x658,
    RFIRQM0 = 0x68C,
    RFDATA = 0x828,
    RFIRQF0 = 0x834,
    RFST = 0x838
};
enum {
    ISRXON = 0xE3,
    ISTXON = 0xE9,
    ISFLUSHTX = 0xEE,
    AUTOCRC = 0x40,
    FIFOP = 1 << 2,
    CLEAR = 1 << 4,
    CRC_RIGHT = 0x80
};
enum { LISTEN, SEND, ASSESS };

struct plan {
    uint8_t mode, channel, length, cca_threshold;
    uint32_t every_us;
};

struct skerry_cpu {
    skerry_host host;
    struct plan plan;
    uint64_t next, now;
    double ppm;
    uint8_t number;
    int received, set_up;
};

static void put(skerry_cpu *cpu, uint32_t offset, uint32_t value)
{
    cpu->host.radio_write(cpu->host.mote, cpu->now, offset, value);
}
static uint32_t get(skerry_cpu *cpu, uint32_t offset)
{
    uint32_t value;
    cpu->host.radio_read(cpu->host.mote, cpu->now, offset, &value);
    return value;
}
static void tell(skerry_cpu *cpu, uint8_t byte) { cpu->host.uart(cpu->host.mote, cpu->now, byte); }

static skerry_cpu *create(const skerry_host *host, const char *elf, char *error)
{
    (void)elf;
    (void)error;
    skerry_cpu *cpu = calloc(1, sizeof *cpu);
    if (cpu)
        cpu->host = *host;
    return cpu;
}
static void release(skerry_cpu *cpu) { free(cpu); }

/* The radio is reset after the CPU: it is set up with the first step. */
static void power_on(skerry_cpu *cpu, uint64_t now)
{
    cpu->now = cpu->next = now;
    cpu->received = cpu->set_up = 0;
}

static void set_up(skerry_cpu *cpu)
{
    put(cpu, FRMFILT0, 0);
    put(cpu, FRMCTRL0, AUTOCRC);
    put(cpu, FREQCTRL, 11 + 5 * (cpu->plan.channel - 11));
    put(cpu, CCACTRL0, cpu->plan.cca_threshold);
    put(cpu, RFIRQM0, FIFOP);
    put(cpu, RFST, ISRXON);
    cpu->set_up = 1;
}

/* A frame has come: 1 as it was sent, 0 not. */
static void take(skerry_cpu *cpu)
{
    uint8_t length = (uint8_t)get(cpu, RFDATA), last = 0;
    for (int i = 0; i < length; i++)
        last = (uint8_t)get(cpu, RFDATA);
    if (get(cpu, RFIRQF0))
        put(cpu, RFIRQF0, 0);
    tell(cpu, !!(last & CRC_RIGHT));
}

static void act(skerry_cpu *cpu)
{
    if (cpu->plan.mode == ASSESS) {
        tell(cpu, !!(get(cpu, FSMSTAT1) & CLEAR));
        return;
    }
    put(cpu, RFST, ISFLUSHTX);
    put(cpu, RFDATA, cpu->plan.length);
    for (int i = 0; i < cpu->plan.length - 2; i++)
        put(cpu, RFDATA, i == 2 ? cpu->number : 0);
    put(cpu, RFST, ISTXON);
    cpu->number++;
}

static uint64_t run(skerry_cpu *cpu, uint64_t until)
{
    if (cpu->received) {
        cpu->received = 0;
        take(cpu);
    }
    while (cpu->next <= until) {
        cpu->now = cpu->next;
        if (cpu->set_up)
            act(cpu);
        else
            set_up(cpu);
        cpu->next = cpu->plan.mode == LISTEN ? UINT64_MAX
                                             : cpu->next + 1000U * (uint64_t)cpu->plan.every_us;
    }
    cpu->now = until;
    return cpu->next;
}

static void radio_interrupt(skerry_cpu *cpu, int level) { cpu->received = level; }
static int uart_receive(skerry_cpu *cpu, uint8_t byte)
{
    (void)cpu;
    (void)byte;
    return 1;
}
static void button(skerry_cpu *cpu, int down)
{
    (void)cpu;
    (void)down;
}
static void supply(skerry_cpu *cpu, uint32_t millivolts)
{
    (void)cpu;
    (void)millivolts;
}
static void set_clock(skerry_cpu *cpu, double ppm) { cpu->ppm = ppm; }
static int settings_write(skerry_cpu *cpu, const uint8_t *data, uint32_t length)
{
    if (length != sizeof cpu->plan)
        return -1;
    memcpy(&cpu->plan, data, length);
    return 0;
}
/* What its crystal has been set to, so that tests see it. */
static uint32_t settings_read(const skerry_cpu *cpu, uint8_t *data, uint32_t capacity)
{
    if (capacity < sizeof cpu->ppm)
        return 0;
    memcpy(data, &cpu->ppm, sizeof cpu->ppm);
    return sizeof cpu->ppm;
}
static void state_times(const skerry_cpu *cpu, uint64_t now, uint64_t times[SKERRY_CPU_STATES])
{
    (void)cpu;
    (void)now;
    memset(times, 0, SKERRY_CPU_STATES * sizeof *times);
}
static const char *fault(const skerry_cpu *cpu)
{
    (void)cpu;
    return "";
}
static uint64_t resets(const skerry_cpu *cpu)
{
    (void)cpu;
    return 0;
}
static uint64_t memory(const skerry_cpu *cpu) { return sizeof *cpu; }

const skerry_backend *skerry_backend_get(void)
{
    static const skerry_backend backend = {SKERRY_BACKEND_ABI,
                                           "probe",
                                           SKERRY_RADIO_CC2538,
                                           {0, 0, 0},
                                           create,
                                           release,
                                           power_on,
                                           run,
                                           radio_interrupt,
                                           uart_receive,
                                           button,
                                           supply,
                                           set_clock,
                                           settings_write,
                                           settings_read,
                                           state_times,
                                           fault,
                                           resets,
                                           memory,
                                           NULL,
                                           NULL,
                                           NULL,
                                           NULL,
                                           NULL};
    return &backend;
}
