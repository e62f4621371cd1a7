/* UART0 of the ATmega1281, 38400 baud at double speed (2549Q table 22-12: 0.2 % error at 8 MHz). */
#include "drivers/serial.h"

#include <avr/interrupt.h>
#include <avr/io.h>

#include "kernel/event.h"
#include "kernel/power.h"

#define RX_BYTES 128
#define TX_BYTES 64

static volatile uint8_t rx[RX_BYTES], tx[TX_BYTES];
static volatile uint8_t rx_in, rx_out, tx_in, tx_out;
static struct event ready = {.handler = serial_ready};

void serial_init(void)
{
    UCSR0A = _BV(U2X0);
    UBRR0 = F_CPU / 8 / 38400 - 1;
    UCSR0C = _BV(UCSZ01) | _BV(UCSZ00);
    UCSR0B = _BV(RXEN0) | _BV(TXEN0) | _BV(RXCIE0);
    /* A byte may come at any time, and the UART has no clock in power-save. */
    power_hold(POWER_UART);
}

ISR(USART0_RX_vect)
{
    uint8_t byte = UDR0;
    uint8_t next = (uint8_t)(rx_in + 1) % RX_BYTES;
    if (next != rx_out) {
        rx[rx_in] = byte;
        rx_in = next;
    }
    event_post(&ready);
}

ISR(USART0_UDRE_vect)
{
    if (tx_out == tx_in) {
        UCSR0B &= (uint8_t)~_BV(UDRIE0);
        return;
    }
    UDR0 = tx[tx_out];
    tx_out = (uint8_t)(tx_out + 1) % TX_BYTES;
    if (tx_out == tx_in)
        event_post(&ready);
}

uint8_t serial_room(void) { return (uint8_t)(tx_out - tx_in - 1) % TX_BYTES; }

bool serial_write(uint8_t byte)
{
    uint8_t next = (uint8_t)(tx_in + 1) % TX_BYTES;
    if (next == tx_out)
        return false;
    tx[tx_in] = byte;
    tx_in = next;
    UCSR0B |= _BV(UDRIE0);
    return true;
}

int16_t serial_read(void)
{
    if (rx_in == rx_out)
        return -1;
    uint8_t byte = rx[rx_out];
    rx_out = (uint8_t)(rx_out + 1) % RX_BYTES;
    return byte;
}
