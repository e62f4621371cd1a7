#include "net/content/content.h"

#include <stddef.h>
#include <string.h>

#include "drivers/settings.h"
#include "net/app.h"
#include "net/content/content_state.h"
#include "net/mac/frames.h"
#include "net/mac/mac.h"
#include "net/routing/neighbours.h"
#include "net/routing/positions.h"
#include "net/routing/tree.h"
#include "net/transport/transport_ops.h"

/* Control windows after the last command for which trees are kept. */
#define KEPT 250
/* What is new is told in so many windows, as frames to all are not acknowledged, and up to so often
 * in one, as what follows from it is told at once. */
#define TOLD_AGAIN 3
#define TOLD_MOST 4
/* What is not new is told in one of so many, a power of two; a parent that was not heard in so many
 * is gone. */
#define TOLD_EVERY 16
#define PARENT_SILENT 40

#define TREES WIRE_SEARCH_TREES
/* It lies at a multiple of four bytes. */
#define BYTES ((sizeof(struct content) + 3U) & ~3U)

struct content *content_state(void) { return app_borrowed(); }

/* Statics and numbers without a sign are compared as if they were 32768 less. False: nobody knows
 * searches for this attribute. */
static bool value_of(uint8_t attribute, struct summary_value *value, bool *has)
{
    const struct wire_settings *own = settings();
    uint16_t number = own->nodeid;
    *has = true;
    switch (attribute) {
    case WIRE_ATTRIBUTE_NODEID: break;
    case WIRE_ATTRIBUTE_ROOM: number = own->room; break;
    case WIRE_ATTRIBUTE_GROUP: number = own->group; break;
    case WIRE_ATTRIBUTE_FLOOR: number = (uint16_t)own->floor ^ 0x8000U; break;
    default:
        if (attribute < WIRE_STATIC_FIRST || attribute >= WIRE_STATIC_FIRST + WIRE_STATICS_MAXIMUM)
            return false;
        number = own->statics[attribute - WIRE_STATIC_FIRST];
        *has = number != 0;
    }
    *value = (struct summary_value){.x = (int16_t)(number ^ 0x8000U)};
    return true;
}

/* Something is new. */
static void tell_again(struct content *content)
{
    content->again = TOLD_AGAIN;
    content->due = content->all_awake && content->told < TOLD_MOST;
}

static bool is_same(const struct content *content, uint8_t attribute, uint8_t kind,
                    const uint16_t *roots)
{
    return content && content->attribute == attribute && content->shape.kind == kind &&
           memcmp(content->roots, roots, sizeof content->roots) == 0;
}

/* Everything anew. NULL: it cannot be, or queries need the memory. */
static struct content *begin(uint8_t attribute, uint8_t kind, const uint16_t *roots)
{
    struct summary_value value;
    bool has;
    if ((kind != SUMMARY_INTERVAL && kind != SUMMARY_BLOOM) || !value_of(attribute, &value, &has))
        return NULL;
    struct content *content = app_borrow(BYTES);
    if (!content)
        return NULL;
    content->shape.kind = kind;
    content->attribute = attribute;
    content->value = value;
    content->has = has;
    content->left = KEPT;
    memcpy(content->roots, roots, sizeof content->roots);
    for (uint8_t i = 0; i < CHILDREN; i++)
        content->children[i] = (struct search_child){.mote = FAR_NOBODY, .tree = TREES};
    for (uint8_t tree = 0; tree < TREES; tree++) {
        far_begin(&content->in_trees[tree]);
        if (roots[tree] == settings()->nodeid)
            far_become_root(&content->in_trees[tree], roots[tree]);
    }
    tell_again(content);
    return content;
}

void content_command(uint16_t token, const uint8_t *arguments, uint8_t length)
{
    struct wire_search_command asked;
    if (length != sizeof asked)
        return;
    memcpy(&asked, arguments, sizeof asked);
    uint16_t roots[TREES];
    memcpy(roots, asked.roots, sizeof roots);
    struct content *content = content_state();
    if (!is_same(content, asked.attribute, asked.kind, roots))
        content = begin(asked.attribute, asked.kind, roots);
    if (!content)
        return;
    content->left = KEPT;
    struct summary_ask ask = {{.x = asked.low}, {.x = asked.high}};
    if (asked.seeker != settings()->nodeid || !summary_ask_check(&content->shape, &ask))
        return;
    content->own.ask = ask;
    content->own.token = token;
    content->own.wait = (uint8_t)(asked.wait < UINT8_MAX ? asked.wait + 1 : asked.wait);
}

void content_mote(const struct content *content, struct search_mote *mote, uint16_t *linked)
{
    *mote = (struct search_mote){.mote = settings()->nodeid,
                                 .trees = TREES,
                                 .more = content->more,
                                 .has = content->has,
                                 .value = content->value,
                                 .shape = content->shape,
                                 .in_trees = content->in_trees,
                                 .children = content->children,
                                 .neighbours = linked,
                                 .children_count = CHILDREN};
    if (!linked)
        return;
    for (struct neighbour *n = neighbour_next(NULL); n; n = neighbour_next(n))
        if (place_is_linked(n))
            linked[mote->neighbours_count++] = n->node;
}

/* ---- children ---- */
void content_forget_child(struct content *content, uint8_t place)
{
    content->children[place] = (struct search_child){.mote = FAR_NOBODY, .tree = TREES};
    tell_again(content);
}

