/* What tests of the storage call: see cut.c. */
#ifndef SKERRY_TESTS_STORAGE_CUT_H
#define SKERRY_TESTS_STORAGE_CUT_H

#include <stdbool.h>
#include <stdint.h>

struct tuple;
struct rowstore_ring;

/* Erasures of each page; writes to words that were not erased; words written and pages erased. */
extern uint32_t cut_erasures[], cut_faults, cut_steps;

void cut_begin(uint8_t pages, uint32_t seed);
void cut_save(void *bytes);
void cut_restore(const void *bytes);
int cut_open(long after);
int cut_tidy(long after);
int cut_append(uint16_t index, const struct tuple *tuple, long after);
int cut_drop(uint16_t index, long after);
int cut_row(const struct rowstore_ring *ring, uint16_t place, const void *bytes, long after);
bool cut_fill(uint16_t index, uint32_t from, uint32_t until);
uint32_t cut_bytes(void);

#endif
