/* compare SEED ROUNDS: drawn programs, each run by simavr and by the back-end's own execute(). The
 * first difference in anything that either may change is told on a line, and the exit status is 1.
 *
 * Both CPUs have drawn registers, RAM and flash, and run from a drawn place until simavr would look
 * for timers. Peripherals are not the matter: some I/O registers are what the test has put there,
 * which note when and how they are reached, let cycles pass, or want an interrupt. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "avr.h"

#include <simavr/sim_core.h>

#define NOTES 4096
#define LOOPS 512
/* What ELPM may reach with a drawn RAMPZ: simavr reads behind the flash then, where the chip has
 * the same flash again. */
#define COPIES 128
#define ADDRESSES 65536
#define RAM_BASE 0x200

static uint64_t random_state;
static uint32_t draw(uint32_t below)
{
    random_state = random_state * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)((random_state >> 32) * below >> 32);
}

/* ---- a register that notes ---- */
struct note {
    uint64_t cycle, left;
    uint16_t address;
    uint8_t written, value, status;
};
struct notes {
    uint32_t count;
    struct note note[NOTES];
};
static struct notes notes[2];
static uint64_t accesses;

static void take_note(avr_t *avr, uint16_t address, bool written, uint8_t value)
{
    struct notes *own = &notes[(uintptr_t)avr->custom.data];
    uint8_t status = 0;
    for (int i = 0; i < 8; i++)
        status |= (uint8_t)(avr->sreg[i] << i);
    accesses++;
    own->note[own->count++ % NOTES] =
        (struct note){avr->cycle, avr->run_cycle_count, address, written, value, status};
    switch (address % 8) {
    case 0:
        avr->cycle += 16;
        avr->run_cycle_count = 1;
        break;
    case 1: avr->run_cycle_count = avr->run_cycle_count / 2 + 1; break;
    case 2:
        if (avr->sreg[S_I] && !avr->interrupt_state)
            avr->interrupt_state = 1;
        break;
    case 3:
        if (value == 0x5A)
            avr->state = cpu_Sleeping;
        break;
    }
}

static uint8_t on_read(avr_t *avr, avr_io_addr_t address, void *parameter)
{
    (void)parameter;
    take_note(avr, address, false, avr->data[address]);
    return (uint8_t)(avr->data[address] + 1);
}

static void on_write(avr_t *avr, avr_io_addr_t address, uint8_t value, void *parameter)
{
    (void)parameter;
    take_note(avr, address, true, value);
    avr->data[address] = value ^ 3;
}

static avr_t *new_cpu(uintptr_t which)
{
    avr_t *avr = avr_make_mcu_by_name("atmega1281");
    avr_init(avr);
    avr->log = 0;
    avr->gdb_port = 0;
    avr->custom.data = (void *)which;
    free(avr->flash);
    avr->flash = malloc((size_t)COPIES * FLASH_BYTES);
    /* Before simavr stops a CPU that has left its memory, it reads and writes there. */
    free(avr->data);
    avr->data = calloc(1, ADDRESSES);
    if (!avr->flash || !avr->data)
        abort();
    memset(avr->io, 0, sizeof avr->io);
    for (uint16_t io = 0; io < MAX_IOs; io++) {
        uint16_t address = io + 32;
        if (address % 3 || address == R_SREG || address == R_SPL || address == R_SPH)
            continue;
        avr->io[io].r.c = on_read;
        avr->io[io].w.c = on_write;
    }
    return avr;
}

/* ---- drawing ---- */
static void draw_flash(uint8_t *flash)
{
    for (uint32_t i = 0; i < FLASH_BYTES; i++)
        flash[i] = (uint8_t)draw(256);
    for (uint32_t i = 0; i < FLASH_BYTES; i += 2) /* SPM: its model has a page of its own */
        if (flash[i] == 0xE8 && flash[i + 1] == 0x95)
            flash[i] = 0;
    for (int i = 0; i < LOOPS; i++) {
        static const uint8_t counts[4][2] = {
            {0x31, 0x97}, {0x01, 0x97}, {0x32, 0x97}, {0x8A, 0x95}};
        uint8_t *at = flash + 2 * draw(FLASH_WORDS - 2);
        memcpy(at, counts[draw(4)], 2);
        memcpy(at + 2, "\xF1\xF7", 2);
    }
}

/* Where a loop is, or anywhere. */
static uint32_t draw_place(const uint8_t *flash)
{
    uint32_t word = draw(FLASH_WORDS);
    if (draw(4) == 0)
        for (; word < FLASH_WORDS - 2; word++)
            if (flash[2 * word + 2] == 0xF1 && flash[2 * word + 3] == 0xF7)
                break;
    return draw(64) ? word : FLASH_WORDS - 1 - draw(4);
}

