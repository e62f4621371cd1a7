/* Executes decoded instructions where simavr would take apart each anew; all else of the chip stays
 * simavr's. What comes out is the same to the bit, with the cycles of each instruction, and when
 * which register is read and written: testbed/tests/test_avr_model.py compares.
 *
 * Copyright (c) 2026 the skerry authors. This file is MIT, but the library it is built into links
 * libsimavr and is therefore GPL-3 as a whole: docs/licences.md. */
#include <string.h>

#include "arithmetic.h"
#include "avr.h"

#include <simavr/avr_flash.h>
#include <simavr/avr_watchdog.h>
#include <simavr/sim_core.h>

/* From here on nothing but RAM. */
#define RAM_FIRST (MAX_IOs + 31)
#define ADDRESS_BYTES 2
enum { X = R_XL, Y = R_YL, Z = R_ZL };

/* simavr's, for a CPU that cannot go on. */
void crash(avr_t *avr);

/* ---- what is not RAM ---- */
static void tell_of_register(avr_t *avr, avr_io_addr_t io, uint8_t value)
{
    if (!avr->io[io].irq)
        return;
    avr_raise_irq(avr->io[io].irq + AVR_IOMEM_IRQ_ALL, value);
    for (int i = 0; i < 8; i++)
        avr_raise_irq(avr->io[io].irq + i, value >> i & 1);
}

static uint8_t load(avr_t *avr, uint16_t address)
{
    if (address == R_SREG)
        READ_SREG_INTO(avr, avr->data[R_SREG])
    else if (address > 31 && address < RAM_FIRST) {
        avr_io_addr_t io = AVR_DATA_TO_IO(address);
        if (avr->io[io].r.c)
            avr->data[address] = avr->io[io].r.c(avr, address, avr->io[io].r.param);
        tell_of_register(avr, io, avr->data[address]);
    }
    return avr_core_watch_read(avr, address);
}

static void store(avr_t *avr, uint16_t address, uint8_t value)
{
    if (address >= RAM_FIRST) {
        avr_core_watch_write(avr, address, value);
        return;
    }
    if (address == R_SREG) {
        avr->data[R_SREG] = value;
        SET_SREG_FROM(avr, value);
    }
    if (address > 31) {
        avr_io_addr_t io = AVR_DATA_TO_IO(address);
        if (avr->io[io].w.c)
            avr->io[io].w.c(avr, address, value, avr->io[io].w.param);
        else
            avr->data[address] = value;
        tell_of_register(avr, io, value);
    } else
        avr->data[address] = value;
}

/* Where Z points to, with EIND for `extended`. */
static uint32_t indirect(const avr_t *avr, bool extended)
{
    uint32_t word = pair(avr->data, Z) | (extended ? (uint32_t)avr->data[avr->eind] << 16 : 0);
    return word < FLASH_WORDS ? word : FLASH_WORDS;
}

/* The cycle counter and what is left until simavr looks for timers are in `end` and `left` while
 * instructions run that nobody else sees, and what is left that cannot be used is `withheld`: these
 * macros hand them over to others, and take them back with what those have done. */
#define HAND_OVER()                                                                                \
    do {                                                                                           \
        avr->cycle = end - left;                                                                   \
        avr->run_cycle_count = left + withheld;                                                    \
        keep_flags(avr, flags);                                                                    \
    } while (0)
#define TAKE_BACK()                                                                                \
    do {                                                                                           \
        flags = flags_of(avr);                                                                     \
        left = avr->state == cpu_Running && !avr->interrupt_state ? avr->run_cycle_count : 0;      \
        withheld = avr->run_cycle_count - left;                                                    \
        end = avr->cycle + left;                                                                   \
    } while (0)
