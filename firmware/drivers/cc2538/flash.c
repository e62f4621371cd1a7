#include "drivers/cc2538/flash.h"

#include "board.h"
#include "drivers/cc2538/registers.h"

/* Flash cannot be read while it is written, so the code that waits runs from RAM. */
#define IN_RAM __attribute__((section(".ramfunction"), noinline, long_call))

IN_RAM static void command(uint32_t command_bit, uint32_t word_address, uint32_t word)
{
    while (FLASH_CTRL_FCTL & FCTL_BUSY) {}
    FLASH_CTRL_FADDR = word_address;
    FLASH_CTRL_FCTL |= command_bit;
    if (command_bit == FCTL_WRITE)
        FLASH_CTRL_FWDATA = word;
    while (FLASH_CTRL_FCTL & FCTL_BUSY) {}
    FLASH_CTRL_FCTL &= ~command_bit;
}

/* FADDR counts words (8.9.2). */
void flash_erase(uint32_t address)
{
    board_interrupts state = board_interrupts_off();
    command(FCTL_ERASE, (address - FLASH_BASE) / 4, 0);
    board_interrupts_restore(state);
}

void flash_write(uint32_t address, uint32_t word)
{
    board_interrupts state = board_interrupts_off();
    command(FCTL_WRITE, (address - FLASH_BASE) / 4, word);
    board_interrupts_restore(state);
}