static void draw_state(avr_t *one, avr_t *other)
{
    for (uint32_t i = 0; i < RAM_BASE; i++)
        one->data[i] = (uint8_t)draw(256);
    /* Pointers often point to RAM, counts are often small. */
    for (int low = R_XL; low <= R_ZL; low += 2)
        if (draw(4))
            one->data[low + 1] = (uint8_t)draw(0x22);
    uint16_t sp = (uint16_t)(draw(8) ? 0x200 + draw(0x2000) : draw(0x10000));
    one->data[R_SPL] = (uint8_t)sp;
    one->data[R_SPH] = sp >> 8;
    memcpy(other->data, one->data, RAM_BASE);
    for (int i = 0; i < 8; i++)
        one->sreg[i] = other->sreg[i] = (uint8_t)draw(2);
    static const int8_t states[] = {0, 0, 0, 0, 0, 1, -1, -2};
    one->interrupt_state = other->interrupt_state = states[draw(8)];
    one->run_cycle_count = other->run_cycle_count = draw(3) ? 1 + draw(200) : 1 + draw(3);
    one->state = other->state = cpu_Running;
    one->cycle = other->cycle;
}

static const char *difference(const avr_t *one, const avr_t *other, uint32_t pc, uint32_t other_pc)
{
    /* Behind the flash all is one place. */
    if (pc != other_pc && (pc < FLASH_BYTES || other_pc < FLASH_BYTES))
        return "the program counter";
    if (one->cycle != other->cycle)
        return "the cycle counter";
    if (memcmp(one->sreg, other->sreg, sizeof one->sreg))
        return "the status register";
    if (memcmp(one->data, other->data, ADDRESSES))
        return "registers or RAM";
    if (one->state != other->state || one->interrupt_state != other->interrupt_state)
        return "the state";
    if (notes[0].count != notes[1].count ||
        memcmp(notes[0].note, notes[1].note,
               (notes[0].count < NOTES ? notes[0].count : NOTES) * sizeof(struct note)))
        return "what I/O registers saw";
    return NULL;
}

static void quiet(avr_t *avr, const int level, const char *format, va_list arguments)
{
    (void)avr;
    (void)level;
    (void)format;
    (void)arguments;
}

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    random_state = strtoull(arguments[1], NULL, 10);
    long rounds = strtol(arguments[2], NULL, 10);
    avr_global_logger_set(quiet);
    avr_t *one = new_cpu(0), *other = new_cpu(1);
    skerry_cpu cpu = {.avr = other, .image = calloc(1, sizeof *cpu.image)};
    uint8_t *flash = malloc(FLASH_BYTES);
    for (long round = 0; round < rounds; round++) {
        if (round % 20000 == 0) {
            draw_flash(flash);
            for (size_t i = 0; i < COPIES; i++) {
                memcpy(one->flash + i * FLASH_BYTES, flash, FLASH_BYTES);
                memcpy(other->flash + i * FLASH_BYTES, flash, FLASH_BYTES);
            }
            image_write(&cpu, 0, flash, FLASH_BYTES);
            for (uint32_t i = RAM_BASE; i < ADDRESSES; i++)
                one->data[i] = other->data[i] = (uint8_t)draw(256);
        } else {
            /* As a debugger writes: what stands beside it is another instruction now. */
            uint32_t at = draw(FLASH_BYTES);
            flash[at] = (uint8_t)draw(256);
            if (flash[at & ~1U] == 0xE8 && flash[at | 1U] == 0x95)
                flash[at] ^= 1;
            for (size_t i = 0; i < COPIES; i++)
                one->flash[i * FLASH_BYTES + at] = other->flash[i * FLASH_BYTES + at] = flash[at];
            image_write(&cpu, at, flash + at, 1);
        }
        draw_state(one, other);
        notes[0].count = notes[1].count = 0;
        one->pc = other->pc = 2 * draw_place(flash);
        uint32_t from = one->pc;
        uint32_t pc = avr_run_one(one), other_pc = execute(&cpu);
        const char *what = difference(one, other, pc, other_pc);
        if (what) {
            printf("round %ld: from 0x%05x (%02x%02x) to 0x%05x and 0x%05x, cycles %llu and %llu: "
                   "other is %s\n",
                   round, from, flash[from + 1], flash[from], pc, other_pc,
                   (unsigned long long)one->cycle, (unsigned long long)other->cycle, what);
            return 1;
        }
    }
    printf("%llu accesses to I/O registers\n", (unsigned long long)accesses / 2);
    return 0;
}
