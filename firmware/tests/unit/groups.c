/* States of aggregates by group: what is moved out in the end is all that was added, however little
 * room there is. sources: query/operators/index_groups.c lib/random.c */
#include "unit.h"

#include "lib/random.h"
#include "query/operators/index_groups.h"
#include "query/query_conf.h"
#include "wire.h"

#define KEYS 200
#define SIZE (sizeof(int32_t) + 3 * sizeof(struct wire_group_state))

/* What a reader makes of the records: a sum, a least value, and how many rows. */
static struct total {
    long long sum, count, values, rows;
    int32_t least;
} told[KEYS], added[KEYS];

static void read_group(const uint8_t *at)
{
    int32_t key;
    struct wire_group_state states[3];
    memcpy(&key, at, sizeof key);
    memcpy(states, at + sizeof key, sizeof states);
    struct total *total = &told[key == INDEX_GROUPS_NULL ? 0 : key];
    total->sum += states[0].value;
    total->count += states[0].count;
    if (states[1].count > 0 && (total->values == 0 || states[1].value < total->least))
        total->least = states[1].value;
    total->values += states[1].count;
    total->rows += states[2].count;
}

static void move_all(void)
{
    uint8_t record[100];
    while (index_groups_left()) {
        uint8_t moved = index_groups_move(record, sizeof record);
        CHECK(moved > 0 && moved <= sizeof record && moved % SIZE == 0);
        for (uint8_t at = 0; at < moved; at = (uint8_t)(at + SIZE))
            read_group(record + at);
    }
}

/* Adds a tuple, where need be once what is there has been sent. */
static void add(int32_t key, const struct index_grouped *tuple)
{
    if (index_groups_add(key, tuple))
        return;
    move_all();
    CHECK(index_groups_add(key, tuple));
}

static void draw(uint32_t keys, int32_t most, uint32_t tuples)
{
    memset(told, 0, sizeof told);
    memset(added, 0, sizeof added);
    CHECK(index_groups_take(told, 3));
    for (uint32_t i = 0; i < tuples; i++) {
        uint32_t place = random_bits() % keys;
        int32_t value = random_bits() % 2 ? most : (int32_t)random_bits() - 32768;
        bool known = random_bits() % 8 > 0;
        const struct index_grouped tuple[] = {{WIRE_AGGREGATE_SUM, known, value},
                                              {WIRE_AGGREGATE_MIN, known, value},
                                              {WIRE_AGGREGATE_COUNT, true, 0}};
        struct total *total = &added[place];
        if (known) {
            total->sum += value;
            total->count++;
            if (total->values++ == 0 || value < total->least)
                total->least = value;
        }
        total->rows++;
        add(place == 0 ? INDEX_GROUPS_NULL : (int32_t)place, tuple);
    }
    move_all();
    index_groups_free(told);
    for (uint32_t i = 0; i < keys; i++) {
        CHECK_EQUAL(told[i].sum, added[i].sum);
        CHECK_EQUAL(told[i].count, added[i].count);
        CHECK_EQUAL(told[i].values, added[i].values);
        CHECK_EQUAL(told[i].least, added[i].least);
        CHECK_EQUAL(told[i].rows, added[i].rows);
    }
}

static void all_that_was_added_comes_out(void)
{
    random_seed(2004, 527);
    for (uint32_t keys = 1; keys <= KEYS; keys += 13)
        draw(keys, 1000, 3000);
}

/* Sums of 32 bits and counts of 16 are sent before they overflow. */
static void what_a_state_cannot_say_is_sent_before(void)
{
    random_seed(51, 1);
    draw(2, INT32_MAX, 1000);
    draw(1, 3, 200000);
}

static void as_many_groups_as_have_room_are_put_together(void)
{
    const struct index_grouped one = {WIRE_AGGREGATE_COUNT, true, 0};
    CHECK(index_groups_take(told, 1));
    for (int32_t key = 0; key < INDEX_GROUPS_BYTES / 10; key++)
        CHECK(index_groups_add(key, &one));
    CHECK(!index_groups_add(1000, &one));
    CHECK(index_groups_add(75, &one));
    index_groups_free(told);
}

static void groups_are_of_one_question_at_a_time(void)
{
    const struct index_grouped one = {WIRE_AGGREGATE_COUNT, true, 0};
    CHECK(index_groups_take(told, 1));
    CHECK(index_groups_add(3, &one));
    CHECK(!index_groups_take(added, 1));
    index_groups_free(added);
    CHECK(!index_groups_take(added, 1));
    CHECK(index_groups_take(told, 1));
    CHECK(index_groups_left());
    index_groups_free(told);
    CHECK(index_groups_take(added, 1));
    CHECK(!index_groups_left());
    index_groups_free(added);
}

static const struct test tests[] = {
    TEST(all_that_was_added_comes_out),
    TEST(what_a_state_cannot_say_is_sent_before),
    TEST(as_many_groups_as_have_room_are_put_together),
    TEST(groups_are_of_one_question_at_a_time),
};
UNIT_MAIN(tests)
