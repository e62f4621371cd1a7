#include "drivers/serial.h"

#include "host.h"
#include "kernel/event.h"

uint8_t host_written[256];
uint16_t host_written_length;

static uint8_t line[256], line_in, line_out;

void serial_init(void) {}
uint8_t serial_room(void) { return 63; }
bool serial_write(uint8_t byte)
{
    /* nobody has read it */
    if (host_written_length == sizeof host_written)
        host_written_length = 0;
    host_written[host_written_length++] = byte;
    return true;
}
int16_t serial_read(void) { return line_out == line_in ? -1 : line[line_out++]; }
static struct event ready = {.handler = serial_ready};
void host_serial(const uint8_t *bytes, uint16_t length)
{
    for (uint16_t i = 0; i < length; i++) {
        if ((uint8_t)(line_in + 1) == line_out)
            break;
        line[line_in++] = bytes[i];
    }
    event_post(&ready);
}
