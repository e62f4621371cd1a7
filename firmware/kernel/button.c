#include "kernel/button.h"

#include "board.h"
#include "kernel/event.h"
#include "kernel/timer.h"

/* While it is held the pin is looked at so often; a release shorter than this is a bounce. */
#define LOOK CLOCK_MS(100)

static struct timer timer;

static void look(void)
{
    if (board_button_down()) {
        timer_after(&timer, LOOK, look);
        return;
    }
    board_button_watch(true);
    if (board_button_down())
        button_interrupt(); /* just before it was watched */
}

static void down(void)
{
    timer_after(&timer, LOOK, look);
    button_pressed();
}

static struct event interrupt = {.handler = down};

void button_interrupt(void)
{
    board_button_watch(false);
    event_post(&interrupt);
}
