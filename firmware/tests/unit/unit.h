/* Tests of single modules, each in a process of its own: `program` lists them, `program NAME` runs
 * one. */
#ifndef UNIT_H
#define UNIT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of programs that do not test kernel/assert.c itself: a broken invariant fails the test. */
void invariant_broken(unsigned char which) __attribute__((weak, noreturn));
void invariant_broken(unsigned char which)
{
    fprintf(stderr, "invariant %d is broken (enum wire_invariant)\n", which);
    exit(1);
}

struct test {
    const char *name;
    void (*run)(void);
};
#define TEST(name) {#name, name}
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define CHECK_EQUAL(one, other)                                                                    \
    do {                                                                                           \
        long long unit_a = (long long)(one), unit_b = (long long)(other);                          \
        if (unit_a != unit_b) {                                                                    \
            fprintf(stderr, "%s:%d: %s = %lld, %s = %lld\n", __FILE__, __LINE__, #one, unit_a,     \
                    #other, unit_b);                                                               \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define UNIT_MAIN(tests)                                                                           \
    int main(int count, char **arguments)                                                          \
    {                                                                                              \
        for (size_t i = 0; i < sizeof(tests) / sizeof *(tests); i++) {                             \
            if (count == 1)                                                                        \
                puts((tests)[i].name);                                                             \
            else if (!strcmp(arguments[1], (tests)[i].name)) {                                     \
                (tests)[i].run();                                                                  \
                return 0;                                                                          \
            }                                                                                      \
        }                                                                                          \
        return count == 1 ? 0 : 2;                                                                 \
    }

#endif
