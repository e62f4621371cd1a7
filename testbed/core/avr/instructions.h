/* What instructions of the AVR are once they are decoded.
 *
 * Copyright (c) 2026 the skerry authors. These files are MIT, but the library they are built into
 * links libsimavr and is therefore GPL-3 as a whole: docs/licences.md. */
#ifndef INSTRUCTIONS_H
#define INSTRUCTIONS_H

#include <stdint.h>

#define FLASH_BYTES (128U * 1024U)
#define FLASH_WORDS (FLASH_BYTES / 2)

/* As the instruction set manual names them; NOP is also what simavr takes for one: all that the
 * chip does not know. */
enum operation {
    NOP,
    CPC,
    SBC,
    ADD,
    CPSE,
    CP,
    SUB,
    ADC,
    AND,
    EOR,
    OR,
    MOV,
    MOVW,
    MULS,
    MULSU,
    FMUL,
    FMULS,
    FMULSU,
    MUL,
    CPI,
    SBCI,
    SUBI,
    ORI,
    ANDI,
    LDI,
    ADIW,
    SBIW,
    COM,
    NEG,
    SWAP,
    INC,
    ASR,
    LSR,
    ROR,
    DEC,
    BLD,
    BST,
    BSET,
    BCLR,
    LDS,
    LDD_Y,
    LDD_Z,
    LD_X,
    LD_X_PLUS,
    LD_MINUS_X,
    LD_Y_PLUS,
    LD_MINUS_Y,
    LD_Z_PLUS,
    LD_MINUS_Z,
    STS,
    STD_Y,
    STD_Z,
    ST_X,
    ST_X_PLUS,
    ST_MINUS_X,
    ST_Y_PLUS,
    ST_MINUS_Y,
    ST_Z_PLUS,
    ST_MINUS_Z,
    LPM,
    LPM_PLUS,
    ELPM,
    ELPM_PLUS,
    PUSH,
    POP,
    IN,
    OUT,
    CBI,
    SBI,
    SBIC,
    SBIS,
    SBRC,
    SBRS,
    RJMP,
    JMP,
    IJMP,
    RCALL,
    CALL,
    ICALL,
    RET,
    RETI,
    BRCS,
    BRCC,
    BREQ,
    BRNE,
    BRMI,
    BRPL,
    BRVS,
    BRVC,
    BRLT,
    BRGE,
    BRHS,
    BRHC,
    BRTS,
    BRTC,
    BRIE,
    BRID,
    SLEEP,
    WDR,
    SPM,
    DELAY_BYTE, /* DEC before a BRNE that comes back to it, as of avr-libc's _delay_loop_1() */
    DELAY_WORD, /* the same with SBIW and 1, as of _delay_loop_2() and _delay_us() */
    END,        /* behind the flash */
};

struct instruction {
    uint8_t operation;
    uint8_t d, r;  /* registers, a bit or its mask, or an address in the I/O space */
    uint8_t extra; /* cycles of a skip */
    uint32_t k;    /* a constant, an address, or the word to go on at */
};

/* Flash, and for each of its words what stands there when it is run. */
struct image {
    uint8_t flash[FLASH_BYTES];
    uint32_t length; /* of what was loaded */
    struct instruction code[FLASH_WORDS + 2];
    struct image *next;
};

#endif
