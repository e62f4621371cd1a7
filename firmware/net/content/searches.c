#include <stddef.h>
#include <string.h>

#include "drivers/settings.h"
#include "net/content/content.h"
#include "net/content/content_state.h"
#include "net/mac/frames.h"
#include "net/mac/mac.h"
#include "net/routing/neighbours.h"
#include "net/transport/carried.h"
#include "net/transport/trails.h"
#include "net/transport/transport_ops.h"

#define DOWN 0x80
/* Control windows in which a search, or an answer, is sent in vain before it is given up. */
#define SEARCH_WINDOWS 4
#define ANSWER_WINDOWS 8
/* Seconds that an answer may be under way. */
#define ANSWER_SECONDS 300

static uint8_t child_place(const struct content *content, uint16_t mote, uint8_t tree)
{
    uint8_t place = 0;
    while (place < CHILDREN &&
           (content->children[place].mote != mote || content->children[place].tree != tree))
        place++;
    return place;
}

struct marking {
    const struct content *content;
    struct hand *hand; /* of the first tree, where the search is this mote's own */
    bool own;
};

/* Where a search is to go is kept as bits in its hand. */
static void mark(uint16_t to, const struct search *search, void *context)
{
    const struct marking *marking = context;
    const struct content *content = marking->content;
    struct hand *hand = marking->hand + (marking->own ? search->tree : 0);
    uint8_t place = child_place(content, to, search->tree);
    if (to == SEARCH_ALL_CHILDREN) {
        hand->next |= TO_ALL;
        hand->search.except = search->except;
    } else if (search->down && place < CHILDREN)
        hand->next = (uint16_t)(hand->next | 1U << place);
    else if (!search->down)
        hand->next |= TO_PARENT;
}

/* The search has gone to all whom it concerns: the gateway, which knows how many have it, knows
 * when it is over. */
static void finish(struct hand *hand)
{
    struct wire_found record = {.node = settings()->nodeid,
                                .token = hand->token,
                                .mote = WIRE_NO_NODE,
                                .tree = (uint8_t)(hand->search.tree | (hand->has ? DOWN : 0)),
                                .hops = (uint8_t)(hand->search.length - 1),
                                .frames = hand->frames};
    hand->used = false;
    content_tell(&record);
}

static void go(struct content *content, struct hand *hand)
{
    hand->due = content->all_awake;
    if (!hand->next)
        finish(hand);
}

static struct hand *free_hand(struct content *content)
{
    for (uint8_t i = 0; i < WIRE_SEARCH_TREES; i++)
        if (!content->hands[i].used)
            return &content->hands[i];
    return NULL;
}

/* ---- answers ---- */
static void tell_found(uint16_t mote, uint16_t token, uint8_t hops)
{
    struct wire_found record = {
        .node = settings()->nodeid, .token = token, .mote = mote, .hops = hops};
    content_tell(&record);
}

/* The way that the search has come, back, as a path vector (WIRE_WAY_VECTOR); 0: it is too long. */
static uint8_t back(const struct search *search, uint8_t *vector)
{
    uint8_t length = 0;
    for (uint8_t i = (uint8_t)(search->length - 1); i > 0; i--) {
        int16_t difference = (int16_t)(search->path[i - 1] - search->path[i]);
        uint16_t rest = (uint16_t)((uint16_t)difference << 1 ^ (difference < 0 ? UINT16_MAX : 0));
        for (; length < ANSWER_VECTOR; rest >>= 7) {
            vector[length++] = (uint8_t)((rest & 0x7F) | (rest > 0x7F ? 0x80 : 0));
            if (rest <= 0x7F)
                break;
        }
    }
    return length < ANSWER_VECTOR ? length : 0;
}

static void found(struct content *content, const struct hand *hand)
{
    if (content->last.answered || content->answer.tries)
        return;
    content->last.answered = true;
    content->answer.seeker = hand->search.path[0];
    content->answer.record =
        (struct wire_answer){WIRE_CARRIES_FOUND, settings()->nodeid, hand->token};
    content->answer.tries = ANSWER_WINDOWS;
    content->answer.length = back(&hand->search, content->answer.vector);
}

