/* Pages are written in turn and evicted in turn: page n lies where n modulo their count says, and
 * what is erased is always the one behind those that are ready. So no page is erased twice before
 * all others are.
 *
 * A sealed word has 27 bits and the number of zeros among them. Power that goes while a word is
 * written leaves ones where zeros were to be, which makes that number less and what is written of
 * it more: such a word is never taken for a whole one. All else is written before the word that
 * says that it is there. */
#include "storage/log.h"

#include "drivers/pages.h"
#include "lib/calls.h"
#include "lib/crc.h"
#include "storage/filter.h"

/* Of a page: its erasures, written once it is erased; what was evicted before it was begun; its
 * number in the order of writing, which begins it; and what says that it is evicted, written before
 * it is erased, so that nothing is read of a page that a loss of power has left half erased. */
enum { WEAR, EVICTED, NUMBER, OVER, FIRST };
/* Behind the records: which names are among them, written once there is no room for one more. */
#define RECORDS_END (PAGES_WORDS - FILTER_WORDS)
/* Pages that are erased and wait. The last two are for records that are copied. */
#define READY 4
#define READY_FOR_COPIES 2
/* Of the word that begins a record. */
#define LENGTH_SHIFT 21
#define KIND_SHIFT 16
#define KIND_MASK 0x1FU

static uint32_t oldest, next; /* pages with records: from oldest on, before next */
static uint32_t evicted;
static uint16_t end; /* of the newest page: the first word without a record */
static uint8_t ready;

static uint32_t sealed(uint32_t value)
{
    uint32_t zeros = 27;
    for (uint32_t ones = value; ones != 0; ones &= ones - 1)
        zeros--;
    return value << 5 | zeros;
}

static bool whole(uint32_t word) { return sealed(word >> 5) == word; }

static uint8_t page_of(uint32_t number) { return (uint8_t)(number % pages_count()); }
static const volatile uint32_t *words_of(uint32_t number) { return pages_words(page_of(number)); }

/* Whether a page was begun, and its count of erasures is one: an image before this one may have
 * left anything. */
static bool numbered(uint8_t page)
{
    const volatile uint32_t *words = pages_words(page);
    return whole(words[WEAR]) && whole(words[NUMBER]) && page_of(words[NUMBER] >> 5) == page;
}

/* Whether a page has records. */
static bool begun(uint8_t page)
{
    return numbered(page) && pages_words(page)[OVER] == PAGES_ERASED;
}

/* Whether a page has been erased, and nothing was done to it since. */
static bool blank(uint8_t page)
{
    const volatile uint32_t *words = pages_words(page);
    return whole(words[WEAR]) && words[EVICTED] == PAGES_ERASED && words[NUMBER] == PAGES_ERASED &&
           words[OVER] == PAGES_ERASED;
}

/* Times that a page was erased; 0: not known. */
static uint32_t erasures_of(uint8_t page)
{
    return numbered(page) || blank(page) ? pages_words(page)[WEAR] >> 5 : 0;
}

static uint32_t first_word(enum log_kind kind, const uint32_t *words, uint8_t count)
{
    uint16_t crc = crc_xmodem(crc_xmodem(0, (uint8_t)kind), count);
    for (uint8_t i = 0; i < count; i++)
        for (uint8_t shift = 0; shift < 32; shift = (uint8_t)(shift + 8))
            crc = crc_xmodem(crc, (uint8_t)(words[i] >> shift));
    return sealed((uint32_t)(count + 1) << LENGTH_SHIFT | (uint32_t)kind << KIND_SHIFT | crc);
}

/* The record at a word of a page with records, and the word behind it; false: there are no more in
 * this page. */
static bool record_at(uint32_t number, uint16_t *word, struct log_record *record)
{
    const volatile uint32_t *words = words_of(number);
    while (*word < RECORDS_END) {
        uint32_t begins = words[*word];
        if (begins == PAGES_ERASED)
            return false;
        uint8_t length = (uint8_t)(begins >> 5 >> LENGTH_SHIFT);
        uint16_t at = *word;
        /* Where a loss of power has cut this word short, what follows may have been written. */
        if (!whole(begins) || length == 0 || length > RECORDS_END - at) {
            *word = (uint16_t)(at + LOG_WORDS_MAXIMUM);
            continue;
        }
        *word = (uint16_t)(at + length);
        *record = (struct log_record){{number, at},
                                      &words[at + 1],
                                      (uint8_t)(length - 1),
                                      (uint8_t)(begins >> 5 >> KIND_SHIFT & KIND_MASK)};
        if (record->kind != LOG_SKIP)
            return true;
    }
    return false;
}

