/* Instructions of the AVR, taken apart once for all motes that run them.
 *
 * Copyright (c) 2026 the skerry authors. This file is MIT, but the library it is built into links
 * libsimavr and is therefore GPL-3 as a whole: docs/licences.md. */
#include "avr.h"

#include <simavr/sim_core.h>

/* What BRNE looks like that goes back by one instruction: to the one that counts. */
#define BACK_TO_THE_COUNT 0xF7F1

static uint16_t word_at(const struct image *image, uint32_t word)
{
    if (word >= FLASH_WORDS)
        return AVR_OVERFLOW_OPCODE; /* as simavr puts it behind the flash */
    return (uint16_t)(image->flash[2 * word] | image->flash[2 * word + 1] << 8);
}

static bool is_long(uint16_t opcode)
{
    uint16_t kind = opcode & 0xFC0F;
    return kind == 0x9000 || (kind >= 0x940C && kind <= 0x940F); /* LDS and STS, JMP and CALL */
}

/* Words behind the flash are all the same place: the one where the CPU crashes. */
static uint32_t place(int64_t word)
{
    return word >= 0 && word < FLASH_WORDS ? (uint32_t)word : FLASH_WORDS;
}

static struct instruction skip(enum operation operation, uint8_t d, uint8_t r, uint32_t word,
                               bool next_is_long)
{
    return (struct instruction){operation, d, r, (uint8_t)(1 + next_is_long),
                                place((int64_t)word + 2 + next_is_long)};
}

static struct instruction two_registers(uint16_t opcode, enum operation operation)
{
    return (struct instruction){operation, opcode >> 4 & 31,
                                (uint8_t)((opcode >> 5 & 16) | (opcode & 15)), 0, 0};
}

static struct instruction immediate(uint16_t opcode, enum operation operation)
{
    return (struct instruction){operation, (uint8_t)(16 + (opcode >> 4 & 15)), 0, 0,
                                (opcode >> 4 & 0xF0) | (opcode & 15)};
}

/* 0x0xxx to 0x2xxx: two registers. */
static struct instruction decode_registers(uint16_t opcode, uint32_t word, bool next_is_long)
{
    static const enum operation operations[] = {NOP, CPC, SBC, ADD, CPSE, CP,
                                                SUB, ADC, AND, EOR, OR,   MOV};
    struct instruction found = two_registers(opcode, operations[opcode >> 10]);
    if (found.operation == CPSE)
        return skip(CPSE, found.d, found.r, word, next_is_long);
    if (found.operation != NOP)
        return found;
    uint8_t d = opcode >> 4 & 15, r = opcode & 15;
    switch (opcode >> 8) {
    case 1: return (struct instruction){MOVW, (uint8_t)(2 * d), (uint8_t)(2 * r), 0, 0};
    case 2: return (struct instruction){MULS, 16 + d, 16 + r, 0, 0};
    case 3: {
        static const enum operation products[] = {MULSU, FMUL, FMULS, FMULSU};
        return (struct instruction){products[(opcode >> 6 & 2) | (opcode >> 3 & 1)], 16 + (d & 7),
                                    16 + (r & 7), 0, 0};
    }
    default: return (struct instruction){NOP, 0, 0, 0, 0};
    }
}

/* 0x90xx to 0x93xx: loads and stores. */
static struct instruction decode_memory(uint16_t opcode, uint16_t second)
{
    static const enum operation loads[] = {[0x0] = LDS,       [0x1] = LD_Z_PLUS, [0x2] = LD_MINUS_Z,
                                           [0x4] = LPM,       [0x5] = LPM_PLUS,  [0x6] = ELPM,
                                           [0x7] = ELPM_PLUS, [0x9] = LD_Y_PLUS, [0xA] = LD_MINUS_Y,
                                           [0xC] = LD_X,      [0xD] = LD_X_PLUS, [0xE] = LD_MINUS_X,
                                           [0xF] = POP};
    static const enum operation stores[] = {
        [0x0] = STS,  [0x1] = ST_Z_PLUS, [0x2] = ST_MINUS_Z, [0x9] = ST_Y_PLUS, [0xA] = ST_MINUS_Y,
        [0xC] = ST_X, [0xD] = ST_X_PLUS, [0xE] = ST_MINUS_X, [0xF] = PUSH};
    const enum operation *table = opcode & 0x0200 ? stores : loads;
    return (struct instruction){table[opcode & 15], opcode >> 4 & 31, 0, 0, second};
}

/* 0x94xx and 0x95xx: one register, flags, jumps. */
static struct instruction decode_one(uint16_t opcode, uint16_t second)
{
    static const enum operation ones[] = {[0] = COM, [1] = NEG, [2] = SWAP, [3] = INC,
                                          [5] = ASR, [6] = LSR, [7] = ROR,  [10] = DEC};
    uint8_t kind = opcode & 15;
    if ((opcode & 0xFF0F) == 0x9408)
        return (struct instruction){opcode & 0x80 ? BCLR : BSET, opcode >> 4 & 7, 0, 0, 0};
    switch (opcode) {
    case 0x9588: return (struct instruction){SLEEP, 0, 0, 0, 0};
    case 0x95A8: return (struct instruction){WDR, 0, 0, 0, 0};
    case 0x95E8: return (struct instruction){SPM, 0, 0, 0, 0};
    case 0x9409:
    case 0x9419: return (struct instruction){IJMP, opcode >> 4 & 1, 0, 0, 0};
    case 0x9509:
    case 0x9519: return (struct instruction){ICALL, opcode >> 4 & 1, 0, 0, 0};
    case 0x9508: return (struct instruction){RET, 0, 0, 0, 0};
    case 0x9518: return (struct instruction){RETI, 0, 0, 0, 0};
    case 0x95C8: return (struct instruction){LPM, 0, 0, 0, 0};
    case 0x95D8: return (struct instruction){ELPM, 0, 0, 0, 0};
    }
    if (kind >= 12)
        return (struct instruction){
            kind < 14 ? JMP : CALL, 0, 0, 0,
            place((int64_t)(((opcode >> 3 & 0x3E) | (opcode & 1U)) << 16 | second))};
    if (kind < sizeof ones / sizeof *ones)
        return (struct instruction){ones[kind], opcode >> 4 & 31, 0, 0, 0};
    return (struct instruction){NOP, 0, 0, 0, 0};
}

