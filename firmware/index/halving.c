#include "index/halving.h"

int32_t zone_middle(const struct zone_field *area, uint8_t bit)
{
    int32_t low = area->left, high = area->right;
    if (bit % 2 != 0) {
        low = area->bottom;
        high = area->top;
    }
    return low + (int32_t)(((uint32_t)high - (uint32_t)low) / 2);
}

void zone_halve(struct zone_field *area, uint8_t bit, bool upper)
{
    int32_t middle = zone_middle(area, bit);
    if (bit % 2 == 0)
        *(upper ? &area->left : &area->right) = middle;
    else
        *(upper ? &area->bottom : &area->top) = middle;
}