/* Finds the end of the newest page, and passes over what a loss of power has left behind it. One
 * whose names are written already takes no more records. */
static void find_end(void)
{
    struct log_record record;
    uint32_t number = next - 1;
    const volatile uint32_t *words = words_of(number);
    end = FIRST;
    while (record_at(number, &end, &record)) {}
    for (uint16_t word = RECORDS_END; word < PAGES_WORDS; word++)
        if (words[word] != PAGES_ERASED)
            end = RECORDS_END;
    if (end > RECORDS_END)
        end = RECORDS_END;
    uint16_t limit = end + LOG_WORDS_MAXIMUM < RECORDS_END ? (uint16_t)(end + LOG_WORDS_MAXIMUM)
                                                           : (uint16_t)RECORDS_END;
    for (uint16_t word = end; word < limit; word++) {
        if (words[word] == PAGES_ERASED)
            continue;
        pages_write(page_of(number), end, sealed((uint32_t)(limit - end) << LENGTH_SHIFT));
        end = limit;
        return;
    }
}

static void find_records(void)
{
    struct log_place place;
    struct log_record record;
    for (log_first(&place); log_next(&place, &record);)
        log_found(&record);
}

void log_open(void)
{
    uint8_t count = pages_count();
    bool any = false;
    oldest = next = evicted = 0;
    end = RECORDS_END;
    ready = 0;
    for (uint8_t page = 0; page < count; page++) {
        uint32_t number = pages_words(page)[NUMBER] >> 5;
        if (begun(page) && (!any || number >= next)) {
            any = true;
            next = number + 1;
        }
    }
    oldest = next;
    while (oldest > 0 && next - oldest < count && begun(page_of(oldest - 1)) &&
           words_of(oldest - 1)[NUMBER] >> 5 == oldest - 1)
        oldest--;
    log_restarted();
    while (ready < READY && next + ready < oldest + count && blank(page_of(next + ready)))
        ready++;
    if (any) {
        uint32_t before = words_of(next - 1)[EVICTED];
        evicted = whole(before) ? before >> 5 : 0;
        find_end();
        find_records();
    }
    while (log_untidy())
        log_tidy();
}

/* Writes which names are in the newest page, or what a loss of power has left of that to do. */
static NOT_INLINED void write_names(void)
{
    uint32_t filter[FILTER_WORDS] = {0};
    struct log_record record;
    uint16_t word = FIRST;
    while (record_at(next - 1, &word, &record))
        if (log_has_name(&record))
            filter_add(filter, log_name_of(&record));
    for (uint8_t i = 0; i < FILTER_WORDS; i++)
        if (words_of(next - 1)[RECORDS_END + i] == PAGES_ERASED)
            pages_write(page_of(next - 1), (uint16_t)(RECORDS_END + i), filter[i]);
}

/* Begins the next page, unless fewer than so many are left then. */
static bool begin_page(uint8_t left)
{
    if (ready <= left)
        return false;
    if (next > oldest)
        write_names();
    uint8_t page = page_of(next);
    pages_write(page, EVICTED, sealed(evicted));
    pages_write(page, NUMBER, sealed(next));
    next++;
    ready--;
    end = FIRST;
    log_grew_untidy();
    return true;
}

static bool append(enum log_kind kind, const uint32_t *words, uint8_t count, uint8_t left,
                   struct log_place *place)
{
    if (end + count + 1U > RECORDS_END && !begin_page(left))
        return false;
    uint8_t page = page_of(next - 1);
    *place = (struct log_place){next - 1, end};
    for (uint8_t i = 0; i < count; i++)
        if (words[i] != PAGES_ERASED)
            pages_write(page, (uint16_t)(end + 1 + i), words[i]);
    pages_write(page, end, first_word(kind, words, count));
    end = (uint16_t)(end + 1 + count);
    return true;
}

