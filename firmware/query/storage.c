#include "query/storage.h"

#include <stddef.h>
#include <string.h>

#include "drivers/rowstore.h"
#include "net/cobs.h"
#include "query/row.h"

#define HEADER offsetof(struct stored_row, values)

/* In the slot's memory, behind its windows; in RAM the rows follow. */
struct ring {
    uint32_t next; /* number of the next row */
    uint16_t used; /* rows kept */
} __attribute__((packed));

/* Rows that are kept: where the newest displaces the oldest one more than are shown, so that a row stored at the instant at which a
 * join begins displaces none that it is to meet. */
static uint16_t capacity(const struct wire_store *store) { return (uint16_t)(store->rows + (store->flags & WIRE_STORE_CIRCULAR ? 1 : 0)); }

/* In flash. The checksum covers the point's number too: another point's rows are none of this one. */
struct kept_row {
    uint32_t number;
    uint16_t checksum;
    struct stored_row row;
} __attribute__((packed));
#define KEPT_HEADER offsetof(struct kept_row, row)
_Static_assert(sizeof(struct kept_row) <= ROWSTORE_ROW_MAXIMUM, "a row fits a place");

const struct wire_store *storage_point(const struct slot *slot)
{
    struct program_field field;
    return slot_clause(slot, WIRE_AGGREGATE_STORE, 0, &field) ? (const struct wire_store *)field.code.bytes : NULL;
}

/* Bytes of a row of a slot's columns as it is stored. */
static uint8_t width(const struct slot *slot)
{
    struct program_field field;
    uint8_t width = HEADER;
    for (program_start(&field); slot_next_column(slot, &field);)
        width = (uint8_t)(width + row_format_size(field.format));
    return width;
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
    return (struct rowstore_ring){store->block, store->blocks, (uint8_t)(row_width + KEPT_HEADER)};
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

static uint16_t checksum(const struct wire_store *store, const struct kept_row *kept, uint8_t size)
{
    uint16_t crc = store->point;
    for (uint8_t i = 0; i < sizeof kept->number; i++)
        crc = crc_xmodem(crc, ((const uint8_t *)&kept->number)[i]);
    for (uint8_t i = 0; i < size - KEPT_HEADER; i++)
        crc = crc_xmodem(crc, ((const uint8_t *)&kept->row)[i]);
    return crc;
}

/* The row in a place; false: none of this point. */
static bool kept(const struct wire_store *store, const struct rowstore_ring *where, uint16_t place, struct kept_row *row)
{
    rowstore_read(where, place, row);
    return row->checksum == checksum(store, row, where->size) && row->number % rowstore_places(where) == place;
}

void storage_open(struct slot *slot)
{
    const struct wire_store *store = storage_point(slot);
    if (store == NULL || !(store->flags & WIRE_STORE_FLASH))
        return;
    struct rowstore_ring where = ring_of(store, width(slot));
    struct ring *now = ring(slot);
    uint16_t places = rowstore_places(&where);
    struct kept_row row;
    for (uint16_t place = 0; place < places; place++)
        if (kept(store, &where, place, &row) && row.number >= now->next)
            now->next = row.number + 1;
    while (now->used < capacity(store) && now->used < now->next &&
           kept(store, &where, (uint16_t)((now->next - 1 - now->used) % places), &row) && row.number == now->next - 1 - now->used)
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

bool storage_append(const struct slot *point, const struct stored_row *row)
{
    const struct wire_store *store = storage_point(point);
    struct ring *now = ring(point);
    uint8_t size = width(point);
    if (now->used == store->rows && !(store->flags & WIRE_STORE_CIRCULAR))
        return true;
    if (store->flags & WIRE_STORE_FLASH) {
        struct rowstore_ring where = ring_of(store, size);
        struct kept_row kept_row = {.number = now->next};
        memcpy(&kept_row.row, row, size);
        kept_row.checksum = checksum(store, &kept_row, where.size);
        if (!rowstore_write(&where, (uint16_t)(now->next % rowstore_places(&where)), &kept_row))
            return false;
    } else {
        memcpy((uint8_t *)(now + 1) + now->next % capacity(store) * size, row, size);
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
    uint8_t size = width(point);
    if (number >= ring(point)->next || ring(point)->next - number > ring(point)->used)
        return false;
    if (!(store->flags & WIRE_STORE_FLASH)) {
        memcpy(row, (uint8_t *)(ring(point) + 1) + number % capacity(store) * size, size);
        return true;
    }
    struct rowstore_ring where = ring_of(store, size);
    struct kept_row kept_row;
    if (!kept(store, &where, (uint16_t)(number % rowstore_places(&where)), &kept_row) || kept_row.number != number)
        return false;
    memcpy(row, &kept_row.row, size);
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
