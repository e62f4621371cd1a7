// Looks for an order of functions in which few calls and jumps are too far for their short form: by
// simulated annealing (Kirkpatrick, Gelatt and Vecchi 1983), with whole numbers alone, so that
// every machine finds the same. Reads the program from standard input as numbers (order.py writes
// them) and prints functions by their numbers, in the order found.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGER = 2, RELAY = 4, NEAR_RELAY = 2, SEGMENT = 8, SHIFT = 24, QUARTERS = 4 };

struct site {
    int function, offset, jump;
};

static int functions, targets, sites;
static int reach;  // bytes of a short call or jump
static int beyond; // bytes from the last function to what is not in the program
static int *size, *place, *order, *rank;
static int *tail; // function that one ends with a jump to; -1: none
static int *target_function, *target_offset, *first_site, *cost, *old_cost;
static struct site *site;
static int *touched_from, *touched; // targets that a function is or calls
static int *stamp, *list, listed, now;
static int *neighbour_from, *neighbour; // functions that one calls or is called by
static int whole;                       // bytes of the program
static uint64_t state;

static uint32_t draw(uint32_t bound)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(((state >> 32) * bound) >> 32);
}

// 256 times -log2 of a number drawn between 0 and 1, straight between powers of two.
static int drawn_log(void)
{
    uint32_t u = draw(UINT32_MAX) | 1;
    int zeros = __builtin_clz(u);
    return zeros * 256 + 256 - (int)((((uint64_t)u << zeros) & 0x7FFFFFFF) >> 23);
}

static int *numbers(int count)
{
    int *array = calloc(count > 0 ? count : 1, sizeof *array);
    if (!array)
        exit(1);
    return array;
}

static int number(void)
{
    int value;
    if (scanf("%d", &value) != 1)
        exit(1);
    return value;
}

static int falls_through(int function)
{
    int following = rank[function] + 1;
    return tail[function] >= 0 && following < functions && order[following] == tail[function];
}

struct far {
    int distance, jump;
};

// Bytes for all sites on one side, sorted by distance. What lies within reach of a jump to the same
// target takes no more; a jump that is long, or one made for the purpose (a relay), is one for
// those around it.
static int side(const struct far *far, int count, int lender)
{
    int bytes = 0;
    for (int i = 0; i < count; i++) {
        int distance = far[i].distance;
        if (distance <= lender + reach) {
            if (far[i].jump)
                lender = distance;
            continue;
        }
        int jump = -1, around = 0;
        for (int j = i; j < count && far[j].distance <= distance + 2 * reach; j++) {
            around++;
            if (far[j].jump && far[j].distance <= distance + reach)
                jump = far[j].distance;
        }
        int near = distance <= lender + 2 * reach;
        if (jump >= 0) {
            bytes += LONGER;
            lender = jump;
        } else if (near ? around >= 2 : around >= 3) {
            bytes += near ? NEAR_RELAY : RELAY;
            lender = near && lender < distance ? lender + reach : distance + reach;
        } else {
            bytes += LONGER;
        }
    }
    return bytes;
}

static int cost_of(int target)
{
    static struct far left[4096], right[4096];
    int lefts = 0, rights = 0, left_lender = 0, right_lender = 0;
    int function = target_function[target];
    int home = function < 0 ? whole + beyond : place[function] + target_offset[target];
    for (int i = first_site[target]; i < first_site[target + 1]; i++) {
        const struct site *s = &site[i];
        if (s->jump == 2 && falls_through(s->function))
            continue;
        int distance = home - place[s->function] - s->offset;
        int right_side = distance < 0;
        if (right_side)
            distance = -distance;
        if (distance <= reach) {
            int *lender = right_side ? &right_lender : &left_lender;
            if (s->jump && distance > *lender)
                *lender = distance;
            continue;
        }
        struct far *far = right_side ? right : left;
        int *count = right_side ? &rights : &lefts;
        if (*count == 4096)
            exit(1);
        int j = (*count)++;
        for (; j > 0 && far[j - 1].distance > distance; j--)
            far[j] = far[j - 1];
        far[j] = (struct far){distance, s->jump};
    }
    return side(left, lefts, left_lender) + side(right, rights, right_lender);
}

