/* Settings in EEPROM or flash, as struct wire_settings; survive a reset. */
#ifndef SKERRY_DRIVERS_SETTINGS_H
#define SKERRY_DRIVERS_SETTINGS_H

#include "wire.h"

/* Reads them, raises boot count and session by one and keeps both; a session that was never drawn
 * is drawn first. Unset settings become the defaults (nodeid 1..65534 from none: 0xFFFE). Returned
 * struct is owned by the driver. */
const struct wire_settings *settings_load(void);
const struct wire_settings *settings(void);
/* Keeps changed ones. */
void settings_keep(const struct wire_settings *changed);
/* The next start's session is to come after `other`, too. */
void settings_renew(uint16_t other);

#endif