bool log_append(enum log_kind kind, const uint32_t *words, uint8_t count, struct log_place *place)
{
    return append(kind, words, count, READY_FOR_COPIES, place);
}

static void copy_words(const struct log_record *record, uint32_t *words)
{
    for (uint8_t i = 0; i < record->count; i++)
        words[i] = record->words[i];
}

/* Copies a record to the newest page. */
static bool copy(const struct log_record *record)
{
    uint32_t words[LOG_WORDS_MAXIMUM];
    struct log_record moved = *record;
    copy_words(record, words);
    if (record->count >= LOG_WORDS_MAXIMUM ||
        !append((enum log_kind)record->kind, words, record->count, 0, &moved.place))
        return false;
    moved.words = &words_of(moved.place.page)[moved.place.word + 1];
    log_copied(&moved);
    return true;
}

/* No record is lost that was to be kept, unless losses of power one after the other, each while a
 * record was copied, have taken the room for it. */
static void evict(void)
{
    struct log_record record;
    uint16_t word = FIRST;
    while (record_at(oldest, &word, &record)) {
        enum log_fate fate = log_fate_of(&record);
        bool lost = fate == LOG_KEPT && !copy(&record);
        if (lost)
            log_lost(&record);
        if (lost || fate == LOG_EVICTED)
            evicted++;
    }
    pages_write(page_of(oldest), OVER, 0);
    oldest++;
}

bool log_is_full(void) { return ready <= READY_FOR_COPIES; }

bool log_untidy(void) { return ready < READY; }

void log_tidy(void)
{
    if (!log_untidy())
        return;
    if (next + ready == oldest + pages_count())
        evict();
    uint8_t page = page_of(next + ready);
    uint32_t erasures = erasures_of(page);
    /* A page whose count was lost has been erased as often as the one before it. */
    if (erasures++ == 0)
        erasures = erasures_of(page_of(next + ready + pages_count() - 1));
    if (erasures == 0)
        erasures = 1;
    pages_erase(page);
    pages_write(page, WEAR, sealed(erasures));
    ready++;
}

void log_first(struct log_place *place) { *place = (struct log_place){oldest, FIRST}; }

bool log_next(struct log_place *place, struct log_record *record)
{
    if (place->page < oldest)
        log_first(place);
    for (; place->page < next; place->page++, place->word = FIRST) {
        if (place->word < FIRST)
            place->word = FIRST;
        if (record_at(place->page, &place->word, record))
            return true;
        if (place->page == next - 1)
            return false;
    }
    return false;
}

uint8_t log_page(const struct log_place *place) { return page_of(place->page); }

bool log_at(uint8_t page, uint16_t word, struct log_record *record)
{
    return begun(page) && record_at(pages_words(page)[NUMBER] >> 5, &word, record);
}

bool log_next_named(struct log_place *place, uint32_t name, struct log_record *record)
{
    if (place->page < oldest)
        log_first(place);
    for (;;) {
        /* The newest page has no filter yet, and no bit of it is 0. */
        while (place->page < next && !filter_may_have(&words_of(place->page)[RECORDS_END], name))
            *place = (struct log_place){place->page + 1, FIRST};
        if (!log_next(place, record))
            return false;
        if (log_has_name(record) && log_name_of(record) == name)
            return true;
    }
}

bool log_sound(const struct log_record *record)
{
    uint32_t words[LOG_WORDS_MAXIMUM];
    if (record->count >= LOG_WORDS_MAXIMUM)
        return false;
    copy_words(record, words);
    return record->words[-1] == first_word((enum log_kind)record->kind, words, record->count);
}

void log_statistics(struct log_statistics *statistics)
{
    const uint32_t page_bytes = (RECORDS_END - FIRST) * 4;
    *statistics = (struct log_statistics){.pages = pages_count(), .evicted = evicted};
    statistics->capacity = (uint32_t)(pages_count() - READY_FOR_COPIES) * page_bytes;
    if (next > oldest)
        statistics->used = (next - oldest - 1) * page_bytes + (uint32_t)(end - FIRST) * 4;
    for (uint8_t page = 0; page < statistics->pages; page++) {
        uint32_t erasures = erasures_of(page);
        statistics->erased_sum += erasures;
        if (erasures > statistics->erased_most)
            statistics->erased_most = erasures;
    }
}