static void touch(int function)
{
    for (int i = touched_from[function]; i < touched_from[function + 1]; i++)
        if (stamp[touched[i]] != now) {
            stamp[touched[i]] = now;
            list[listed++] = touched[i];
        }
}

static void lay(int from, int until)
{
    int at = from ? place[order[from - 1]] + size[order[from - 1]] : 0;
    for (int i = from; i < until; i++) {
        place[order[i]] = at;
        rank[order[i]] = i;
        at += size[order[i]];
    }
}

static int fallen(int at) { return at >= 0 && falls_through(order[at]) ? LONGER : 0; }

// What lies from a until b goes before c, which lies outside: those in between move up.
static void rotate(int a, int b, int c)
{
    int from = a < c ? a : c, until = a < c ? c : b, turn = a < c ? b - a : until - (b - a) - from;
    static int *copy;
    if (!copy)
        copy = numbers(functions);
    int count = until - from;
    memcpy(copy, order + from, count * sizeof *copy);
    for (int i = 0; i < count; i++)
        order[from + i] = copy[(i + turn) % count];
}

// Bytes of the jumps that are left out at the ends of functions in this part of the order, and of
// the one before it.
static int run_on(int from, int until)
{
    int bytes = 0;
    for (int i = from - 1; i < until; i++)
        bytes += fallen(i);
    return bytes;
}

// Bytes by which the program gets longer.
static int move(int a, int b, int c)
{
    int from = a < c ? a : c, until = a < c ? c : b;
    now++;
    listed = 0;
    int before = run_on(from, until);
    for (int i = from ? from - 1 : 0; i < until; i++)
        touch(order[i]);
    rotate(a, b, c);
    lay(from, until);
    int bytes = before - run_on(from, until);
    for (int i = 0; i < listed; i++) {
        int target = list[i];
        old_cost[target] = cost[target];
        cost[target] = cost_of(target);
        bytes += cost[target] - old_cost[target];
    }
    return bytes;
}

// About the same, from what the moved functions call and are called by alone: what lies between
// moves by little. Most moves are refused by that, in a fraction of the time.
static int estimate(int a, int b, int c)
{
    int begin = place[order[a]], end = place[order[b - 1]] + size[order[b - 1]];
    int there = c < functions ? place[order[c]] : whole;
    int shift = there - (a < c ? end : begin), bytes = 0;
    now++;
    listed = 0;
    for (int i = a; i < b; i++) {
        touch(order[i]);
        place[order[i]] += shift;
    }
    for (int i = 0; i < listed; i++)
        bytes += cost_of(list[i]) - cost[list[i]];
    for (int i = a; i < b; i++)
        place[order[i]] -= shift;
    return bytes;
}

static void undo(int a, int b, int c)
{
    int from = a < c ? a : c, until = a < c ? c : b;
    if (a < c)
        rotate(c - (b - a), c, a);
    else
        rotate(c, c + (b - a), b);
    lay(from, until);
    for (int i = 0; i < listed; i++)
        cost[list[i]] = old_cost[list[i]];
}

// Pairs (key, value) as lists of values by key, each value once.
static void group(int count, int (*pairs)[2], int keys, int **from, int **values)
{
    *from = numbers(keys + 2);
    *values = numbers(count);
    for (int i = 0; i < count; i++)
        (*from)[pairs[i][0] + 1]++;
    for (int i = 0; i < keys; i++)
        (*from)[i + 1] += (*from)[i];
    int *next = numbers(keys + 1);
    memcpy(next, *from, keys * sizeof *next);
    for (int i = 0; i < count; i++)
        (*values)[next[pairs[i][0]]++] = pairs[i][1];
    free(next);
}

