#include "query/operators/storage.h"

#include <stddef.h>
#include <string.h>

#include "drivers/rowstore.h"
#include "lib/crc.h"
#include "query/program/clauses.h"
#include "query/program/row_layout.h"

/* Of a stored row: flash has all of it, RAM what lies behind the number and the checksum. */
#define FLASH_HEADER offsetof(struct stored_row, seconds)
#define HEADER (offsetof(struct stored_row, values) - FLASH_HEADER)

/* The clause's state; in RAM the rows follow. */
struct ring {
    uint32_t next; /* number of the next row */
    uint16_t used; /* rows kept */
} __attribute__((packed));

/* Rows that are kept: where the newest displaces the oldest one more than are shown, so that a row
 * stored at the instant at which a join begins displaces none that it is to meet. */
static uint16_t capacity(const struct wire_store *store)
{
    return (uint16_t)(store->rows + (store->flags & WIRE_STORE_CIRCULAR ? 1 : 0));
}

_Static_assert(sizeof(struct stored_row) <= ROWSTORE_ROW_MAXIMUM, "a row fits a place");

const struct wire_store *storage_point(const struct slot *slot)
{
    return slot_first_clause(slot, WIRE_AGGREGATE_STORE);
}

/* Bytes of a row of a slot's columns as it is stored. */
static uint8_t width(const struct slot *slot)
{
    struct row_column column;
    for (row_start(&column, slot); row_next_column(&column);) {}
    return (uint8_t)(HEADER + column.offset);
}

/* Partial state records go on; rows stay here. */
static bool keeps_rows(struct program_facts *facts)
{
    facts->keeps |= PROGRAM_KEEPS_ROWS;
    return !(facts->program->flags & WIRE_QUERY_AGGREGATE);
}

static bool store_check(const struct program_field *field, struct program_facts *facts)
{
    const struct wire_store *store = (const struct wire_store *)field->code.bytes;
    return keeps_rows(facts) && field->code.length == sizeof *store && store->rows >= 1 &&
           store->rows <= WIRE_STORE_ROWS_MAXIMUM &&
           !(store->flags & ~(WIRE_STORE_CIRCULAR | WIRE_STORE_FLASH)) &&
           (!(store->flags & WIRE_STORE_FLASH) || store->blocks >= 2);
}

static bool into_check(const struct program_field *field, struct program_facts *facts)
{
    return keeps_rows(facts) && field->code.length == sizeof(uint16_t);
}

/* Where the rows of a storage point are. */
struct place {
    const struct wire_store *store;
    struct ring *ring;
    struct rowstore_ring flash;
    uint16_t rows; /* row n is in place n modulo so many */
};

static bool in_flash(const struct wire_store *store) { return store->flags & WIRE_STORE_FLASH; }

static void locate(const struct slot *slot, const struct wire_store *store, struct place *place)
{
    place->store = store;
    place->ring = (struct ring *)clauses_state(slot, WIRE_AGGREGATE_STORE);
    place->flash =
        (struct rowstore_ring){store->block, store->blocks, (uint8_t)(width(slot) + FLASH_HEADER)};
    place->rows = in_flash(store) ? rowstore_rows(&place->flash) : capacity(store);
}

_Static_assert((WIRE_STORE_ROWS_MAXIMUM + 1) * (sizeof(struct stored_row) - FLASH_HEADER) +
                       sizeof(struct ring) <=
                   UINT16_MAX,
               "bytes of a point");
/* The rows it keeps or, in flash, knowing where they are. */
static uint16_t store_size(const struct slot *slot, const struct program_field *field)
{
    const struct wire_store *store = (const struct wire_store *)field->code.bytes;
    return (uint16_t)(sizeof(struct ring) + (in_flash(store) ? 0 : capacity(store) * width(slot)));
}

/* Bytes of flash that it wants and this board does not have. */
static uint8_t store_refusal(const struct slot *slot, const struct program_field *field,
                             uint16_t *missing)
{
    const struct wire_store *store = (const struct wire_store *)field->code.bytes;
    struct place place;
    if (!in_flash(store))
        return 0;
    locate(slot, store, &place);
    uint16_t blocks = (uint16_t)(place.flash.block + place.flash.blocks), there = rowstore_blocks(),
             rows = capacity(place.store);
    if (blocks > there)
        *missing = (uint16_t)((blocks - there) * WIRE_STORE_BLOCK);
    else if (rows > place.rows)
        *missing = (uint16_t)((rows - place.rows) * place.flash.size);
    return *missing != 0 ? WIRE_REFUSAL_MEMORY : 0;
}

