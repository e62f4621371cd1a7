/* Tuples among the codes of zones: an attribute's range is halved as the field is, one attribute
 * after the other. */
#ifndef SKERRY_INDEX_POINT_H
#define SKERRY_INDEX_POINT_H

#include <stdint.h>

#define INDEX_ATTRIBUTES 6
/* A value as a point of its attribute's range: 0 to 65534. What lies beyond the range has the point
 * at its edge; NULL has one for its own, behind all values. */
#define INDEX_LAST 65534U
#define INDEX_NULL 65535U

/* From the least value to the greatest, both of the range. */
struct index_range {
    int32_t low, high;
};

/* A greater value never has a lesser point. The range's high is not below its low. */
uint16_t index_point(const struct index_range *range, int32_t value);
/* Code of a tuple by its points, one for each attribute. */
uint32_t index_code(const uint16_t *points, uint8_t attributes);

#endif
