#include "query/storage.h"

#include <stddef.h>
#include <string.h>

#include "drivers/rowstore.h"
#include "net/cobs.h"
#include "query/row.h"

/* Of a stored row: flash has all of it, RAM what lies behind the number and the checksum. */
#define FLASH_HEADER offsetof(struct stored_row, seconds)
#define HEADER (offsetof(struct stored_row, values) - FLASH_HEADER)

/* In the slot's memory, behind its windows; in RAM the rows follow. */
struct ring {
    uint32_t next; /* number of the next row */
    uint16_t used; /* rows kept */
} __attribute__((packed));

/* Rows that are kept: where the newest displaces the oldest one more than are shown, so that a row stored at the instant at which a
 * join begins displaces none that it is to meet. */
static uint16_t capacity(const struct wire_store *store) { return (uint16_t)(store->rows + (store->flags & WIRE_STORE_CIRCULAR ? 1 : 0)); }

_Static_assert(sizeof(struct stored_row) <= ROWSTORE_ROW_MAXIMUM, "a row fits a place");

const struct wire_store *storage_point(const struct slot *slot)
{
    struct program_field field;
    return slot_clause(slot, WIRE_AGGREGATE_STORE, 0, &field) ? (const struct wire_store *)field.code.bytes : NULL;
}

/* Bytes of a row of a slot's columns as it is stored. */
static uint8_t width(const struct slot *slot)
{
    struct row_column column;
    for (row_start(&column, slot); row_next_column(&column);) {
    }
    return (uint8_t)(HEADER + column.offset);
}

bool storage_check(const struct program_field *field, uint8_t *sources)
{
    const struct wire_store *store = (const struct wire_store *)field->code.bytes;
    const struct wire_from *from = (const struct wire_from *)field->code.bytes;
    switch (field->aggregate) {
    case WIRE_AGGREGATE_STORE:
        return field->code.length == sizeof *store && store->rows >= 1 && store->rows <= WIRE_STORE_ROWS_MAXIMUM &&
               !(store->flags & ~(WIRE_STORE_CIRCULAR | WIRE_STORE_FLASH)) && (!(store->flags & WIRE_STORE_FLASH) || store->blocks >= 2);
    case WIRE_AGGREGATE_FROM:
        return ++*sources <= WIRE_SOURCES_MAXIMUM && field->code.length >= sizeof *from &&
               field->code.length <= sizeof *from + WIRE_FIELDS_MAXIMUM && from->match <= WIRE_MATCH_COMBINE;
    default:
        return field->code.length == sizeof(uint16_t);
    }
}

static struct rowstore_ring ring_of(const struct wire_store *store, uint8_t row_width)
{
    return (struct rowstore_ring){store->block, store->blocks, (uint8_t)(row_width + FLASH_HEADER)};
}

uint16_t storage_size(const struct slot *slot)
{
    const struct wire_store *store = storage_point(slot);
    if (store == NULL)
        return 0;
    uint32_t rows = store->flags & WIRE_STORE_FLASH ? 0 : (uint32_t)capacity(store) * width(slot);
    return rows > UINT16_MAX - sizeof(struct ring) ? UINT16_MAX : (uint16_t)(sizeof(struct ring) + rows);
}

uint16_t storage_lacking(const struct slot *slot)
{
    const struct wire_store *store = storage_point(slot);
    if (store == NULL || !(store->flags & WIRE_STORE_FLASH))
        return 0;
    struct rowstore_ring ring = ring_of(store, width(slot));
    uint16_t blocks = (uint16_t)(store->block + store->blocks), there = rowstore_blocks();
    if (blocks > there)
        return (uint16_t)((blocks - there) * WIRE_STORE_BLOCK);
    uint16_t places = rowstore_places(&ring);
    return capacity(store) > places ? (uint16_t)((capacity(store) - places) * ring.size) : 0;
}

static struct ring *ring(const struct slot *slot) { return (struct ring *)(slot_windows(slot) + slot->windows); }

static uint16_t checksum(const struct wire_store *store, const struct stored_row *row, uint8_t size)
{
    uint16_t crc = store->point;
    for (uint8_t i = 0; i < size; i++)
        if (i < offsetof(struct stored_row, checksum) || i >= FLASH_HEADER)
            crc = crc_xmodem(crc, ((const uint8_t *)row)[i]);
    return crc;
}