int main(void)
{
    functions = number(), targets = number(), sites = number();
    reach = number(), beyond = number();
    int moves = number(), heat = number(); // heat in quarters of bytes, at the beginning
    state = 0x9E3779B97F4A7C15u ^ ((uint64_t)number() << 20);
    size = numbers(functions), place = numbers(functions), order = numbers(functions),
    rank = numbers(functions);
    tail = numbers(functions);
    target_function = numbers(targets), target_offset = numbers(targets),
    first_site = numbers(targets + 1);
    cost = numbers(targets), old_cost = numbers(targets), stamp = numbers(targets),
    list = numbers(targets);
    for (int i = 0; i < functions; i++) {
        size[i] = number();
        tail[i] = number();
        order[i] = i;
        whole += size[i];
    }
    site = calloc(sites + 1, sizeof *site);
    int (*of)[2] = calloc(sites + targets + 1, sizeof *of),
        (*both)[2] = calloc(2 * sites + 1, sizeof *both);
    if (!site || !of || !both)
        return 1;
    int pairs = 0, links = 0, read = 0;
    for (int i = 0; i < targets; i++) {
        target_function[i] = number(), target_offset[i] = number();
        int count = number();
        first_site[i] = read;
        if (target_function[i] >= 0)
            of[pairs][0] = target_function[i], of[pairs++][1] = i;
        for (int j = 0; j < count; j++) {
            struct site *s = &site[read++];
            s->function = number(), s->offset = number(), s->jump = number();
            of[pairs][0] = s->function, of[pairs++][1] = i;
            if (target_function[i] >= 0 && target_function[i] != s->function) {
                both[links][0] = s->function, both[links++][1] = target_function[i];
                both[links][0] = target_function[i], both[links++][1] = s->function;
            }
        }
    }
    first_site[targets] = read;
    group(pairs, of, functions, &touched_from, &touched);
    group(links, both, functions, &neighbour_from, &neighbour);
    lay(0, functions);
    long total = 0, best = 0;
    for (int i = 0; i < targets; i++)
        total += cost[i] = cost_of(i);
    for (int i = 0; i < functions; i++)
        total -= fallen(i);
    best = total;
    int *kept = numbers(functions);
    memcpy(kept, order, functions * sizeof *kept);
    for (int turn = 0; turn < moves && functions > 2; turn++) {
        int f = draw(functions), a = rank[f], kind = draw(16), c;
        int length = draw(4) ? 1 : 1 + draw(SEGMENT);
        if (kind < 11) {
            int count = neighbour_from[f + 1] - neighbour_from[f];
            if (!count)
                continue;
            c = rank[neighbour[neighbour_from[f] + draw(count)]] + draw(2);
        } else if (kind < 12) {
            if (tail[f] < 0)
                continue;
            c = rank[tail[f]];
            length = 1 + draw(2);
            a -= length - 1;
            if (a < 0)
                continue;
        } else {
            c = a + (int)draw(2 * SHIFT + 1) - SHIFT;
        }
        int b = a + length;
        if (b > functions || c < 0 || c > functions || (c >= a && c <= b))
            continue;
        // The heat falls evenly, and a move by d bytes is taken with a chance of exp(-d / heat): ln
        // 2 / 256 is one 369th.
        int most =
            (int)((int64_t)drawn_log() * heat * (moves - turn) / ((int64_t)369 * QUARTERS * moves));
        if (estimate(a, b, c) > most)
            continue;
        int bytes = move(a, b, c);
        if (bytes > most) {
            undo(a, b, c);
        } else {
            total += bytes;
            if (total < best) {
                best = total;
                memcpy(kept, order, functions * sizeof *kept);
            }
        }
    }
    for (int i = 0; i < functions; i++)
        printf("%d\n", kept[i]);
    return 0;
}
