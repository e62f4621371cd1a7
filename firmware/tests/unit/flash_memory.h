/* The CC2538's flash as memory at its real address; power goes at any step of what is done to it.
 * Included once in a test. */
#ifndef SKERRY_TESTS_UNIT_FLASH_MEMORY_H
#define SKERRY_TESTS_UNIT_FLASH_MEMORY_H

#include "unit.h"

#include <setjmp.h>
#include <sys/mman.h>

#include "drivers/cc2538/flash.h"
#include "drivers/cc2538/registers.h"

/* longjmp(power, 1) instead of the step after so many; below 0: never. */
static jmp_buf power;
static long steps_left = -1;
static int erased, written;

static void step(void)
{
    if (steps_left == 0)
        longjmp(power, 1);
    if (steps_left > 0)
        steps_left--;
}

void flash_erase(uint32_t address)
{
    CHECK_EQUAL(address % FLASH_PAGE, 0);
    step();
    memset((void *)(uintptr_t)address, 0xFF, FLASH_PAGE);
    erased++;
}

void flash_write(uint32_t address, uint32_t word)
{
    CHECK_EQUAL(address % 4, 0);
    step();
    CHECK_EQUAL(REGISTER((uintptr_t)address), 0xFFFFFFFF); /* each word once between two erasures */
    REGISTER((uintptr_t)address) = word;
    written++;
}

/* Memory at an address, all bits set. */
static void blank_at(uintptr_t address, size_t length)
{
    void *pages = (void *)address;
    if (mmap(pages, length, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != pages)
        CHECK(!"the flash's address is free");
    memset(pages, 0xFF, length);
}

#endif
