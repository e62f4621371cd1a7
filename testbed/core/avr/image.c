/* Firmware images: ELF files, loaded and decoded once and shared by their motes.
 *
 * Copyright (c) 2026 the skerry authors. This file is MIT, but the library it is built into links
 * libsimavr and is therefore GPL-3 as a whole: docs/licences.md. */
#include <elf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "avr.h"

#define LONGEST (1U << 22)

static struct image *images;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int read_segments(struct image *image, const char *path, const uint8_t *bytes, size_t length,
                         char *error)
{
    const Elf32_Ehdr *header = (const Elf32_Ehdr *)bytes;
    if (length < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG)) {
        snprintf(error, 256, "%s: not an ELF file", path);
        return -1;
    }
    if (header->e_ident[EI_CLASS] != ELFCLASS32 || header->e_machine != EM_AVR) {
        snprintf(error, 256, "%s: made for machine %u, the IRIS mote needs AVR (%u)", path,
                 header->e_machine, EM_AVR);
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
        if (segment.p_type != PT_LOAD || !segment.p_filesz || segment.p_paddr >= 0x800000)
            continue;
        if ((uint64_t)segment.p_offset + segment.p_filesz > length) {
            snprintf(error, 256, "%s: corrupt ELF: segment %u lies outside the file", path, i);
            return -1;
        }
        if ((uint64_t)segment.p_paddr + segment.p_filesz > FLASH_BYTES) {
            snprintf(error, 256, "%s: needs flash up to %u, the ATmega1281 has %u bytes", path,
                     segment.p_paddr + segment.p_filesz, FLASH_BYTES);
            return -1;
        }
        memcpy(image->flash + segment.p_paddr, bytes + segment.p_offset, segment.p_filesz);
        if (segment.p_paddr + segment.p_filesz > image->length)
            image->length = segment.p_paddr + segment.p_filesz;
    }
    if (!image->length) {
        snprintf(error, 256, "%s: corrupt ELF: nothing to load in it", path);
        return -1;
    }
    return 0;
}

static struct image *new_image(void)
{
    struct image *image = malloc(sizeof *image);
    if (!image)
        abort();
    image->length = 0;
    image->next = NULL;
    memset(image->flash, 0xFF, sizeof image->flash);
    return image;
}

static struct image *read_file(const char *path, char *error)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        snprintf(error, 256, "%s: cannot be opened", path);
        return NULL;
    }
    uint8_t *bytes = malloc(LONGEST);
    if (!bytes)
        abort();
    size_t length = fread(bytes, 1, LONGEST, file);
    fclose(file);
    struct image *image = new_image();
    int failed = read_segments(image, path, bytes, length, error);
    free(bytes);
    if (!failed)
        return image;
    free(image);
    return NULL;
}

/* A file that has changed since is another image. */
const struct image *image_load(const char *path, char *error)
{
    pthread_mutex_lock(&lock);
    struct image *fresh = read_file(path, error), *found = NULL;
    for (struct image *image = images; fresh && image && !found; image = image->next)
        if (image->length == fresh->length && !memcmp(image->flash, fresh->flash, FLASH_BYTES))
            found = image;
    if (found)
        free(fresh);
    else if (fresh) {
        decode(fresh, 0, FLASH_BYTES);
        fresh->next = images;
        found = images = fresh;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void image_write(skerry_cpu *cpu, uint32_t address, const uint8_t *data, uint32_t length)
{
    if (!cpu->own) {
        cpu->own = new_image();
        memcpy(cpu->own, cpu->image, sizeof *cpu->own);
        cpu->image = cpu->own;
    }
    memcpy(cpu->own->flash + address, data, length);
    if (address + length > cpu->own->length)
        cpu->own->length = address + length;
    decode(cpu->own, address, length);
}