static uint16_t checksum(const struct place *place, const struct stored_row *row)
{
    uint16_t crc = place->store->point;
    for (uint8_t i = 0; i < place->flash.size; i++)
        if (i < offsetof(struct stored_row, checksum) || i >= FLASH_HEADER)
            crc = crc_xmodem(crc, ((const uint8_t *)row)[i]);
    return crc;
}

/* Where a row of a point in RAM lies. */
static uint8_t *in_ram(const struct place *place, uint16_t index)
{
    return (uint8_t *)(place->ring + 1) + index * (uint8_t)(place->flash.size - FLASH_HEADER);
}

/* Reads what is in the place of a row, whose number may be another; false: none of this point. */
static bool read(const struct place *place, uint32_t number, struct stored_row *row)
{
    /* a point that runs has places: store_refusal
     * NOLINTNEXTLINE(clang-analyzer-core.DivideZero) */
    uint16_t index = (uint16_t)(number % place->rows);
    if (!in_flash(place->store)) {
        row->number = number;
        memcpy(&row->seconds, in_ram(place, index), place->flash.size - FLASH_HEADER);
        return true;
    }
    rowstore_read(&place->flash, index, row);
    return row->checksum == checksum(place, row) && row->number % place->rows == index;
}

/* Rows that go nowhere have no series. */
static void stay_here(struct slot *slot, const struct program_field *field)
{
    (void)field;
    slot->received &= (uint8_t)~SLOT_FAST;
}

/* Finds the rows that were kept over a restart. */
static void store_open(struct slot *slot, const struct program_field *field)
{
    const struct wire_store *store = (const struct wire_store *)field->code.bytes;
    struct place place;
    struct stored_row row;
    stay_here(slot, field);
    if (!in_flash(store))
        return;
    locate(slot, store, &place);
    struct ring *now = place.ring;
    for (uint16_t index = place.rows; index-- > 0;)
        if (read(&place, index, &row) && row.number >= now->next)
            now->next = row.number + 1;
    for (uint32_t number = now->next; number > 0 && now->used < capacity(place.store);
         now->used++) {
        number--;
        if (!read(&place, number, &row) || row.number != number)
            break;
    }
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
    *point = NULL;
    if (storage_point(slot) != NULL) {
        *point = slot;
        return true;
    }
    const void *into = slot_first_clause(slot, WIRE_AGGREGATE_INTO);
    if (into == NULL)
        return false;
    uint16_t number;
    memcpy(&number, into, sizeof number);
    const struct slot *found = storage_find(number);
    *point = found != NULL && width(found) == width(slot) ? found : NULL;
    return true;
}

bool storage_append(const struct slot *point, struct stored_row *row)
{
    struct place place;
    locate(point, storage_point(point), &place);
    struct ring *now = place.ring;
    uint16_t index = (uint16_t)(now->next % place.rows);
    if (now->used == place.store->rows && !(place.store->flags & WIRE_STORE_CIRCULAR))
        return true;
    row->number = now->next;
    if (in_flash(place.store)) {
        row->checksum = checksum(&place, row);
        if (!rowstore_write(&place.flash, index, row))
            return false;
    } else {
        memcpy(in_ram(&place, index), &row->seconds, place.flash.size - FLASH_HEADER);
    }
    now->next++;
    if (now->used < capacity(place.store))
        now->used++;
    return true;
}

uint32_t storage_end(const struct slot *point, uint16_t *shown)
{
    struct place place;
    locate(point, storage_point(point), &place);
    uint16_t rows = place.store->rows, used = place.ring->used;
    *shown = used < rows ? used : rows;
    return place.ring->next;
}

bool storage_row(const struct slot *point, uint32_t number, struct stored_row *row)
{
    struct place place;
    locate(point, storage_point(point), &place);
    return number < place.ring->next && place.ring->next - number <= place.ring->used &&
           read(&place, number, row) && row->number == number;
}

bool storage_value(const struct slot *point, const struct stored_row *row, uint8_t wanted,
                   int32_t *value)
{
    struct program_field field;
    uint8_t used = 0, index = 0;
    if (wanted == WIRE_STORED_SECONDS || wanted == WIRE_STORED_MILLISECONDS) {
        *value =
            wanted == WIRE_STORED_SECONDS ? (int32_t)(row->seconds & INT32_MAX) : row->milliseconds;
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

const IN_FLASH struct clause clause_store = {WIRE_AGGREGATE_STORE, store_check, store_refusal,
                                             store_size,           store_open,  NULL};
const IN_FLASH struct clause clause_into = {WIRE_AGGREGATE_INTO, into_check, NULL, NULL,
                                            stay_here,           NULL};
