#include "query/operators/index_program.h"

#include <stddef.h>

#include "index/point.h"
#include "net/mac/time.h"
#include "net/routing/tree.h"
#include "query/program/row_layout.h"

static bool has_index(const struct query_entry *entry, struct program_field *field)
{
    return entry_clause(entry, WIRE_AGGREGATE_INDEX, 0, field);
}

static uint8_t owners_of(const struct wire_index_part *part)
{
    return (uint8_t)(part->settled + part->away + part->added);
}

/* All columns are in parts, each in one, all owners are of one, and each part has some that store,
 * and some that span its field. */
static bool are_parts(const struct indexed *index)
{
    uint8_t known = 0, owners = 0;
    for (uint8_t i = 0; i < index->index->parts; i++) {
        const struct wire_index_part *part = &index->parts[i];
        if (part->columns == 0 || part->columns & known || part->settled > ZONE_BITS ||
            part->away > ZONE_BITS || part->added > ZONE_BITS || owners_of(part) > ZONE_BITS ||
            !(part->settled | part->added) || !(part->settled | part->away))
            return false;
        known |= part->columns;
        owners = (uint8_t)(owners + owners_of(part));
    }
    return known == (1U << index->columns) - 1U && owners == index->owner_count;
}

bool indexed_read(const struct query_entry *entry, struct indexed *found)
{
    struct program_field field;
    struct row_column column;
    if (!has_index(entry, &field))
        return false;
    found->columns = 0;
    for (row_start(&column, entry); row_next_column(&column); found->columns++)
        if (column.field.aggregate != WIRE_AGGREGATE_NONE)
            return false;
    found->width = column.offset;
    found->index = (const struct wire_index *)field.code.bytes;
    if (found->columns > WIRE_INDEX_ATTRIBUTES_MAXIMUM ||
        found->index->parts > WIRE_INDEX_ATTRIBUTES_MAXIMUM)
        return false;
    found->parts = (const struct wire_index_part *)found->index->more;
    found->ranges = (const struct wire_index_range *)&found->parts[found->index->parts];
    found->owners = (const struct wire_index_owner *)&found->ranges[found->columns];
    uint8_t before = (uint8_t)((const uint8_t *)found->owners - field.code.bytes);
    if (field.code.length <= before)
        return false;
    uint8_t owners = (uint8_t)(field.code.length - before);
    if (owners % sizeof *found->owners != 0)
        return false;
    found->owner_count = (uint8_t)(owners / sizeof *found->owners);
    for (uint8_t i = 0; i < found->columns; i++)
        if (found->ranges[i].low > found->ranges[i].high)
            return false;
    return are_parts(found);
}

const struct query_entry *indexed_find(uint16_t index, struct indexed *found)
{
    const struct query_entry *newest = NULL;
    struct indexed one;
    for (const struct query_entry *entry = NULL; (entry = entry_next(entry)) != NULL;)
        if (indexed_read(entry, &one) && one.index->index == index &&
            (newest == NULL || (int8_t)(one.index->revision - found->index->revision) > 0)) {
            newest = entry;
            *found = one;
        }
    return newest;
}

void indexed_part(const struct query_entry *entry, const struct indexed *index, uint8_t number,
                  struct indexed_part *part)
{
    struct row_column column;
    part->number = number;
    part->mask = index->parts[number].columns;
    part->owner_count = owners_of(&index->parts[number]);
    part->settled = index->parts[number].settled;
    part->away = index->parts[number].away;
    part->owners = index->owners;
    for (uint8_t i = 0; i < number; i++)
        part->owners += owners_of(&index->parts[i]);
    part->columns = part->width = 0;
    for (row_start(&column, entry); row_next_column(&column);)
        if (part->mask & column.bit) {
            part->columns++;
            part->width = (uint8_t)(part->width + column.size);
        }
    int16_t left = part->owners->x, right = left, bottom = part->owners->y, top = bottom;
    for (uint8_t i = 1; i < part->settled + part->away; i++) {
        int16_t x = part->owners[i].x, y = part->owners[i].y;
        if (x < left)
            left = x;
        if (x > right)
            right = x;
        if (y < bottom)
            bottom = y;
        if (y > top)
            top = y;
    }
    part->field = (struct zone_field){left, bottom, right + 1, top + 1};
}

uint16_t indexed_point(const struct indexed *index, uint8_t column, int32_t value, bool is_null)
{
    const struct index_range range = {index->ranges[column].low, index->ranges[column].high};
    return is_null ? INDEX_NULL : index_point(&range, value);
}

/* That whose own code is nearest: whoever is left where halves without a mote are passed over. */
const struct wire_index_owner *index_owner(const struct indexed_part *part, uint32_t code)
{
    struct zone_field area = part->field;
    uint32_t left = 0;
    for (uint8_t i = part->owner_count; i-- > 0;)
        left = left << 1 | (i < part->settled || i >= part->settled + part->away);
    for (uint8_t bit = 0; bit < ZONE_BITS && left & (left - 1); bit++, code <<= 1) {
        uint32_t above = 0, one = 1;
        int16_t middle = (int16_t)zone_middle(&area, bit);
        for (uint8_t i = 0; i < part->owner_count; i++, one <<= 1)
            if (left & one && (bit % 2 == 0 ? part->owners[i].x : part->owners[i].y) >= middle)
                above |= one;
        bool upper = code >> (ZONE_BITS - 1) ? above != 0 : above == left;
        left = upper ? above : left & ~above;
        zone_halve(&area, bit, upper);
    }
    const struct wire_index_owner *owner = part->owners;
    for (; !(left & 1); left >>= 1)
        owner++;
    return owner;
}

#ifdef BOARD_TUPLES
bool indexed_kept(const struct query_entry *entry, const struct indexed *index,
                  const struct tuple *tuple)
{
    uint32_t sampled = 0, milliseconds;
    if (!time_known() || (tuple->name.session == tree_session() &&
                          !entry_epoch_start(entry, tuple->name.sequence, &sampled, &milliseconds)))
        return true;
    uint32_t now = time_at(clock_now()).seconds;
    return now < sampled || now - sampled <= index->index->keep;
}
#endif
