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

_Static_assert(FLASH_HEADER + HEADER >= ROWSTORE_ROW_MINIMUM &&
                   sizeof(struct stored_row) <= ROWSTORE_ROW_MAXIMUM,
               "a row fits its position");

const struct wire_store *storage_point(const struct query_entry *entry)
{
    return entry_first_clause(entry, WIRE_AGGREGATE_STORE);
}

/* Bytes of a row of an entry's columns as it is stored. */
static uint8_t width(const struct query_entry *entry)
{
    struct row_column column;
    for (row_start(&column, entry); row_next_column(&column);) {}
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
struct location {
    const struct wire_store *store;
    struct ring *ring;
    struct rowstore_ring flash;
    uint16_t positions; /* row n is at position n modulo so many */
};

static bool in_flash(const struct wire_store *store) { return store->flags & WIRE_STORE_FLASH; }

static void locate(const struct query_entry *entry, const struct wire_store *store,
                   struct location *location)
{
    location->store = store;
    location->ring = (struct ring *)clauses_state(entry, WIRE_AGGREGATE_STORE);
    location->flash =
        (struct rowstore_ring){store->block, store->blocks, (uint8_t)(width(entry) + FLASH_HEADER)};
    location->positions = in_flash(store) ? rowstore_rows(&location->flash) : capacity(store);
}

_Static_assert((WIRE_STORE_ROWS_MAXIMUM + 1) * (sizeof(struct stored_row) - FLASH_HEADER) +
                       sizeof(struct ring) <=
                   UINT16_MAX,
               "bytes of a point");
/* The rows it keeps or, in flash, knowing where they are. */
static uint16_t store_size(const struct query_entry *entry, const struct program_field *field)
{
    const struct wire_store *store = (const struct wire_store *)field->code.bytes;
    return (uint16_t)(sizeof(struct ring) + (in_flash(store) ? 0 : capacity(store) * width(entry)));
}

/* Bytes of flash that it wants and this board does not have. */
static uint8_t store_refusal(const struct query_entry *entry, const struct program_field *field,
                             uint16_t *missing)
{
    const struct wire_store *store = (const struct wire_store *)field->code.bytes;
    struct location location;
    if (!in_flash(store))
        return 0;
    locate(entry, store, &location);
    uint16_t blocks = (uint16_t)(location.flash.block + location.flash.blocks),
             there = rowstore_blocks(), rows = capacity(location.store);
    if (blocks > there)
        *missing = (uint16_t)((blocks - there) * WIRE_STORE_BLOCK);
    else if (rows > location.positions)
        *missing = (uint16_t)((rows - location.positions) * location.flash.size);
    return *missing != 0 ? WIRE_REFUSAL_MEMORY : 0;
}

static uint16_t checksum(const struct location *location, const struct stored_row *row)
{
    uint16_t crc = location->store->point;
    for (uint8_t i = 0; i < location->flash.size; i++)
        if (i < offsetof(struct stored_row, checksum) || i >= FLASH_HEADER)
            crc = crc_xmodem(crc, ((const uint8_t *)row)[i]);
    return crc;
}

/* Where a row of a point in RAM lies. */
static uint8_t *in_ram(const struct location *location, uint16_t index)
{
    return (uint8_t *)(location->ring + 1) + index * (uint8_t)(location->flash.size - FLASH_HEADER);
}

/* Reads what is at the position of a row, whose number may be another; false: none of this point.
 */
static bool read(const struct location *location, uint32_t number, struct stored_row *row)
{
    /* a point that runs has positions: store_refusal
     * NOLINTNEXTLINE(clang-analyzer-core.DivideZero) */
    uint16_t index = (uint16_t)(number % location->positions);
    if (!in_flash(location->store)) {
        row->number = number;
        memcpy(&row->seconds, in_ram(location, index), location->flash.size - FLASH_HEADER);
        return true;
    }
    rowstore_read(&location->flash, index, row);
    return row->checksum == checksum(location, row) && row->number % location->positions == index;
}

/* Rows that go nowhere have no series. */
static void stay_here(struct query_entry *entry, const struct program_field *field)
{
    (void)field;
    entry->state &= (uint8_t)~ENTRY_FAST;
}

/* Finds the rows that were kept over a restart. */
static void store_open(struct query_entry *entry, const struct program_field *field)
{
    const struct wire_store *store = (const struct wire_store *)field->code.bytes;
    struct location location;
    struct stored_row row;
    stay_here(entry, field);
    if (!in_flash(store))
        return;
    locate(entry, store, &location);
    struct ring *now = location.ring;
    for (uint16_t index = location.positions; index-- > 0;)
        if (read(&location, index, &row) && row.number >= now->next)
            now->next = row.number + 1;
    for (uint32_t number = now->next; number > 0 && now->used < capacity(location.store);
         now->used++) {
        number--;
        if (!read(&location, number, &row) || row.number != number)
            break;
    }
}

const struct query_entry *storage_find(uint16_t point)
{
    for (const struct query_entry *entry = NULL; (entry = entry_next(entry)) != NULL;) {
        const struct wire_store *store = storage_point(entry);
        if (store != NULL && store->point == point)
            return entry;
    }
    return NULL;
}

bool storage_takes(const struct query_entry *entry, const struct query_entry **point)
{
    *point = NULL;
    if (storage_point(entry) != NULL) {
        *point = entry;
        return true;
    }
    const void *into = entry_first_clause(entry, WIRE_AGGREGATE_INTO);
    if (into == NULL)
        return false;
    uint16_t number;
    memcpy(&number, into, sizeof number);
    const struct query_entry *found = storage_find(number);
    *point = found != NULL && width(found) == width(entry) ? found : NULL;
    return true;
}

bool storage_append(const struct query_entry *point, struct stored_row *row)
{
    struct location location;
    locate(point, storage_point(point), &location);
    struct ring *now = location.ring;
    uint16_t index = (uint16_t)(now->next % location.positions);
    if (now->used == location.store->rows && !(location.store->flags & WIRE_STORE_CIRCULAR))
        return true;
    row->number = now->next;
    if (in_flash(location.store)) {
        row->checksum = checksum(&location, row);
        if (!rowstore_write(&location.flash, index, row))
            return false;
    } else {
        memcpy(in_ram(&location, index), &row->seconds, location.flash.size - FLASH_HEADER);
    }
    now->next++;
    if (now->used < capacity(location.store))
        now->used++;
    return true;
}

uint32_t storage_end(const struct query_entry *point, uint16_t *shown)
{
    struct location location;
    locate(point, storage_point(point), &location);
    uint16_t rows = location.store->rows, used = location.ring->used;
    *shown = used < rows ? used : rows;
    return location.ring->next;
}

bool storage_row(const struct query_entry *point, uint32_t number, struct stored_row *row)
{
    struct location location;
    locate(point, storage_point(point), &location);
    return number < location.ring->next && location.ring->next - number <= location.ring->used &&
           read(&location, number, row) && row->number == number;
}

bool storage_value(const struct query_entry *point, const struct stored_row *row, uint8_t wanted,
                   int32_t *value)
{
    struct program_field field;
    uint8_t used = 0, index = 0;
    if (wanted == WIRE_STORED_SECONDS || wanted == WIRE_STORED_MILLISECONDS) {
        *value =
            wanted == WIRE_STORED_SECONDS ? (int32_t)(row->seconds & INT32_MAX) : row->milliseconds;
        return true;
    }
    for (program_start(&field); entry_next_column(point, &field); index++) {
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
