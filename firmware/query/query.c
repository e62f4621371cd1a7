#include "query/query.h"

#include "net/app.h"
#include "query/events/raising.h"
#include "query/operators/output.h"
#include "query/program/installer.h"
#include "query/sampling/acquire.h"
#include "query/sampling/epochs.h"

void query_init(void)
{
    query_table_init();
    installer_init();
    acquire_init();
    output_init();
    event_post(&queries_changed);
}

enum app_outcome app_install(const struct wire_query_install *install, uint8_t length)
{
    enum app_outcome outcome = installer_install(install, length);
    if (outcome == APP_COMPLETE) {
        events_changed();
        epochs_update_later();
    }
    return outcome;
}

void app_stop(uint8_t query)
{
    installer_stop(query);
    event_post(&queries_changed);
}

uint32_t app_rows(void) { return output_rows(); }
