/* The CC2538's settings in flash: the flash is memory at its real address, power goes at every
 * single step. sources: drivers/cc2538/settings.c */
#define _GNU_SOURCE
#include "flash_memory.h"

#include "drivers/settings.h"

#define PAGES (FLASH_BASE + 0x7E000UL)
#define FIRST (FLASH_BASE + 0x7F000UL)

static uint32_t noise = 0xABCD1234;
uint32_t board_noise(void) { return noise; }
static uint32_t chip;
uint32_t board_factory(void) { return chip; }

static void blank(void) { blank_at(PAGES, 0x2000); }

static void put(uint16_t node)
{
    struct wire_settings first = {
        .magic = WIRE_SETTINGS_MAGIC, .nodeid = node, .pan = 1, .channel = 20, .x = -5, .y = 7};
    memcpy((void *)FIRST, &first, sizeof first);
    memset((char *)FIRST + sizeof first, 0, 2); /* as the flashing tool pads them */
}

static void unset_flash_gives_the_defaults(void)
{
    blank();
    const struct wire_settings *own = settings_load();
    CHECK_EQUAL(own->nodeid, 0xFFFE);
    CHECK_EQUAL(own->channel, WIRE_CHANNEL_DEFAULT);
    CHECK_EQUAL(own->boots, 1);
}

/* Flashed again it is another one; drawn once, raised at each start, and never 0. */
static void a_session_is_drawn_at_the_first_start_and_counted_from_there(void)
{
    blank();
    put(77);
    CHECK_EQUAL(settings_load()->session, 0x1235);
    noise = 0;
    CHECK_EQUAL(settings_load()->session, 0x1236);
    settings_renew(0x1200); /* is over already */
    CHECK_EQUAL(settings_load()->session, 0x1237);
    settings_renew(0x9236);
    CHECK_EQUAL(settings_load()->session, 0x9237);
    settings_renew(UINT16_MAX); /* those after it begin anew */
    CHECK_EQUAL(settings_load()->session, 1);
    CHECK_EQUAL(settings()->boots, 5);
}

static void a_factory_number_is_the_chips_or_drawn_once(void)
{
    blank();
    put(77);
    CHECK_EQUAL(settings_load()->factory, 0xABCD1235);
    noise = 5;
    CHECK_EQUAL(settings_load()->factory, 0xABCD1235);
    chip = 0x4B0012;
    CHECK_EQUAL(settings_load()->factory, 0x4B0012);
    chip = 0;
}

static void what_the_tool_wrote_is_read_and_each_start_counted(void)
{
    blank();
    put(77);
    for (int boot = 1; boot <= 1000; boot++) {
        const struct wire_settings *own = settings_load();
        CHECK_EQUAL(own->nodeid, 77);
        CHECK_EQUAL(own->x, -5);
        CHECK_EQUAL(own->boots, boot);
    }
    CHECK(erased <= 2 * 1000 / 39 + 2);
}

static void a_new_position_is_kept(void)
{
    blank();
    put(3);
    for (int i = 0; i < 300; i++) {
        (void)settings_load();
        struct wire_settings changed = *settings();
        changed.x = i;
        changed.y = -i;
        settings_keep(&changed);
        CHECK_EQUAL(settings_load()->x, i);
        CHECK_EQUAL(settings()->y, -i);
    }
}

static void what_is_the_same_is_not_written_again(void)
{
    blank();
    put(3);
    struct wire_settings changed = *settings_load();
    changed.room = 214;
    settings_keep(&changed);
    int before = written + erased;
    for (int row = 0; row < 300; row++)
        settings_keep(&changed);
    CHECK_EQUAL(written + erased, before);
    CHECK_EQUAL(settings_load()->room, 214);
}

/* From every state of the two pages, power lost at every step of a start: the next start knows the
 * mote, and counts on or counts again. */
static void a_loss_of_power_at_any_step_loses_no_settings(void)
{
    blank();
    put(9);
    for (int boot = 0; boot < 230; boot++) {
        uint8_t before[0x2000];
        memcpy(before, (void *)PAGES, sizeof before);
        uint16_t boots = settings_load()->boots;
        uint8_t after[0x2000];
        memcpy(after, (void *)PAGES, sizeof after);
        for (volatile long steps = 0; steps < 9; steps++) {
            memcpy((void *)PAGES, before, sizeof before);
            steps_left = steps;
            if (!setjmp(power))
                (void)settings_load();
            steps_left = -1;
            const struct wire_settings *own = settings_load();
            CHECK_EQUAL(own->nodeid, 9);
            CHECK(own->boots == boots || own->boots == boots + 1);
            /* Into the next page and beyond: the old one must not come back. */
            for (uint16_t counted = own->boots, more = 1; more <= 160; more++)
                CHECK_EQUAL(settings_load()->boots, counted + more);
        }
        memcpy((void *)PAGES, after, sizeof after);
    }
}

static const struct test tests[] = {
    TEST(unset_flash_gives_the_defaults),
    TEST(a_factory_number_is_the_chips_or_drawn_once),
    TEST(a_session_is_drawn_at_the_first_start_and_counted_from_there),
    TEST(what_the_tool_wrote_is_read_and_each_start_counted),
    TEST(a_new_position_is_kept),
    TEST(what_is_the_same_is_not_written_again),
    TEST(a_loss_of_power_at_any_step_loses_no_settings),
};
UNIT_MAIN(tests)
