/* In the place of the back-end's own: simavr executes all instructions. */
#include "avr.h"

#include <simavr/sim_core.h>

avr_flashaddr_t execute(skerry_cpu *cpu) { return avr_run_one(cpu->avr); }
