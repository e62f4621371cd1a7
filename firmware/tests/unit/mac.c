/* Which bundles a parent takes for repetitions. The MAC and the host's board are the real ones;
 * replaced is what the MAC hands frames to.
 * sources: net/mac/mac.c kernel/kernel.c lib/random.c boards/host/board.c boards/host/radio.c
 * boards/host/settings.c */
#include "unit.h"

#include "host.h"
#include "kernel/clock.h"
#include "net/mac/mac.h"

enum { ME = 9, CHILD = 110, OTHER = 111, BODY = 12, MINUTE = 60, SECOND = CLOCK_TICKS_PER_SECOND };

static int taken, repeated;

void net_packet(const struct radio_frame *frame, uint16_t source, bool unicast, uint8_t type,
                const uint8_t *body, uint8_t length)
{
    (void)frame, (void)source, (void)body;
    CHECK(unicast && type == WIRE_PACKET_BUNDLE && length == BODY);
    taken++;
}
void net_overheard(uint16_t source, uint16_t destination, const uint8_t *body, uint8_t length)
{
    (void)source, (void)destination, (void)body, (void)length;
}
void net_repeated(uint16_t source, const uint8_t *body, uint8_t length)
{
    (void)source, (void)body;
    CHECK_EQUAL(length, BODY);
    repeated++;
}
void radio_stamp(uint8_t stamp[RADIO_STAMP_SIZE], ticks_t sfd) { (void)stamp, (void)sfd; }

static void wait(int seconds) { host_run((uint32_t)seconds * SECOND, SECOND); }

static void begin(void)
{
    host_settings(&(struct wire_settings){.magic = WIRE_SETTINGS_MAGIC, .nodeid = ME, .pan = 7});
    mac_init();
    wait(1);
}

/* A bundle whose rows are of this epoch. */
static void hear(uint16_t source, uint8_t number, uint8_t epoch)
{
    struct {
        struct wire_mac_header mac;
        struct wire_header packet;
        uint8_t body[BODY];
    } __attribute__((packed)) bundle = {
        .mac = {.frame_control = WIRE_FRAME_CONTROL_DATA_ACK,
                .sequence = number,
                .pan = 7,
                .destination = ME,
                .source = source},
        .packet = {.version = WIRE_PROTOCOL_VERSION, .type = WIRE_PACKET_BUNDLE},
        .body = {[3] = 1, [6] = epoch},
    };
    radio_received(
        &(struct radio_frame){.psdu = (const uint8_t *)&bundle, .length = sizeof bundle});
}

static void what_comes_again_within_four_minutes_is_a_repetition(void)
{
    begin();
    hear(CHILD, 17, 1);
    for (int round = 1; round < 4; round++) {
        wait(MINUTE);
        hear(CHILD, 17, 1);
        CHECK_EQUAL(repeated, round);
    }
    CHECK_EQUAL(taken, 1);
    wait(3 * MINUTE);
    hear(CHILD, 17, 1);
    CHECK_EQUAL(taken, 2);
}

static void another_childs_or_another_number_is_none(void)
{
    begin();
    hear(CHILD, 17, 1);
    hear(OTHER, 17, 1);
    hear(CHILD, 21, 1);
    hear(CHILD, 17, 1); /* A child sends nothing again once it has sent another. */
    CHECK_EQUAL(taken, 4);
    CHECK_EQUAL(repeated, 0);
}

/* The child was at another parent meanwhile, and is back. */
static void what_holds_other_rows_is_none_under_the_same_number(void)
{
    begin();
    hear(CHILD, 17, 0);
    int same = 0;
    for (uint8_t epoch = 1; epoch < 100; epoch++) {
        hear(CHILD, 17, epoch);
        same += repeated;
        repeated = 0;
    }
    CHECK_EQUAL(same, 0);
}

static const struct test tests[] = {
    TEST(what_comes_again_within_four_minutes_is_a_repetition),
    TEST(another_childs_or_another_number_is_none),
    TEST(what_holds_other_rows_is_none_under_the_same_number),
};
UNIT_MAIN(tests)