#define IN_RAM(address) ((unsigned)(address) - RAM_FIRST <= ram_last - RAM_FIRST)
#define LOAD(address, into)                                                                        \
    do {                                                                                           \
        uint16_t at_ = (uint16_t)(address);                                                        \
        if (IN_RAM(at_))                                                                           \
            into = data[at_];                                                                      \
        else {                                                                                     \
            HAND_OVER();                                                                           \
            into = load(avr, at_);                                                                 \
            TAKE_BACK();                                                                           \
        }                                                                                          \
    } while (0)
#define STORE(address, value)                                                                      \
    do {                                                                                           \
        uint16_t at_ = (uint16_t)(address);                                                        \
        uint8_t value_ = (uint8_t)(value);                                                         \
        if (IN_RAM(at_))                                                                           \
            data[at_] = value_;                                                                    \
        else {                                                                                     \
            HAND_OVER();                                                                           \
            store(avr, at_, value_);                                                               \
            TAKE_BACK();                                                                           \
        }                                                                                          \
    } while (0)
/* Low byte first, downwards. */
#define PUSH_ADDRESS(word)                                                                         \
    do {                                                                                           \
        uint32_t word_ = (word);                                                                   \
        uint16_t sp_ = pair(data, R_SPL);                                                          \
        STORE(sp_, word_);                                                                         \
        STORE(sp_ - 1, word_ >> 8);                                                                \
        set_pair(data, R_SPL, (uint16_t)(sp_ - ADDRESS_BYTES));                                    \
    } while (0)
#define POP_ADDRESS(word)                                                                          \
    do {                                                                                           \
        uint16_t sp_ = pair(data, R_SPL);                                                          \
        uint8_t high_, low_;                                                                       \
        LOAD(sp_ + 1, high_);                                                                      \
        LOAD(sp_ + 2, low_);                                                                       \
        set_pair(data, R_SPL, (uint16_t)(sp_ + ADDRESS_BYTES));                                    \
        word = high_ << 8 | low_;                                                                  \
    } while (0)
/* A load or store by a pointer that moves before it or after it. */
#define LOAD_BY(pointer, before, after)                                                            \
    do {                                                                                           \
        uint16_t to_ = (uint16_t)(pair(data, pointer) + (before));                                 \
        uint8_t loaded_;                                                                           \
        LOAD(to_, loaded_);                                                                        \
        set_pair(data, pointer, (uint16_t)(to_ + (after)));                                        \
        data[i->d] = loaded_;                                                                      \
        DONE(2);                                                                                   \
    } while (0)
#define STORE_BY(pointer, before, after)                                                           \
    do {                                                                                           \
        uint16_t to_ = (uint16_t)(pair(data, pointer) + (before));                                 \
        STORE(to_, data[i->d]);                                                                    \
        set_pair(data, pointer, (uint16_t)(to_ + (after)));                                        \
        DONE(2);                                                                                   \
    } while (0)
/* Ends an instruction. */
#define DONE(n)                                                                                    \
    do {                                                                                           \
        cycles = (n);                                                                              \
        goto next;                                                                                 \
    } while (0)
/* Ends an instruction of one cycle whose result is in register d. */
#define RESULT(value)                                                                              \
    do {                                                                                           \
        data[i->d] = (uint8_t)(value);                                                             \
        DONE(1);                                                                                   \
    } while (0)
#define ONLY_FLAGS(result)                                                                         \
    do {                                                                                           \
        (void)(result);                                                                            \
        DONE(1);                                                                                   \
    } while (0)
#define PRODUCT(product, shift)                                                                    \
    do {                                                                                           \
        multiply(data, &flags, product, shift);                                                    \
        DONE(2);                                                                                   \
    } while (0)
#define LOAD_AT(address, n)                                                                        \
    do {                                                                                           \
        LOAD(address, data[i->d]);                                                                 \
        DONE(n);                                                                                   \
    } while (0)
#define STORE_AT(address, n)                                                                       \
    do {                                                                                           \
        STORE(address, data[i->d]);                                                                \
        DONE(n);                                                                                   \
    } while (0)
#define JUMP(to, n)                                                                                \
    do {                                                                                           \
        word = (to);                                                                               \
        DONE(n);                                                                                   \
    } while (0)