/* By the way that the search has come; where that fails, by the tree. */
static void send_answer(struct content *content)
{
    if (!content->answer.tries)
        return;
    struct way_route route = {.vector = content->answer.vector, .length = content->answer.length};
    bool by_vector = content->answer.length != 0 && content->answer.tries > ANSWER_WINDOWS / 2;
    struct wire_answer record = content->answer.record;
    content->answer.tries--;
    if (carried_send(content->answer.seeker, by_vector ? &route : NULL, &record, sizeof record,
                     ANSWER_SECONDS, WAY_EVERY_LEAST) != CARRIED_WAITS)
        return;
    content->answer.tries = 0;
}

void answer_lost(uint8_t outcome, const uint8_t *record, uint8_t length)
{
    struct content *content = content_state();
    struct wire_answer answer;
    if (length != sizeof answer)
        return;
    memcpy(&answer, record, sizeof answer);
    /* From where it was lost it goes on by the tree, to the mote that searched last. */
    if (outcome == WIRE_OUTCOME_LATE || !content || content->answer.tries ||
        answer.token != content->last.token || content->last.seeker == settings()->nodeid)
        return;
    content->answer.seeker = content->last.seeker;
    content->answer.record = answer;
    content->answer.tries = ANSWER_WINDOWS / 2;
}

bool answer_came(uint8_t hops, const uint8_t *record, uint8_t length)
{
    struct wire_answer answer;
    if (length != sizeof answer)
        return false;
    memcpy(&answer, record, sizeof answer);
    tell_found(answer.mote, answer.token, hops);
    return true;
}

/* ---- searches ---- */
bool search_heard(uint16_t from, const uint8_t *body, uint8_t length)
{
    const struct wire_search *heard = (const struct wire_search *)body;
    struct content *content = content_state();
    if (length < sizeof *heard + sizeof from ||
        length > sizeof *heard + SEARCH_PATH * sizeof from || (length - sizeof *heard) % 2 != 0)
        return false;
    uint8_t tree = (uint8_t)(heard->tree & ~DOWN);
    if (tree >= WIRE_SEARCH_TREES || heard->low > heard->high)
        return false;
    struct hand *hand = content ? free_hand(content) : NULL;
    if (!hand || heard->attribute != content->attribute)
        return true;
    *hand = (struct hand){.token = heard->token};
    struct search *search = &hand->search;
    search->ask = (struct summary_ask){{.x = heard->low}, {.x = heard->high}};
    search->except = heard->except;
    search->length = (uint8_t)((length - sizeof *heard) / 2);
    search->tree = tree;
    search->down = heard->tree & DOWN;
    memcpy(search->path, heard->path, length - sizeof *heard);
    uint16_t seeker = search->path[0];
    if (seeker != content->last.seeker || heard->token != content->last.token) {
        content->last.seeker = seeker;
        content->last.token = heard->token;
        content->last.trees = 0;
        content->last.answered = false;
    }
    /* Its sender has missed the acknowledgement. */
    if (content->last.trees >> tree & 1)
        return true;
    struct search_mote mote;
    uint16_t linked[NEIGHBOURS];
    content_mote(content, &mote, linked);
    struct marking marking = {content, hand, false};
    enum search_end end = search_hear(&mote, from, search, mark, &marking);
    /* One to all in range goes down to those alone whose parent has sent it. */
    if (end == SEARCH_REFUSED || end == SEARCH_CIRCLE)
        return end == SEARCH_CIRCLE || search->down;
    hand->used = true;
    content->last.trees = (uint8_t)(content->last.trees | 1U << tree);
    hand->has = end == SEARCH_FOUND;
    if (hand->has)
        found(content, hand);
    go(content, hand);
    return true;
}

