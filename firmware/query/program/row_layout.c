#include "query/program/row_layout.h"

#include <stddef.h>
#include <string.h>

uint8_t row_format_size(uint8_t format)
{
    switch (format) {
    case WIRE_FORMAT_U8:
    case WIRE_FORMAT_I8: return 1;
    case WIRE_FORMAT_U16:
    case WIRE_FORMAT_I16: return 2;
    case WIRE_FORMAT_I32: return 4;
    default: return 0;
    }
}

int32_t row_unpack(const uint8_t *bytes, uint8_t format)
{
    if (format == WIRE_FORMAT_U8)
        return bytes[0];
    if (format == WIRE_FORMAT_I8)
        return (int8_t)bytes[0];
    uint16_t half = (uint16_t)(bytes[0] | bytes[1] << 8);
    if (format == WIRE_FORMAT_U16)
        return half;
    if (format == WIRE_FORMAT_I16)
        return (int16_t)half;
    return (int32_t)(half | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24);
}

void row_start(struct row_column *column, const struct query_entry *entry)
{
    memset(column, 0, sizeof *column);
    column->entry = entry;
}

bool row_next_column(struct row_column *column)
{
    column->offset = (uint8_t)(column->offset + column->size);
    column->bit = (uint16_t)(column->bit ? column->bit << 1 : 1);
    if (column->entry == NULL || !entry_next_column(column->entry, &column->field))
        return false;
    column->size = row_format_size(column->field.format);
    return true;
}