/* Reads the place of a row in flash; false: that has none of this point. */
static bool read(const struct wire_store *store, const struct rowstore_ring *where, uint32_t number, struct stored_row *row)
{
    uint16_t places = rowstore_places(where), place = (uint16_t)(number % places);
    rowstore_read(where, place, row);
    return row->checksum == checksum(store, row, where->size) && row->number % places == place;
}

void storage_open(struct slot *slot)
{
    const struct wire_store *store = storage_point(slot);
    if (store == NULL || !(store->flags & WIRE_STORE_FLASH))
        return;
    struct rowstore_ring where = ring_of(store, width(slot));
    struct ring *now = ring(slot);
    struct stored_row row;
    for (uint16_t place = rowstore_places(&where); place-- > 0;)
        if (read(store, &where, place, &row) && row.number >= now->next)
            now->next = row.number + 1;
    while (now->used < capacity(store) && now->used < now->next &&
           read(store, &where, now->next - 1 - now->used, &row) && row.number == now->next - 1 - now->used)
        now->used++;
}

const struct slot *storage_find(uint16_t point)
{
    for (const struct slot *slot = NULL; (slot = slot_next(slot)) != NULL;) {
        const struct wire_store *store = storage_point(slot);
        if (store != NULL && store->point == point)
            return slot;
    }
    return NULL;
}

bool storage_takes(const struct slot *slot, const struct slot **point)
{
    struct program_field field;
    *point = NULL;
    if (storage_point(slot) != NULL) {
        *point = slot;
        return true;
    }
    if (!slot_clause(slot, WIRE_AGGREGATE_INTO, 0, &field))
        return false;
    uint16_t number;
    memcpy(&number, field.code.bytes, sizeof number);
    const struct slot *found = storage_find(number);
    *point = found != NULL && width(found) == width(slot) ? found : NULL;
    return true;
}

/* Where a row of a point in RAM lies. */
static uint8_t *place_of(struct ring *ring, const struct wire_store *store, uint8_t size, uint32_t number)
{
    return (uint8_t *)(ring + 1) + number % capacity(store) * size;
}

bool storage_append(const struct slot *point, struct stored_row *row)
{
    const struct wire_store *store = storage_point(point);
    struct ring *now = ring(point);
    uint8_t size = width(point);
    if (now->used == store->rows && !(store->flags & WIRE_STORE_CIRCULAR))
        return true;
    if (store->flags & WIRE_STORE_FLASH) {
        struct rowstore_ring where = ring_of(store, size);
        row->number = now->next;
        row->checksum = checksum(store, row, where.size);
        if (!rowstore_write(&where, (uint16_t)(now->next % rowstore_places(&where)), row))
            return false;
    } else {
        memcpy(place_of(now, store, size, now->next), &row->seconds, size);
    }
    now->next++;
    if (now->used < capacity(store))
        now->used++;
    return true;
}

uint32_t storage_first(const struct slot *point)
{
    uint16_t rows = storage_point(point)->rows, used = ring(point)->used;
    return ring(point)->next - (used < rows ? used : rows);
}

uint32_t storage_end(const struct slot *point) { return ring(point)->next; }

bool storage_row(const struct slot *point, uint32_t number, struct stored_row *row)
{
    const struct wire_store *store = storage_point(point);
    struct ring *now = ring(point);
    uint8_t size = width(point);
    if (number >= now->next || now->next - number > now->used)
        return false;
    if (store->flags & WIRE_STORE_FLASH) {
        struct rowstore_ring where = ring_of(store, size);
        return read(store, &where, number, row) && row->number == number;
    }
    row->number = number;
    memcpy(&row->seconds, place_of(now, store, size, number), size);
    return true;
}

bool storage_value(const struct slot *point, const struct stored_row *row, uint8_t wanted, int32_t *value)
{
    struct program_field field;
    uint8_t used = 0, index = 0;
    if (wanted == WIRE_STORED_SECONDS || wanted == WIRE_STORED_MILLISECONDS) {
        *value = wanted == WIRE_STORED_SECONDS ? (int32_t)(row->seconds & INT32_MAX) : row->milliseconds;
        return true;
    }
    for (program_start(&field); slot_next_column(point, &field); index++) {
        if (index == wanted) {
            *value = row_unpack(&row->values[used], field.format);
            return !(row->nulls >> index & 1);
        }
        used = (uint8_t)(used + row_format_size(field.format));
    }
    return false;
}
