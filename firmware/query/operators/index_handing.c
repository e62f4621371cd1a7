/* When tuples are given and taken whose zone has changed hands. */
#include "board.h"
#include "net/app.h"

#ifdef BOARD_TUPLES

#include "query/operators/gather_answer.h"
#include "query/operators/index_answer.h"
#include "query/operators/index_giving.h"
#include "query/operators/index_taking.h"

void app_handing_due(void)
{
    index_giving_due(index_answers() || gather_answers());
    index_taking_due();
}

#endif
