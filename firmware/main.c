/* A mote's start. */
#include "board.h"
#include "drivers/radio.h"
#include "drivers/settings.h"
#include "kernel/assert.h"
#include "kernel/kernel.h"
#include "net/net.h"
#include "query/query.h"
#include "storage/log.h"

int main(void)
{
    board_init();
    invariant_init();
    const struct wire_settings *own = settings_load();
    log_open();
    radio_init(own->pan, own->nodeid, own->channel);
    query_init();
    net_init();
    kernel_run();
}
