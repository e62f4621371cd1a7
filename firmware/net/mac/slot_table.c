#include "net/mac/slot_table.h"

#include <string.h>

#include "board.h"

/* Cells of a round: with them it ends before the next one's control window. */
#define CELLS_ALL 92
/* A table tells, in nibbles from the lowest on, for levels in six bands which of `sizes` they have,
 * and in its highest byte how many levels have a slot: the last of these is also that of all deeper
 * ones. 0 is the table of the beginning. */
#define BANDS 6
#define LEVELS 30
static const IN_FLASH uint8_t band_last[BANDS] = {1, 2, 3, 4, 8, LEVELS};
/* No multiples of the step from one number's cell to the next one's (schedule/slotframe.c). */
static const IN_FLASH uint8_t sizes[16] = {3,  4,  5,  6,  8,  10, 12, 15,
                                           18, 20, 24, 30, 36, 48, 64, 88};
#define CELLS_LEAST 3
/* The table of the beginning, when nothing is known of the network: towards the root there are more
 * motes and more to carry. By level, from 0 on: cells of a round before the level's slot; of level
 * 0 all. */
static const IN_FLASH uint8_t beginning[] = {92, 56, 36, 23, 15, 10, 6, 3, 0};

/* A mote that says a deeper level than this is in no tree, but in a loop that counts up. */
#define DEEPEST 32
/* Bytes that a mote is taken to send per round, at least and at most. */
#define LOAD_LEAST 24
#define LOAD_MOST 1000
/* Cells for motes, so that few numbers share one and there is time to repeat a frame, and
 * sixteenths of a cell for bytes, half of which may have to be sent again. */
#define CELLS_OF_MOTES(n) (3 + (n) * 3 / 2)
#define CELLS_OF_BYTES_16TH(n) ((n) * 5 / 6)
#define NEED_MOST 255
/* Cells of the slot behind the deepest level: motes may join there. */
#define SPARE 4
/* Halves of a cell by which a slot may be short whatever its length. */
#define TOLERATED_HALF_CELLS 4
/* Cells by which a round must become shorter. */
#define SHORTER 16
/* A table holds from so many control windows on after it was announced, and so many more for each
 * level: a mote beacons in one of three, and slots are no reason to beacon more often, which would
 * delay the queries that come at that time. */
#define WINDOWS_AHEAD 12
#define WINDOWS_OF_LEVEL 3
/* The second in which a table comes into force is told without so many of its lowest bits. */
#define UNIT_SHIFT 4

static struct {
    /* as in beacons: the table in force, and the next; the same where none is announced */
    struct wire_slots_entry told[2];
    uint8_t before[LEVELS + 1]; /* cells of a round before the slot of a level; [0]: all */
    uint8_t levels;             /* that have a slot of their own */
    /* at the root: motes by level, as their reports of this period say, and of the last */
    struct {
        uint8_t now, before;
    } counted[LEVELS];
    /* bytes of bundles in this round; in the round of this period, and of the last, that had most
     */
    uint16_t bytes_now, bytes_most, bytes_most_before;
} layout;

static uint8_t band_of(uint8_t level)
{
    uint8_t band = 0;
    while (level > band_last[band])
        band++;
    return band;
}

/* Bytes of a table, on the little-endian chips that there are. */
#define BYTES(table) ((const uint8_t *)&(table))
#define LEVELS_OF(table) (BYTES(table)[3])

/* The cells of all slots, and into `sums`, unless that is NULL, those before the slot of each
 * level; 0: no such table. */
static uint8_t add_up(const uint8_t *table, uint8_t *sums)
{
    uint8_t level = table[3], sum = 0;
    if (level < 2 || level > LEVELS)
        return 0;
    for (;; level--) {
        if (sums)
            sums[level] = sum;
        if (level == 0)
            return sum;
        uint8_t band = band_of(level), pair = table[band >> 1],
                cells = sizes[band & 1 ? pair >> 4 : pair & 15];
        if (cells > CELLS_ALL - sum)
            return 0;
        sum = (uint8_t)(sum + cells);
    }
}

