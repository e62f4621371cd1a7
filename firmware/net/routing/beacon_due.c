#include "net/routing/beacon_due.h"

#include "drivers/settings.h"
#include "net/net_conf.h"
#include "net/routing/routing_conf.h"
#include "net/routing/routing_ops.h"

/* News of queries is told in so many windows: a neighbour may miss several beacons, and hears of
 * new queries in no other way once the flood is over. */
#define QUERY_NEWS_WINDOWS 6

static struct {
    uint8_t news;          /* windows in which this mote beacons as it has news */
    uint16_t told_version; /* of the set of queries, that neighbours have been told */
} due;

bool beacon_due(uint32_t round)
{
    if (routing_query_version() != due.told_version) {
        due.told_version = routing_query_version();
        due.news = QUERY_NEWS_WINDOWS;
    }
    return settings()->root || due.news ||
           (round / CONTROL_EVERY + settings()->nodeid) % BEACON_EVERY == 0;
}

void beacon_news(uint8_t windows)
{
    if (due.news < windows)
        due.news = windows;
}

bool beacon_has_news(void) { return due.news; }

void beacon_forget_news(void) { due.news = 0; }

void beacon_due_age(void)
{
    if (due.news)
        due.news--;
}
