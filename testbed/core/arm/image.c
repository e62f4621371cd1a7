/* Firmware images: ELF files, loaded once and shared by their motes. */
#include <elf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arm.h"

#define LONGEST (1U << 22)

static struct image *images;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int read_segments(struct image *image, const uint8_t *bytes, size_t length, char *error)
{
    const Elf32_Ehdr *header = (const Elf32_Ehdr *)bytes;
    const char *path = image->path;
    if (length < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG)) {
        snprintf(error, 256, "%s: not an ELF file", path);
        return -1;
    }
    if (header->e_ident[EI_CLASS] != ELFCLASS32 || header->e_machine != EM_ARM) {
        snprintf(error, 256, "%s: made for machine %u, the CC2538 mote needs ARM (%u)", path,
                 header->e_machine, EM_ARM);
        return -1;
    }
    for (unsigned i = 0; i < header->e_phnum; i++) {
        uint64_t at = header->e_phoff + (uint64_t)i * header->e_phentsize;
        if (at + sizeof(Elf32_Phdr) > length) {
            snprintf(error, 256, "%s: corrupt ELF: program header %u lies outside the file", path,
                     i);
            return -1;
        }
        Elf32_Phdr segment;
        memcpy(&segment, bytes + at, sizeof segment);
        if (segment.p_type != PT_LOAD)
            continue;
        bool in_ram = segment.p_vaddr >= RAM_BASE && segment.p_vaddr < RAM_BASE + (1U << 28);
        if (in_ram && (uint64_t)segment.p_vaddr + segment.p_memsz > RAM_BASE + RAM_BYTES) {
            snprintf(error, 256, "%s: needs RAM up to 0x%08x, the CC2538 has %u bytes from 0x%08x",
                     path, segment.p_vaddr + segment.p_memsz, RAM_BYTES, RAM_BASE);
            return -1;
        }
        if (!segment.p_filesz)
            continue;
        if ((uint64_t)segment.p_offset + segment.p_filesz > length) {
            snprintf(error, 256, "%s: corrupt ELF: segment %u lies outside the file", path, i);
            return -1;
        }
        if (segment.p_paddr < FLASH_BASE ||
            (uint64_t)segment.p_paddr + segment.p_filesz > FLASH_BASE + FLASH_BYTES) {
            snprintf(error, 256,
                     "%s: segment %u loads to 0x%08x..0x%08x, the CC2538's flash is %u bytes from "
                     "0x%08x",
                     path, i, segment.p_paddr, segment.p_paddr + segment.p_filesz, FLASH_BYTES,
                     FLASH_BASE);
            return -1;
        }
        memcpy(image->flash + (segment.p_paddr - FLASH_BASE), bytes + segment.p_offset,
               segment.p_filesz);
        uint32_t end = segment.p_paddr + segment.p_filesz - FLASH_BASE;
        if (end <= SETTINGS_BASE && end > image->size)
            image->size = end;
    }
    if (!image->size) {
        snprintf(error, 256, "%s: corrupt ELF: nothing to load in it", path);
        return -1;
    }
    return 0;
}

static void discard(struct image *image)
{
    free(image->path);
    free(image->flash);
    free(image->blocks);
    free(image);
}

static struct image *read_file(const char *path, char *error)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        snprintf(error, 256, "%s: cannot be opened", path);
        return NULL;
    }
    uint8_t *bytes = malloc(LONGEST);
    size_t length = bytes ? fread(bytes, 1, LONGEST, file) : 0;
    fclose(file);
    struct image *image = calloc(1, sizeof *image);
    if (image) {
        image->path = strdup(path);
        image->flash = malloc(FLASH_BYTES);
    }
    if (!bytes || !image || !image->path || !image->flash) {
        snprintf(error, 256, "out of memory");
        abort();
    }
    memset(image->flash, 0xFF, FLASH_BYTES);
    int failed = read_segments(image, bytes, length, error);
    free(bytes);
    if (!failed) {
        image->blocks = calloc(image->size / 2 + 1, sizeof *image->blocks);
        if (!image->blocks)
            abort();
        return image;
    }
    discard(image);
    return NULL;
}

/* A file that has changed since is another image. */
const struct image *image_load(const char *path, char *error)
{
    pthread_mutex_lock(&lock);
    struct image *fresh = read_file(path, error), *found = NULL;
    for (struct image *image = images; fresh && image && !found; image = image->next)
        if (!memcmp(image->flash, fresh->flash, FLASH_BYTES))
            found = image;
    if (found) {
        discard(fresh);
    } else if (fresh) {
        fresh->next = images;
        found = images = fresh;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static uint32_t count_of(const skerry_cpu *cpu, uint32_t address, uint32_t size)
{
    const uint8_t *code;
    if (address >= FLASH_BASE && address - FLASH_BASE + size <= FLASH_BYTES)
        code = cpu->flash + (address - FLASH_BASE);
    else if (address >= RAM_BASE && address - RAM_BASE + size <= RAM_BYTES)
        code = cpu->ram + (address - RAM_BASE);
    else
        return size / 2;
    uint32_t count = 0;
    for (uint32_t i = 0; i < size; count++)
        i += instruction_bytes((uint16_t)(code[i] | code[i + 1] << 8));
    return count;
}

uint32_t image_block(const skerry_cpu *cpu, uint32_t address, uint32_t size)
{
    const struct image *image = cpu->image;
    uint32_t at = address - FLASH_BASE;
    if (at >= image->size || size > image->size - at || cpu->code_changed)
        return count_of(cpu, address, size);
    uint32_t known = atomic_load_explicit(&image->blocks[at / 2], memory_order_relaxed);
    if (known / BLOCK_SIZE != size) {
        bool waits = at + WAIT_BYTES <= image->size && wait_begins(cpu->flash + at);
        known = size * BLOCK_SIZE | (waits ? BLOCK_WAITS : 0) | count_of(cpu, address, size);
        atomic_store_explicit(&image->blocks[at / 2], known, memory_order_relaxed);
    }
    return known;
}