static void hold(void)
{
    if (layout.told[0].table) {
        layout.levels = LEVELS_OF(layout.told[0].table);
        (void)add_up(BYTES(layout.told[0].table), layout.before);
        return;
    }
    layout.levels = sizeof beginning - 1;
    for (uint8_t level = 0; level <= layout.levels; level++)
        layout.before[level] = beginning[level];
}

void slot_table_forget(void)
{
    memset(layout.told, 0, sizeof layout.told);
    hold();
}

static bool announced(void) { return layout.told[0].table != layout.told[1].table; }

static void change(void)
{
    layout.told[0].table = layout.told[1].table;
    hold();
}

void slot_table_round(uint16_t second)
{
    if (announced() && (int8_t)((uint8_t)(second >> UNIT_SHIFT) - layout.told[1].start) >= 0)
        change();
}

static uint8_t own(uint8_t level)
{
    return level == 0 || level > layout.levels ? layout.levels : level;
}

uint16_t slot_table_start(uint8_t level)
{
    return (uint16_t)(SLOTS_BEGIN_MS + layout.before[own(level)] * SLOT_CELL_MS);
}

uint16_t slot_table_end(uint8_t level)
{
    return (uint16_t)(SLOTS_BEGIN_MS + layout.before[own(level) - 1] * SLOT_CELL_MS);
}

uint8_t slot_table_cells(uint8_t level)
{
    return (uint8_t)(layout.before[own(level) - 1] - layout.before[own(level)]);
}

uint16_t slot_table_over(void)
{
    return (uint16_t)(SLOTS_BEGIN_MS + layout.before[0] * SLOT_CELL_MS + 5);
}

bool slot_table_shared(uint8_t level) { return level >= layout.levels; }

uint8_t slot_table_length(const uint8_t *entries, uint8_t length)
{
    uint8_t at = 0;
    while (at < sizeof layout.told && at + sizeof *layout.told <= length && entries[at] == 0)
        at = (uint8_t)(at + sizeof *layout.told);
    return at;
}

bool slot_table_possible(const uint8_t *entries, uint8_t length)
{
    for (; length;
         length = (uint8_t)(length - sizeof *layout.told), entries += sizeof *layout.told) {
        const struct wire_slots_entry *entry = (const struct wire_slots_entry *)entries;
        if (entry->version == 0 || (entry->table && !add_up(BYTES(entry->table), NULL)))
            return false;
    }
    return true;
}

void slot_table_take(const uint8_t *entries, uint8_t length)
{
    const struct wire_slots_entry *entry = (const struct wire_slots_entry *)entries;
    if (length == 0)
        return;
    int8_t newer = (int8_t)(entry->version - layout.told[0].version);
    if (layout.told[0].version && newer <= 0) {
        /* This mote was away when the announced table came into force. */
        if (newer == 0 && length < sizeof layout.told && announced())
            change();
        return;
    }
    layout.told[0] = layout.told[1] = *entry;
    if (length == sizeof layout.told)
        layout.told[1] = entry[1];
    hold();
}

uint8_t slot_table_write(uint8_t *entries)
{
    if (layout.told[0].version == 0)
        return 0;
    memcpy(entries, layout.told, sizeof layout.told);
    return announced() ? sizeof layout.told : sizeof *layout.told;
}

/* ---- at the root ---- */
void slot_table_mote(uint8_t level)
{
    if (level == 0 || level > DEEPEST)
        return;
    if (level >= LEVELS)
        level = LEVELS - 1; /* one is left for motes that are deeper */
    if (layout.counted[level].now != UINT8_MAX)
        layout.counted[level].now++;
}

void slot_table_traffic(uint8_t bytes) { layout.bytes_now += bytes; }

static uint8_t motes(uint8_t level)
{
    return layout.counted[level].now > layout.counted[level].before ? layout.counted[level].now
                                                                    : layout.counted[level].before;
}