/* 0x96xx to 0x9Fxx: words, bits of registers, products. */
static struct instruction decode_word(uint16_t opcode, uint32_t word, bool next_is_long)
{
    static const enum operation bits[] = {CBI, SBIC, SBI, SBIS};
    if (opcode >= 0x9C00)
        return two_registers(opcode, MUL);
    if (opcode < 0x9800)
        return (struct instruction){opcode < 0x9700 ? ADIW : SBIW, 24 + (opcode >> 3 & 6), 0, 0,
                                    (opcode >> 2 & 0x30) | (opcode & 15)};
    enum operation operation = bits[opcode >> 8 & 3];
    uint8_t io = 32 + (opcode >> 3 & 31), mask = (uint8_t)(1 << (opcode & 7));
    if (operation == SBIC || operation == SBIS)
        return skip(operation, io, mask, word, next_is_long);
    return (struct instruction){operation, io, mask, 0, 0};
}

/* 0xFxxx: branches by a flag, bits of a CPU register. */
static struct instruction decode_flags(uint16_t opcode, uint32_t word, bool next_is_long)
{
    static const enum operation set[] = {BRCS, BREQ, BRMI, BRVS, BRLT, BRHS, BRTS, BRIE};
    static const enum operation clear[] = {BRCC, BRNE, BRPL, BRVC, BRGE, BRHC, BRTC, BRID};
    uint8_t bit = opcode & 7, d = opcode >> 4 & 31;
    if (opcode < 0xF800) {
        int offset = (int16_t)(opcode << 6) >> 9;
        return (struct instruction){opcode & 0x0400 ? clear[bit] : set[bit], 0, 0, 0,
                                    place((int64_t)word + 1 + offset)};
    }
    if (opcode < 0xFC00)
        return (struct instruction){opcode < 0xFA00 ? BLD : BST, d, bit, 0, 0};
    return skip(opcode < 0xFE00 ? SBRC : SBRS, d, (uint8_t)(1 << bit), word, next_is_long);
}

static struct instruction decode_word_at(const struct image *image, uint32_t word)
{
    uint16_t opcode = word_at(image, word), second = word_at(image, word + 1);
    bool next_is_long = is_long(second);
    uint8_t d = opcode >> 4 & 31;
    uint32_t displacement = (opcode >> 8 & 0x20) | (opcode >> 7 & 0x18) | (opcode & 7);
    uint32_t near = (uint32_t)((int)word + 1 + ((int16_t)(opcode << 4) >> 4)) % FLASH_WORDS;
    switch (opcode >> 12) {
    case 0x0:
    case 0x1:
    case 0x2: return decode_registers(opcode, word, next_is_long);
    case 0x3: return immediate(opcode, CPI);
    case 0x4: return immediate(opcode, SBCI);
    case 0x5: return immediate(opcode, SUBI);
    case 0x6: return immediate(opcode, ORI);
    case 0x7: return immediate(opcode, ANDI);
    case 0x8:
    case 0xA: {
        static const enum operation operations[] = {LDD_Z, LDD_Y, STD_Z, STD_Y};
        return (struct instruction){operations[(opcode >> 8 & 2) | (opcode >> 3 & 1)], d, 0, 0,
                                    displacement};
    }
    case 0x9:
        return opcode < 0x9400   ? decode_memory(opcode, second)
               : opcode < 0x9600 ? decode_one(opcode, second)
                                 : decode_word(opcode, word, next_is_long);
    case 0xB:
        return (struct instruction){opcode & 0x0800 ? OUT : IN, d, 0, 0,
                                    32U + ((opcode >> 5 & 0x30) | (opcode & 15))};
    case 0xC: return (struct instruction){RJMP, 0, 0, 0, near};
    case 0xD: return (struct instruction){RCALL, 0, 0, 0, near};
    case 0xE: return immediate(opcode, LDI);
    default: return decode_flags(opcode, word, next_is_long);
    }
}

void decode(struct image *image, uint32_t address, uint32_t length)
{
    /* What stands one word before may be longer by what is new, or skip it. */
    uint32_t first = address / 2 ? address / 2 - 1 : 0, last = (address + length + 1) / 2;
    for (uint32_t word = first; word < last && word < FLASH_WORDS; word++) {
        struct instruction *decoded = &image->code[word];
        *decoded = decode_word_at(image, word);
        bool counts = (decoded->operation == SBIW && decoded->k == 1) || decoded->operation == DEC;
        if (counts && word_at(image, word + 1) == BACK_TO_THE_COUNT)
            decoded->operation = decoded->operation == DEC ? DELAY_BYTE : DELAY_WORD;
    }
    /* One more, behind an instruction of two words that ends there. */
    image->code[FLASH_WORDS].operation = image->code[FLASH_WORDS + 1].operation = END;
}
