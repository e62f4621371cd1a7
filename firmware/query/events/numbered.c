#include "query/events/numbered.h"

#include <string.h>

#include "query/expressions/vm.h"

uint16_t event_of(const struct program_field *field)
{
    uint16_t event;
    memcpy(&event, field->code.bytes, sizeof event); /* little-endian, as wire.h makes sure */
    return event;
}

bool numbered_check(const struct program_field *field, struct program_facts *facts)
{
    uint8_t length = field->code.length;
    return length == sizeof(uint16_t) ||
           (length > sizeof(uint16_t) &&
            vm_check(field->code.bytes + sizeof(uint16_t), (uint8_t)(length - sizeof(uint16_t)),
                     &facts->attributes));
}