/* The table for motes at levels 1..depth, of which each needs so many sixteenths of a cell for what
 * it sends. A level carries what its own motes have and those of deeper ones; each mote's go in a
 * frame of their own at least. Where there is not room for all, each band gets its share; what
 * rounding leaves goes towards the root. 0 where it is not worth the change: no level is without a
 * slot of its own, or has one too short by a third, nor could the round be shorter. */
static uint32_t make(uint8_t depth, uint16_t load)
{
    uint16_t below = 0, wanted = 0;
    uint8_t left = CELLS_ALL;
    /* cells of a level beyond the least, levels */
    struct {
        uint8_t need, width;
    } bands[BANDS] = {{0}}, *band;
    for (uint8_t level = (uint8_t)(depth + 1); level > 0; level--) {
        uint16_t cells = SPARE;
        if (level <= depth) {
            uint8_t here = motes(level);
            below += here;
            cells = (uint16_t)((uint16_t)CELLS_OF_MOTES(here) + (below * load >> 4));
            if (cells > NEED_MOST)
                cells = NEED_MOST;
        }
        cells -= CELLS_LEAST;
        band = &bands[band_of(level)];
        if (cells > band->need)
            band->need = (uint8_t)cells;
        band->width++;
    }
    for (band = bands; band < bands + BANDS; band++) {
        wanted += (uint16_t)(band->need * band->width);
        left = (uint8_t)(left - CELLS_LEAST * band->width);
    }
    bool worth = depth >= layout.levels;
    uint8_t sum = 0, level = (uint8_t)(depth + 1);
    uint32_t table = level;
    for (band = bands + BANDS; band-- > bands;) {
        uint8_t more = band->need, size = sizeof sizes;
        if (wanted > left)
            more = (uint8_t)((uint16_t)more * left / wanted);
        while (sizes[--size] > CELLS_LEAST + more) {}
        more = (uint8_t)(sizes[size] - CELLS_LEAST);
        wanted -= (uint16_t)(band->need * band->width);
        left = (uint8_t)(left - more * band->width);
        table = table << 4 | size;
        for (; band->width; band->width--, level--) {
            sum = (uint8_t)(sum + sizes[size]);
            worth |= 2 * sizes[size] > 3 * slot_table_cells(level) + TOLERATED_HALF_CELLS;
        }
    }
    return worth || sum + SHORTER <= layout.before[0] ? table : 0;
}

void slot_table_decide(uint32_t round, uint16_t reports, uint8_t windows)
{
    if (layout.bytes_now > layout.bytes_most)
        layout.bytes_most = layout.bytes_now;
    layout.bytes_now = 0;
    /* A decision takes some ms, and is made where no control window follows. */
    if (((uint16_t)round & (reports - 1)) != 2)
        return;
    uint8_t depth = 0;
    uint16_t all = 0;
    for (uint8_t level = 1; level < LEVELS; level++) {
        uint8_t here = motes(level);
        all += here;
        if (here)
            depth = level;
    }
    if (depth > 0 && round >= SLOTS_DECIDED_SECONDS && !announced()) {
        uint16_t load =
            (uint16_t)((layout.bytes_most < layout.bytes_most_before ? layout.bytes_most
                                                                     : layout.bytes_most_before) /
                       all);
        if (load < LOAD_LEAST)
            load = LOAD_LEAST;
        if (load > LOAD_MOST)
            load = LOAD_MOST;
        uint32_t table = make(depth, (uint16_t)CELLS_OF_BYTES_16TH(load));
        if (table) {
            uint8_t version =
                layout.told[0].version == UINT8_MAX ? 1 : (uint8_t)(layout.told[0].version + 1);
            layout.told[0].version = layout.told[1].version = version;
            layout.told[1].start =
                (uint8_t)((((uint16_t)round +
                            (uint16_t)(windows * (WINDOWS_AHEAD + WINDOWS_OF_LEVEL * depth))) >>
                           UNIT_SHIFT) +
                          1);
            layout.told[1].table = table;
        }
    }
    for (uint8_t level = 1; level < LEVELS; level++) {
        layout.counted[level].before = layout.counted[level].now;
        layout.counted[level].now = 0;
    }
    layout.bytes_most_before = layout.bytes_most;
    layout.bytes_most = 0;
}
