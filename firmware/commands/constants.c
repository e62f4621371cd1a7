#include "commands/constants.h"

#include <string.h>

#include "drivers/settings.h"

void constants_keep(uint8_t offset, uint16_t value)
{
    struct wire_settings changed = *settings();
    memcpy((uint8_t *)&changed + offset, &value, sizeof value);
    settings_keep(&changed);
}
