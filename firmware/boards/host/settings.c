#include "drivers/settings_start.h"
#include "host.h"

static struct wire_settings current;

void host_settings(const struct wire_settings *settings) { current = *settings; }
const struct wire_settings *settings_load(void) { return &current; }
const struct wire_settings *settings(void) { return &current; }
void settings_keep(const struct wire_settings *changed) { current = *changed; }
void settings_renew(uint16_t other) { settings_pass(&current, other); }
