/* UART0 of the CC2538, 38400 baud from the 32 MHz I/O clock (18.4.1: 52 + 5/64, 0.01 % error), PA0
 * receives, PA1 sends. Without its FIFO, so that each byte interrupts: a lone last byte of a frame
 * must not wait for others. */
#include "drivers/serial.h"

#include "board.h"
#include "drivers/cc2538/registers.h"
#include "kernel/event.h"
#include "kernel/power.h"

void uart0_isr(void);

#define RX_BYTES 128
#define TX_BYTES 64

static volatile uint8_t rx[RX_BYTES], tx[TX_BYTES];
static volatile uint8_t rx_in, rx_out, tx_in, tx_out;
static struct event ready = {.handler = serial_ready};

void serial_init(void)
{
    board_clock_wait();
    SYS_CTRL_RCGCUART = 1;
    SYS_CTRL_SCGCUART = 1;
    IOC_PA_SEL(1) = IOC_SELECT_UART0_TXD;
    IOC_PA_OVER(1) = IOC_OVERRIDE_OUTPUT;
    IOC_UARTRXD_UART0 = 0;
    IOC_PA_OVER(0) = IOC_OVERRIDE_NONE;
    GPIO_AFSEL(GPIO_A) |= 3;
    UART0_CTL = 0;
    UART0_CC = 0;
    UART0_IBRD = 52;
    UART0_FBRD = 5;
    UART0_LCRH = LCRH_8BIT;
    UART0_CTL = CTL_ENABLE;
    UART0_IM = UART_RX;
    NVIC_ISER(IRQ_UART0 / 32) = 1UL << IRQ_UART0 % 32;
    /* A byte may come at any time, and the UART has no clock in power mode 2. */
    power_hold(POWER_UART);
}

/* Feeds the transmitter as far as it takes bytes. Interrupts are off. */
static void pump(void)
{
    while (tx_out != tx_in && !(UART0_FR & FR_TXFF)) {
        UART0_DR = tx[tx_out];
        tx_out = (uint8_t)(tx_out + 1) % TX_BYTES;
        if (tx_out == tx_in)
            event_post(&ready);
    }
}

static bool rx_room(void) { return (uint8_t)(rx_in + 1) % RX_BYTES != rx_out; }

/* Its interrupts: what waits in either direction. A byte that finds no room stays where it is, as a
 * virtual line can wait. */
static void listen(void) { UART0_IM = (rx_room() ? UART_RX : 0) | (tx_out == tx_in ? 0 : UART_TX); }

void uart0_isr(void)
{
    UART0_ICR = UART_RX | UART_TX;
    while (rx_room() && !(UART0_FR & FR_RXFE)) {
        rx[rx_in] = (uint8_t)UART0_DR;
        rx_in = (uint8_t)(rx_in + 1) % RX_BYTES;
        event_post(&ready);
    }
    pump();
    listen();
}

uint8_t serial_room(void) { return (uint8_t)(tx_out - tx_in - 1) % TX_BYTES; }

bool serial_write(uint8_t byte)
{
    uint8_t next = (uint8_t)(tx_in + 1) % TX_BYTES;
    if (next == tx_out)
        return false;
    tx[tx_in] = byte;
    tx_in = next;
    board_interrupts state = board_interrupts_off();
    pump();
    listen();
    board_interrupts_restore(state);
    return true;
}

int16_t serial_read(void)
{
    if (rx_in == rx_out)
        return -1;
    uint8_t byte = rx[rx_out];
    board_interrupts state = board_interrupts_off();
    rx_out = (uint8_t)(rx_out + 1) % RX_BYTES;
    listen();
    board_interrupts_restore(state);
    return byte;
}
