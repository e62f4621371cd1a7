/* Byte stuffing and the CRC of the serial line. sources: lib/cobs.c lib/crc.c lib/random.c */
#include "unit.h"

#include "lib/cobs.h"
#include "lib/crc.h"
#include "lib/random.h"

static void the_crc_is_xmodem(void)
{
    uint16_t crc = 0;
    for (const char *at = "123456789"; *at; at++)
        crc = crc_xmodem(crc, (uint8_t)*at);
    CHECK_EQUAL(crc, 0x31C3); /* the catalogue's check value */
}

/* Each length in a block of its own, so that a byte too many is caught. */
static void every_length_comes_back_and_holds_no_zero(void)
{
    random_seed(4, 2);
    for (int length = 1; length <= 253; length++)
        for (int zeros = 0; zeros < 4; zeros++) {
            uint8_t *data = malloc((size_t)length), *out = malloc((size_t)length + 2);
            CHECK(data && out);
            for (int i = 0; i < length; i++)
                data[i] = zeros == 0   ? 0
                          : zeros == 1 ? 1
                          : zeros == 2 ? (uint8_t)random_below(2)
                                       : (uint8_t)random_bits();
            uint8_t written = cobs_encode(data, (uint8_t)length, out);
            CHECK_EQUAL(written, length + 2);
            CHECK_EQUAL(out[written - 1], 0);
            for (int i = 0; i < written - 1; i++)
                CHECK(out[i] != 0);
            CHECK_EQUAL(cobs_decode(out, written - 1), length);
            CHECK(!memcmp(out, data, (size_t)length));
            memcpy(out + 1, data, (size_t)length);
            CHECK_EQUAL(cobs_encode(out + 1, (uint8_t)length, out), written); /* where they lie */
            CHECK_EQUAL(cobs_decode(out, written - 1), length);
            CHECK(!memcmp(out, data, (size_t)length));
            free(data);
            free(out);
        }
}

static void what_is_no_stuffing_gives_nothing_and_reads_no_further(void)
{
    random_seed(5, 3);
    for (int round = 0; round < 200000; round++) {
        uint8_t length = (uint8_t)(1 + random_below(40));
        uint8_t *data = malloc(length);
        CHECK(data);
        for (int i = 0; i < length; i++)
            data[i] = (uint8_t)random_bits();
        CHECK(cobs_decode(data, length) < length);
        free(data);
    }
    uint8_t beyond[] = {9, 1, 2};
    CHECK_EQUAL(cobs_decode(beyond, sizeof beyond), 0);
    uint8_t zero[] = {1, 0, 2, 5};
    CHECK_EQUAL(cobs_decode(zero, sizeof zero), 0);
}

static const struct test tests[] = {
    TEST(the_crc_is_xmodem),
    TEST(every_length_comes_back_and_holds_no_zero),
    TEST(what_is_no_stuffing_gives_nothing_and_reads_no_further),
};
UNIT_MAIN(tests)
