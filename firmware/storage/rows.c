/* Rows of storage points as records of the log: rings as in EEPROM, but that a place is wherever
 * the record is that was last written to it. So they wear the flash as all else does, and the log
 * copies them before it erases the page that they are in. */
#include "storage/rows.h"

#include <string.h>

#include "drivers/rowstore.h"
#include "wire.h"

/* As many as on the IRIS, so that what fits one mote fits all. */
#define BLOCKS 63U
#define BYTES (BLOCKS * WIRE_STORE_BLOCK)
#define PLACES ((uint16_t)(BYTES / ROWSTORE_ROW_MINIMUM))
/* Words of a row before its bytes: its first byte in the rings' memory, and its size. */
enum { WHERE, ROW };
#define SIZE_SHIFT 16
#define NOWHERE UINT8_MAX

/* Where the row is that begins in so many bytes of the rings' memory: two rows never do. */
static struct {
    uint8_t page;
    uint16_t word;
} __attribute__((packed)) entries[PLACES];

_Static_assert(1 + ROW + ROWSTORE_ROW_MAXIMUM / 4 <= LOG_WORDS_MAXIMUM, "a row is a record");

static uint16_t start_of(const struct log_record *record) { return (uint16_t)record->words[WHERE]; }
static uint16_t over_of(const struct log_record *record)
{
    return (uint16_t)(start_of(record) + (record->words[WHERE] >> SIZE_SHIFT));
}

static bool kept(uint16_t index, struct log_record *record)
{
    return entries[index].page != NOWHERE &&
           log_at(entries[index].page, entries[index].word, record);
}

/* A row takes its place; those of other rings that were there are nobody's any more. */
static void take_place(const struct log_record *row)
{
    struct log_record other;
    uint16_t start = start_of(row), over = over_of(row),
             from = start < ROWSTORE_ROW_MAXIMUM ? 0 : (uint16_t)(start - ROWSTORE_ROW_MAXIMUM);
    if (start >= over || over > BYTES)
        return;
    for (uint16_t i = (uint16_t)(from / ROWSTORE_ROW_MINIMUM);
         i * ROWSTORE_ROW_MINIMUM < over && i < PLACES; i++)
        if (kept(i, &other) && start_of(&other) < over && over_of(&other) > start)
            entries[i].page = NOWHERE;
    entries[start / ROWSTORE_ROW_MINIMUM].page = log_page(&row->place);
    entries[start / ROWSTORE_ROW_MINIMUM].word = row->place.word;
}

void rows_forget_places(void)
{
    for (uint16_t i = 0; i < PLACES; i++)
        entries[i].page = NOWHERE;
}

void rows_found(const struct log_record *record) { take_place(record); }

bool rows_keeps(const struct log_record *record)
{
    uint16_t index = (uint16_t)(start_of(record) / ROWSTORE_ROW_MINIMUM);
    return index < PLACES && entries[index].page == log_page(&record->place) &&
           entries[index].word == record->place.word;
}

void rows_lost(const struct log_record *record)
{
    if (rows_keeps(record))
        entries[start_of(record) / ROWSTORE_ROW_MINIMUM].page = NOWHERE;
}

uint8_t rowstore_blocks(void) { return BLOCKS; }

uint16_t rowstore_rows(const struct rowstore_ring *ring)
{
    return (uint16_t)(ring->blocks * WIRE_STORE_BLOCK / ring->size);
}

static uint16_t where(const struct rowstore_ring *ring, uint16_t place)
{
    return (uint16_t)(ring->block * WIRE_STORE_BLOCK + place * ring->size);
}

void rowstore_read(const struct rowstore_ring *ring, uint16_t place, void *bytes)
{
    struct log_record record;
    uint16_t start = where(ring, place);
    uint8_t *to = bytes;
    memset(to, 0xFF, ring->size);
    if (!kept((uint16_t)(start / ROWSTORE_ROW_MINIMUM), &record) || start_of(&record) != start ||
        over_of(&record) != start + ring->size)
        return;
    for (uint8_t i = 0; i < ring->size; i++)
        to[i] = (uint8_t)(record.words[ROW + i / 4] >> i % 4 * 8);
}

bool rowstore_write(const struct rowstore_ring *ring, uint16_t place, const void *bytes)
{
    uint32_t words[ROW + ROWSTORE_ROW_MAXIMUM / 4] = {0};
    struct log_record record;
    uint8_t count = (uint8_t)(ROW + (ring->size + 3) / 4);
    words[WHERE] = (uint32_t)ring->size << SIZE_SHIFT | where(ring, place);
    for (uint8_t i = 0; i < ring->size; i++)
        words[ROW + i / 4] |= (uint32_t)((const uint8_t *)bytes)[i] << i % 4 * 8;
    if (!log_append(LOG_ROW, words, count, &record.place) ||
        !log_at(log_page(&record.place), record.place.word, &record))
        return false;
    take_place(&record);
    return true;
}