static void begin_own(struct content *content)
{
    struct search_mote mote;
    content_mote(content, &mote, NULL);
    content->last.seeker = mote.mote;
    content->last.token = content->own.token;
    content->last.trees = (1U << WIRE_SEARCH_TREES) - 1;
    trails_lay();
    bool has = mote.has && summary_asked(&mote.shape, &mote.value, &content->own.ask);
    if (has)
        tell_found(mote.mote, content->own.token, 0);
    for (uint8_t tree = 0; tree < WIRE_SEARCH_TREES; tree++)
        content->hands[tree] = (struct hand){.search = {.ask = content->own.ask,
                                                        .path = {mote.mote},
                                                        .except = FAR_NOBODY,
                                                        .length = 1,
                                                        .tree = tree},
                                             .token = content->own.token,
                                             .used = true,
                                             .has = has};
    struct marking marking = {content, content->hands, true};
    search_start(&mote, &content->own.ask, mark, &marking);
    for (uint8_t tree = 0; tree < WIRE_SEARCH_TREES; tree++)
        go(content, &content->hands[tree]);
}

void searches_window(struct content *content)
{
    bool idle = true;
    for (uint8_t i = 0; i < WIRE_SEARCH_TREES; i++) {
        content->hands[i].due = content->hands[i].used && content->all_awake;
        idle = idle && !content->hands[i].used;
    }
    if (content->own.wait > 1)
        content->own.wait--;
    else if (content->own.wait && idle && content->all_awake) {
        content->own.wait = 0;
        begin_own(content);
    }
    send_answer(content);
}

bool searches_waiting(const struct content *content)
{
    for (uint8_t i = 0; i < WIRE_SEARCH_TREES; i++)
        if (content->hands[i].used && content->hands[i].due)
            return true;
    return false;
}

static void sent(enum radio_outcome outcome)
{
    struct content *content = content_state();
    struct hand *hand = content ? &content->hands[content->sending] : NULL;
    if (hand && hand->used && hand->next & content->sending_to) {
        uint16_t to = content->sending_to;
        bool gone = outcome == RADIO_SENT;
        if (gone || ++hand->tries == SEARCH_WINDOWS) {
            hand->next = (uint16_t)(hand->next & ~to);
            hand->frames = (uint8_t)(hand->frames + gone);
            hand->tries = 0;
            for (uint8_t i = 0; !gone && i < CHILDREN; i++)
                if (to == 1U << i)
                    content_forget_child(content, i);
        }
        hand->due = gone && hand->next;
        if (!hand->next)
            finish(hand);
    }
    dissemination_sent();
}

/* The next whom it concerns. */
static uint16_t receiver(struct content *content, const struct hand *hand)
{
    uint16_t bit = 1;
    while (!(hand->next & bit))
        bit = (uint16_t)(bit << 1);
    content->sending_to = bit;
    if (bit == TO_PARENT)
        return content->in_trees[hand->search.tree].parent;
    if (bit == TO_ALL)
        return WIRE_BROADCAST;
    uint8_t place = 0;
    while (bit >> place != 1)
        place++;
    return content->children[place].mote;
}

bool searches_send(struct content *content)
{
    uint8_t i = 0;
    while (i < WIRE_SEARCH_TREES - 1 && !(content->hands[i].used && content->hands[i].due))
        i++;
    struct hand *hand = &content->hands[i];
    const struct search *search = &hand->search;
    uint16_t to = receiver(content, hand);
    content->sending = i;
    hand->due = false;
    struct wire_search *frame = mac_begin(&control_frame, to, WIRE_PACKET_SEARCH);
    bool down = content->sending_to != TO_PARENT;
    *frame = (struct wire_search){.attribute = content->attribute,
                                  .token = hand->token,
                                  .low = search->ask.low.x,
                                  .high = search->ask.high.x,
                                  .tree = (uint8_t)(search->tree | (down ? DOWN : 0)),
                                  .except = content->sending_to == TO_ALL ? search->except
                                                                          : WIRE_NO_NODE};
    uint8_t path = (uint8_t)(search->length * sizeof *search->path);
    memcpy(frame->path, search->path, path);
    mac_finish(&control_frame, (uint8_t)(sizeof *frame + path));
    return mac_send(&control_frame, UNICAST_TRIES, sent);
}
