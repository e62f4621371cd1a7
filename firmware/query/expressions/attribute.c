#include "query/expressions/attribute.h"

#include <stddef.h>

#include "board.h"
#include "drivers/sensor.h"
#include "drivers/settings.h"
#include "net/health/status.h"
#include "net/routing/tree.h"
#include "net/transport/queue.h"
#include "wire.h"

uint32_t attribute_sensors(uint32_t mask) { return mask & sensor_available(); }

/* Of the tree: the parent, or the root. */
static bool above(uint8_t attribute, int32_t *value)
{
    uint16_t node;
    bool known = attribute == WIRE_ATTRIBUTE_PARENT ? tree_parent(&node) : tree_root(&node);
    *value = node;
    return known;
}

static bool level(int32_t *value)
{
    uint8_t hops;
    if (!tree_level(&hops))
        return false;
    *value = hops;
    return true;
}

/* What a user has set; false: nothing. */
static bool of_user(uint16_t kept, int32_t *value)
{
    *value = (int32_t)kept - 32768;
    return kept != 0;
}

/* Of the event that runs the query; NULL: none has come. */
static bool of_event(uint8_t attribute, const struct wire_event *event, int32_t *value)
{
    if (event == NULL)
        return false;
    switch (attribute) {
    case WIRE_ATTRIBUTE_EVENT_NODEID: *value = event->node; break;
    case WIRE_ATTRIBUTE_EVENT_XPOS: *value = event->x; break;
    case WIRE_ATTRIBUTE_EVENT_YPOS: *value = event->y; break;
    case WIRE_ATTRIBUTE_EVENT_VALUE: *value = event->value; return event->value != INT32_MIN;
    default: *value = (int32_t)(event->seconds & INT32_MAX); break;
    }
    return true;
}

bool attribute_read(uint8_t attribute, int32_t *value, const struct eval_context *context)
{
    /* Without a default, so that the compiler names an attribute that nobody reads. */
    switch ((enum wire_attribute)attribute) {
    case WIRE_ATTRIBUTE_NODEID: *value = settings()->nodeid; return true;
    case WIRE_ATTRIBUTE_PARENT:
    case WIRE_ATTRIBUTE_VIA: return above(attribute, value);
    case WIRE_ATTRIBUTE_LEVEL: return level(value);
    case WIRE_ATTRIBUTE_EPOCH: *value = (int32_t)context->epoch; return *value >= 0;
    case WIRE_ATTRIBUTE_XPOS: *value = settings()->x; return true;
    case WIRE_ATTRIBUTE_YPOS: *value = settings()->y; return true;
    case WIRE_ATTRIBUTE_ROOM: *value = settings()->room; return true;
    case WIRE_ATTRIBUTE_FLOOR: *value = settings()->floor; return true;
    case WIRE_ATTRIBUTE_GROUP: *value = settings()->group; return true;
    case WIRE_ATTRIBUTE_BOARD: *value = BOARD_ID; return true;
    case WIRE_ATTRIBUTE_STATIC_0:
    case WIRE_ATTRIBUTE_STATIC_1:
    case WIRE_ATTRIBUTE_STATIC_2:
    case WIRE_ATTRIBUTE_STATIC_3:
    case WIRE_ATTRIBUTE_STATIC_4:
    case WIRE_ATTRIBUTE_STATIC_5:
    case WIRE_ATTRIBUTE_STATIC_6:
    case WIRE_ATTRIBUTE_STATIC_7:
    case WIRE_ATTRIBUTE_STATIC_8:
    case WIRE_ATTRIBUTE_STATIC_9:
        return of_user(settings()->statics[attribute - WIRE_STATIC_FIRST], value);
    case WIRE_ATTRIBUTE_FREE_RAM: *value = board_free_ram(); return true;
    case WIRE_ATTRIBUTE_QUEUE_LENGTH: *value = queue_length(); return true;
    case WIRE_ATTRIBUTE_LINK:
    case WIRE_ATTRIBUTE_NEIGHBOURS:
    case WIRE_ATTRIBUTE_RADIO_DUTY:
    case WIRE_ATTRIBUTE_RESETS:
    case WIRE_ATTRIBUTE_UPTIME:
    case WIRE_ATTRIBUTE_DROPPED:
    case WIRE_ATTRIBUTE_ENERGY:
    case WIRE_ATTRIBUTE_CONTENTION: return net_health(attribute, value);
    case WIRE_ATTRIBUTE_EVENT_NODEID:
    case WIRE_ATTRIBUTE_EVENT_XPOS:
    case WIRE_ATTRIBUTE_EVENT_YPOS:
    case WIRE_ATTRIBUTE_EVENT_NETWORK_TIME:
    case WIRE_ATTRIBUTE_EVENT_VALUE: return of_event(attribute, context->event, value);
    case WIRE_ATTRIBUTE_LIGHT:
    case WIRE_ATTRIBUTE_TEMP:
    case WIRE_ATTRIBUTE_HUMIDITY:
    case WIRE_ATTRIBUTE_VOLTAGE:
    case WIRE_ATTRIBUTE_ACCEL_X:
    case WIRE_ATTRIBUTE_ACCEL_Y: return sensor_value(attribute, value);
    case WIRE_ATTRIBUTE_COMBINED: /* the gateway knows these two with each row */
    case WIRE_ATTRIBUTE_LEFT_OUT:
    case WIRE_ATTRIBUTE_MAG_X: /* of boards that no mote carries */
    case WIRE_ATTRIBUTE_MAG_Y:
    case WIRE_ATTRIBUTE_NOISE:
    case WIRE_ATTRIBUTE_TONES: break;
    }
    return false;
}

const IN_FLASH struct vm_readers attribute_readers = {.attribute = attribute_read};