static struct search_child *child(struct content *content, uint16_t mote, uint8_t tree)
{
    for (uint8_t i = 0; i < CHILDREN; i++) {
        struct search_child *found = &content->children[i];
        if (found->mote == mote && (mote == FAR_NOBODY || found->tree == tree))
            return found;
    }
    return NULL;
}

/* Whether something has changed. */
static bool take_child(struct content *content, uint16_t mote, uint8_t tree,
                       const struct wire_content_tree *told)
{
    struct search_child *found = child(content, mote, tree);
    if (told->parent != settings()->nodeid) {
        if (found)
            content_forget_child(content, (uint8_t)(found - content->children));
        return false;
    }
    if (found && memcmp(&found->summary, told->summary, SUMMARY_BYTES) == 0)
        return false;
    if (!found)
        found = child(content, FAR_NOBODY, tree);
    if (!found) {
        uint8_t before = content->more;
        content->more = (uint8_t)(content->more | 1U << tree);
        return content->more != before;
    }
    *found = (struct search_child){.mote = mote, .tree = tree, .known = true};
    memcpy(&found->summary, told->summary, SUMMARY_BYTES);
    return true;
}

/* ---- parents ---- */
static bool take_parent(struct content *content, uint16_t mote, uint8_t tree,
                        const struct wire_content_tree *told)
{
    struct far_place *place = &content->in_trees[tree];
    const struct neighbour *link = neighbour_find(mote);
    bool is_parent = mote == place->parent;
    if (is_parent)
        content->silent[tree] = 0;
    if (told->hops + 1 >= SEARCH_PATH) {
        if (is_parent)
            far_begin(place);
        return is_parent;
    }
    if (!is_parent && (told->parent == settings()->nodeid || !link || !place_is_linked(link)))
        return false;
    bool changed = far_hear(place, settings()->nodeid, mote, told->root, told->hops);
    if (changed)
        content->silent[tree] = 0;
    return changed;
}

bool content_heard(uint16_t from, const uint8_t *body, uint8_t length)
{
    const struct wire_content *heard = (const struct wire_content *)body;
    const struct wire_content_tree *told = (const struct wire_content_tree *)heard->trees;
    uint16_t roots[TREES];
    if (length != sizeof *heard + TREES * sizeof *told || heard->left == 0 || from == WIRE_NO_NODE)
        return false;
    for (uint8_t tree = 0; tree < TREES; tree++)
        roots[tree] = told[tree].root;
    if (!tree_joined())
        return true;
    struct content *content = content_state();
    /* A mote that has not heard the command. */
    if (!content && (content = begin(heard->attribute, heard->kind, roots)))
        content->left = heard->left;
    if (!is_same(content, heard->attribute, heard->kind, roots))
        return true;
    bool changed = false;
    for (uint8_t tree = 0; tree < TREES; tree++) {
        changed |= take_child(content, from, tree, &told[tree]);
        changed |= take_parent(content, from, tree, &told[tree]);
    }
    if (changed)
        tell_again(content);
    return true;
}

/* ---- control windows ---- */
void content_window(bool all_awake)
{
    struct content *content = content_state();
    struct summary_value before;
    if (!content)
        return;
    if (--content->left == 0) {
        app_give_back();
        return;
    }
    content->all_awake = all_awake;
    content->told = 0;
    before = content->value;
    bool had = content->has;
    (void)value_of(content->attribute, &content->value, &content->has);
    if (before.x != content->value.x || had != content->has)
        tell_again(content);
    for (uint8_t tree = 0; tree < TREES; tree++)
        if (content->in_trees[tree].parent != FAR_NOBODY &&
            ++content->silent[tree] > PARENT_SILENT) {
            far_begin(&content->in_trees[tree]);
            content->silent[tree] = 0;
            tell_again(content);
        }
    if (content->again == 0 && (content->left + settings()->nodeid) % TOLD_EVERY == 0)
        content->again = 1;
    content->due = all_awake && content->again != 0;
    searches_window(content);
}

bool content_waiting(void)
{
    const struct content *content = content_state();
    return content && (content->due || searches_waiting(content));
}

static void told(enum radio_outcome outcome)
{
    (void)outcome;
    dissemination_sent();
}

bool content_send(void)
{
    struct content *content = content_state();
    if (!content)
        return false;
    if (searches_waiting(content))
        return searches_send(content);
    if (!content->due)
        return false;
    content->due = false;
    content->told++;
    content->again--;
    struct wire_content *frame = mac_begin(&control_frame, WIRE_BROADCAST, WIRE_PACKET_CONTENT);
    *frame = (struct wire_content){content->attribute, content->shape.kind, content->left};
    struct search_mote mote;
    content_mote(content, &mote, NULL);
    struct wire_content_tree *entry = (struct wire_content_tree *)frame->trees;
    for (uint8_t tree = 0; tree < TREES; tree++, entry++) {
        struct summary summary;
        search_tell(&mote, tree, &summary);
        entry->root = content->roots[tree];
        entry->parent = content->in_trees[tree].parent;
        entry->hops = content->in_trees[tree].hops;
        memcpy(entry->summary, &summary, sizeof summary);
    }
    mac_finish(&control_frame, sizeof *frame + TREES * sizeof *entry);
    return mac_send(&control_frame, 1, told);
}