#define BRANCH(condition)                                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            DONE(1);                                                                               \
        JUMP(i->k, 2);                                                                             \
    } while (0)
#define SKIP(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            DONE(1);                                                                               \
        JUMP(i->k, 1 + i->extra);                                                                  \
    } while (0)

avr_flashaddr_t execute(skerry_cpu *cpu)
{
    avr_t *avr = cpu->avr;
    uint8_t *data = avr->data;
    const struct instruction *code = cpu->image->code, *i;
    const unsigned ram_last = avr->ramend;
    struct flags flags = flags_of(avr);
    /* While an interrupt may be next, simavr looks after each instruction. */
    uint64_t left = avr->interrupt_state || !avr->run_cycle_count ? 1 : avr->run_cycle_count;
    uint64_t withheld = avr->run_cycle_count - left, end = avr->cycle + left;
    uint32_t word = avr->pc / 2 < FLASH_WORDS ? avr->pc / 2 : FLASH_WORDS, cycles;
    uint8_t value;

again:
    i = &code[word++];
    switch ((enum operation)i->operation) {
    case NOP: DONE(1);
    case MOV: RESULT(data[i->r]);
    case MOVW: set_pair(data, i->d, pair(data, i->r)); DONE(1);
    case LDI: RESULT(i->k);

    case ADD: RESULT(add(&flags, data[i->d], data[i->r], 0));
    case ADC: RESULT(add(&flags, data[i->d], data[i->r], flags.carry));
    case SUB: RESULT(subtract(&flags, data[i->d], data[i->r], 0, 0));
    case SBC: RESULT(subtract(&flags, data[i->d], data[i->r], flags.carry, flags.zero));
    case CP: ONLY_FLAGS(subtract(&flags, data[i->d], data[i->r], 0, 0));
    case CPC: ONLY_FLAGS(subtract(&flags, data[i->d], data[i->r], flags.carry, flags.zero));
    case CPI: ONLY_FLAGS(subtract(&flags, data[i->d], (uint8_t)i->k, 0, 0));
    case SUBI: RESULT(subtract(&flags, data[i->d], (uint8_t)i->k, 0, 0));
    case SBCI: RESULT(subtract(&flags, data[i->d], (uint8_t)i->k, flags.carry, flags.zero));
    case AND: RESULT(logic(&flags, data[i->d] & data[i->r]));
    case OR: RESULT(logic(&flags, data[i->d] | data[i->r]));
    case EOR: RESULT(logic(&flags, data[i->d] ^ data[i->r]));
    case ANDI: RESULT(logic(&flags, data[i->d] & i->k));
    case ORI: RESULT(logic(&flags, data[i->d] | i->k));
    case COM:
        data[i->d] = logic(&flags, (uint8_t)~data[i->d]);
        flags.carry = 1;
        DONE(1);
    case NEG: RESULT(subtract(&flags, 0, data[i->d], 0, 0));
    case SWAP: RESULT((uint8_t)(data[i->d] >> 4 | data[i->d] << 4));
    case INC: RESULT(step_by_one(&flags, data[i->d] + 1, 0x80));
    case DELAY_BYTE: {
        /* Rounds that come to their end before simavr looks for timers pass at once, but for the
         * last: what it leaves behind is all that is left of them. */
        uint64_t rounds = (uint8_t)(data[i->d] - 1), fit = (left - 1) / 3;
        if (rounds > fit)
            rounds = fit;
        left -= 3 * rounds;
        data[i->d] -= (uint8_t)rounds;
    } /* fall through */
    case DEC: RESULT(step_by_one(&flags, data[i->d] - 1, 0x7F));
    case ASR: RESULT(shift_right(&flags, data[i->d], data[i->d] & 0x80));
    case LSR: RESULT(shift_right(&flags, data[i->d], 0));
    case ROR: RESULT(shift_right(&flags, data[i->d], (uint8_t)(flags.carry << 7)));

    case ADIW: {
        uint16_t before = pair(data, i->d), after = (uint16_t)(before + i->k);
        set_pair(data, i->d, after);
        flags_of_word(&flags, after, ~before & after, ~after & before);
        DONE(2);
    }
    case DELAY_WORD: {
        uint64_t rounds = (uint16_t)(pair(data, i->d) - 1), fit = (left - 1) / 4;
        if (rounds > fit)
            rounds = fit;
        left -= 4 * rounds;
        set_pair(data, i->d, (uint16_t)(pair(data, i->d) - rounds));
    } /* fall through */
    case SBIW: {
        uint16_t before = pair(data, i->d), after = (uint16_t)(before - i->k);
        set_pair(data, i->d, after);
        flags_of_word(&flags, after, before & ~after, after & ~before);
        DONE(2);
    }
    case MUL: PRODUCT(data[i->d] * data[i->r], 0);
    case MULS: PRODUCT((int8_t)data[i->d] * (int8_t)data[i->r], 0);
    case MULSU: PRODUCT((int8_t)data[i->d] * data[i->r], 0);
    case FMUL: PRODUCT(data[i->d] * data[i->r], 1);
    case FMULS: PRODUCT((int8_t)data[i->d] * (int8_t)data[i->r], 1);
    case FMULSU: PRODUCT((int8_t)data[i->d] * data[i->r], 1);

    case BLD: RESULT((uint8_t)((data[i->d] & ~(1 << i->r)) | avr->sreg[S_T] << i->r));
    case BST: avr->sreg[S_T] = data[i->d] >> i->r & 1; DONE(1);
    case BSET:
    case BCLR:
        HAND_OVER();
        avr_sreg_set(avr, i->d, i->operation == BSET);
        TAKE_BACK();
        DONE(1);

    case BRCS: BRANCH(flags.carry);
    case BRCC: BRANCH(!flags.carry);
    case BREQ: BRANCH(!flags.zero);
    case BRNE: BRANCH(flags.zero);
    case BRMI: BRANCH(flags.negative & 0x80);
    case BRPL: BRANCH(!(flags.negative & 0x80));
    case BRVS: BRANCH(flags.overflow & 0x80);
    case BRVC: BRANCH(!(flags.overflow & 0x80));
    case BRLT: BRANCH(flags.sign & 0x80);
    case BRGE: BRANCH(!(flags.sign & 0x80));
    case BRHS: BRANCH(flags.half & 0x10);
    case BRHC: BRANCH(!(flags.half & 0x10));
    case BRTS: BRANCH(avr->sreg[S_T]);
    case BRTC: BRANCH(!avr->sreg[S_T]);
    case BRIE: BRANCH(avr->sreg[S_I]);
    case BRID: BRANCH(!avr->sreg[S_I]);
    case CPSE: SKIP(data[i->d] == data[i->r]);
    case SBRC: SKIP(!(data[i->d] & i->r));
    case SBRS: SKIP(data[i->d] & i->r);
    case SBIC: LOAD(i->d, value); SKIP(!(value & i->r));
    case SBIS: LOAD(i->d, value); SKIP(value & i->r);

    case LDS: word++; LOAD_AT(i->k, 2);
    case STS: word++; STORE_AT(i->k, 2);
    case LDD_Y: LOAD_AT(pair(data, Y) + i->k, 2);
    case LDD_Z: LOAD_AT(pair(data, Z) + i->k, 2);
    case STD_Y: STORE_AT(pair(data, Y) + i->k, 2);
    case STD_Z: STORE_AT(pair(data, Z) + i->k, 2);
    case LD_X: LOAD_BY(X, 0, 0);
    case LD_X_PLUS: LOAD_BY(X, 0, 1);
    case LD_MINUS_X: LOAD_BY(X, -1, 0);
    case LD_Y_PLUS: LOAD_BY(Y, 0, 1);
    case LD_MINUS_Y: LOAD_BY(Y, -1, 0);
    case LD_Z_PLUS: LOAD_BY(Z, 0, 1);
    case LD_MINUS_Z: LOAD_BY(Z, -1, 0);
    case ST_X: STORE_BY(X, 0, 0);
    case ST_X_PLUS: STORE_BY(X, 0, 1);
    case ST_MINUS_X: STORE_BY(X, -1, 0);
    case ST_Y_PLUS: STORE_BY(Y, 0, 1);
    case ST_MINUS_Y: STORE_BY(Y, -1, 0);
    case ST_Z_PLUS: STORE_BY(Z, 0, 1);
    case ST_MINUS_Z: STORE_BY(Z, -1, 0);
    case IN: LOAD_AT(i->k, 1);
    case OUT: STORE_AT(i->k, 1);
    case CBI:
        LOAD(i->d, value);
        STORE(i->d, value & ~i->r);
        DONE(2);
    case SBI:
        LOAD(i->d, value);
        STORE(i->d, value | i->r);
        DONE(2);
    case PUSH: {
        uint16_t sp = pair(data, R_SPL);
        STORE(sp, data[i->d]);
        set_pair(data, R_SPL, (uint16_t)(sp - 1));
        DONE(2);
    }
    case POP: {
        uint16_t sp = (uint16_t)(pair(data, R_SPL) + 1);
        LOAD(sp, value);
        set_pair(data, R_SPL, sp);
        data[i->d] = value;
        DONE(2);
    }
    case LPM: data[i->d] = avr->flash[pair(data, Z)]; DONE(3);
    case LPM_PLUS: {
        uint16_t z = pair(data, Z);
        data[i->d] = avr->flash[z];
        set_pair(data, Z, (uint16_t)(z + 1));
        DONE(3);
    }
    case ELPM:
    case ELPM_PLUS: {
        uint32_t z = pair(data, Z) | (uint32_t)data[avr->rampz] << 16;
        data[i->d] = avr->flash[z % FLASH_BYTES];
        if (i->operation == ELPM_PLUS) {
            z++;
            data[avr->rampz] = (uint8_t)(z >> 16);
            set_pair(data, Z, (uint16_t)z);
        }
        DONE(3);
    }

    case RJMP: JUMP(i->k, 2);
    case JMP: JUMP(i->k, 3);
    case RCALL: PUSH_ADDRESS(word); JUMP(i->k, 3);
    case CALL: PUSH_ADDRESS(word + 1); JUMP(i->k, 4);
    case IJMP: JUMP(indirect(avr, i->d), 2);
    case ICALL: {
        uint32_t to = indirect(avr, i->d);
        PUSH_ADDRESS(word);
        word = to;
        DONE(3);
    }
    case RETI:
        HAND_OVER();
        avr_sreg_set(avr, S_I, 1);
        avr_interrupt_reti(avr);
        TAKE_BACK();
        POP_ADDRESS(word);
        DONE(4);
    case RET: POP_ADDRESS(word); DONE(4);

    case SLEEP:
        HAND_OVER();
        if (!avr_has_pending_interrupts(avr) || !avr->sreg[S_I])
            avr->state = cpu_Sleeping;
        TAKE_BACK();
        DONE(1);
    case WDR:
        HAND_OVER();
        avr_ioctl(avr, AVR_IOCTL_WATCHDOG_RESET, 0);
        TAKE_BACK();
        DONE(1);
    case SPM:
        HAND_OVER();
        avr_ioctl(avr, AVR_IOCTL_FLASH_SPM, 0);
        if (memcmp(avr->flash, cpu->image->flash, FLASH_BYTES))
            image_write(cpu, 0, avr->flash, FLASH_BYTES);
        code = cpu->image->code;
        TAKE_BACK();
        DONE(1);
    case END:
        HAND_OVER();
        crash(avr);
        return 0;
    }
    __builtin_unreachable();

next:
    if (left > cycles) {
        left -= cycles;
        goto again;
    }
    avr->cycle = end - left + cycles;
    keep_flags(avr, flags);
    return 2 * word;
}
