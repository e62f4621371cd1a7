#include "net/routing/ageing.h"

#include "net/routing/beacon_due.h"
#include "net/routing/namesake.h"
#include "net/routing/neighbours.h"
#include "net/routing/parent_choice.h"
#include "net/routing/parent_loss.h"
#include "net/routing/sequence_request.h"
#include "net/routing/tree.h"

void routing_age(void)
{
    neighbours_age();
    namesake_age();
    beacon_due_age();
    /* The mote has given its parent up, and nobody has answered with a number for another. */
    if (!sequence_request_age() && sequence_request_is_for_parent())
        tree_leave();
    tree_age();
    if (tree_is_root())
        return;
    parent_age();
    parent_choice_age();
}
