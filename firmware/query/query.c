#include "query/query.h"

#include "net/app.h"
#include "query/acquire.h"
#include "query/epochs.h"
#include "query/events.h"
#include "query/output.h"
#include "query/slots.h"

void query_init(void)
{
    slots_init();
    acquire_init();
    output_init();
    event_post(&queries_changed);
}

enum app_outcome app_install(const struct wire_query_install *install, uint8_t length)
{
    enum app_outcome outcome = slots_install(install, length);
    if (outcome == APP_COMPLETE) {
        events_changed();
        epochs_update_later();
    }
    return outcome;
}

void app_stop(uint8_t query)
{
    slots_stop(query);
    event_post(&queries_changed);
}

uint32_t app_rows(void) { return output_rows(); }
