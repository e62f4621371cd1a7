/* CC2538: the registers this firmware uses, by the names of the user's guide (SWRU319C). All are
 * 32-bit words on the bus, also where only eight bits mean something. What exists is also what the
 * testbed models and what testbed/renode/ describes. */
#ifndef SKERRY_CC2538_REGISTERS_H
#define SKERRY_CC2538_REGISTERS_H

#include <stdint.h>

#define REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))

/* Cortex-M3 (ARM DDI 0403): SysTick, NVIC, system control. */
#define SYST_CSR REGISTER(0xE000E010)
#define SYST_RVR REGISTER(0xE000E014)
#define SYST_CVR REGISTER(0xE000E018)
#define NVIC_ISER(n) REGISTER(0xE000E100 + 4 * (n))
#define SCB_VTOR REGISTER(0xE000ED08)
#define SCB_AIRCR REGISTER(0xE000ED0C)
#define SCB_SCR REGISTER(0xE000ED10)
enum { SCR_SLEEPDEEP = 1 << 2 };
#define AIRCR_RESET 0x05FA0004UL

/* Interrupt numbers, regular map (table 5-2). */
enum { IRQ_GPIO_A = 0, IRQ_UART0 = 5, IRQ_RF = 141, IRQ_SLEEP_TIMER = 145, IRQ_COUNT = 163 };

/* Clocks and power modes (chapter 7). */
#define SYS_CTRL_CLOCK_CTRL REGISTER(0x400D2000)
#define SYS_CTRL_CLOCK_STA REGISTER(0x400D2004)
#define SYS_CTRL_RCGCUART REGISTER(0x400D2028)
#define SYS_CTRL_SCGCUART REGISTER(0x400D202C)
#define SYS_CTRL_PMCTL REGISTER(0x400D2058)
#define SYS_CTRL_IWE REGISTER(0x400D2094)
#define SYS_CTRL_RCGCRFC REGISTER(0x400D20A8)
#define SYS_CTRL_SCGCRFC REGISTER(0x400D20AC)
/* 32 kHz from the crystal; system clock and I/O clock 32 MHz, from the crystal or half of it from
 * the RC oscillator. */
#define CLOCK_CRYSTAL 0x00000000UL
#define CLOCK_RC 0x00010000UL
#define CLOCK_STA_RC 0x00010000UL
#define IWE_SLEEP_TIMER 0x20UL
#define IWE_PORT_A 0x01UL
enum { POWER_MODE_0 = 0, POWER_MODE_2 = 2 };

/* Sleep timer (chapter 12): reading ST0 latches the other three, writing it loads the compare
 * value. */
#define SMWDTHROSC_ST0 REGISTER(0x400D5040)
#define SMWDTHROSC_ST1 REGISTER(0x400D5044)
#define SMWDTHROSC_ST2 REGISTER(0x400D5048)
#define SMWDTHROSC_ST3 REGISTER(0x400D504C)
#define SMWDTHROSC_STLOAD REGISTER(0x400D5050)
enum { STLOAD_READY = 1 };

/* Pads and pins (chapter 9). */
#define IOC_PA_SEL(pin) REGISTER(0x400D4000 + 4 * (pin))
#define IOC_PA_OVER(pin) REGISTER(0x400D4080 + 4 * (pin))
#define IOC_UARTRXD_UART0 REGISTER(0x400D4100)
enum {
    IOC_SELECT_UART0_TXD = 0,
    IOC_OVERRIDE_ANALOGUE = 4,
    IOC_OVERRIDE_OUTPUT = 8,
    IOC_OVERRIDE_NONE = 0
};
#define GPIO_A 0x400D9000UL
#define GPIO_C 0x400DB000UL
/* Only the pins in `mask` are read or written. */
#define GPIO_DATA(port, mask) REGISTER((port) + ((mask) << 2))
#define GPIO_DIR(port) REGISTER((port) + 0x400)
#define GPIO_IS(port) REGISTER((port) + 0x404)
#define GPIO_IEV(port) REGISTER((port) + 0x40C)
#define GPIO_IE(port) REGISTER((port) + 0x410)
#define GPIO_AFSEL(port) REGISTER((port) + 0x420)
#define GPIO_P_EDGE_CTRL(port) REGISTER((port) + 0x700)
#define GPIO_PI_IEN(port) REGISTER((port) + 0x710)
#define GPIO_IRQ_DETECT_ACK(port) REGISTER((port) + 0x718)
#define IOC_PA3_OVER REGISTER(0x400D408C)
#define IOC_PULL_UP 4UL

/* UART0, a PL011 (chapter 18). */
#define UART0_DR REGISTER(0x4000C000)
#define UART0_FR REGISTER(0x4000C018)
#define UART0_IBRD REGISTER(0x4000C024)
#define UART0_FBRD REGISTER(0x4000C028)
#define UART0_LCRH REGISTER(0x4000C02C)
#define UART0_CTL REGISTER(0x4000C030)
#define UART0_IM REGISTER(0x4000C038)
#define UART0_MIS REGISTER(0x4000C040)
#define UART0_ICR REGISTER(0x4000C044)
#define UART0_CC REGISTER(0x4000CFC8)
enum {
    FR_RXFE = 1 << 4,
    FR_TXFF = 1 << 5,
    LCRH_8BIT = 3 << 5,
    CTL_ENABLE = 0x301,
    UART_RX = 1 << 4,
    UART_TX = 1 << 5
};

/* Flash controller (chapter 8). */
#define FLASH_CTRL_FCTL REGISTER(0x400D3008)
#define FLASH_CTRL_FADDR REGISTER(0x400D300C)
#define FLASH_CTRL_FWDATA REGISTER(0x400D3010)
enum { FCTL_ERASE = 1 << 0, FCTL_WRITE = 1 << 1, FCTL_BUSY = 1 << 7 };
/* Information page: the IEEE address in two words, whose order TI's own programs take either way.
 */
#define IEEE_ADDRESS_A REGISTER(0x00280028)
#define IEEE_ADDRESS_B REGISTER(0x0028002C)
#define FLASH_BASE 0x00200000U
#define FLASH_PAGE 2048U

/* ADC (chapter 15): writing ADCCON3 starts one conversion. */
#define SOC_ADC_ADCCON1 REGISTER(0x400D7000)
#define SOC_ADC_ADCCON3 REGISTER(0x400D7008)
#define SOC_ADC_ADCL REGISTER(0x400D700C)
#define SOC_ADC_ADCH REGISTER(0x400D7010)
enum {
    ADCCON1_DONE = 1 << 7,
    ADCCON3_INTERNAL = 0 << 6,
    ADCCON3_SUPPLY = 2 << 6,
    ADCCON3_512 = 3 << 4,
    ADC_SUPPLY_THIRD = 15
};

/* RF core (chapter 23). */
#define RFCORE_FFSM_PAN_ID0 REGISTER(0x400885C8)
#define RFCORE_FFSM_PAN_ID1 REGISTER(0x400885CC)
#define RFCORE_FFSM_SHORT_ADDR0 REGISTER(0x400885D0)
#define RFCORE_FFSM_SHORT_ADDR1 REGISTER(0x400885D4)
#define RFCORE_XREG_FRMFILT0 REGISTER(0x40088600)
#define RFCORE_XREG_FRMFILT1 REGISTER(0x40088604)
#define RFCORE_XREG_SRCMATCH REGISTER(0x40088608)
#define RFCORE_XREG_FRMCTRL0 REGISTER(0x40088624)
#define RFCORE_XREG_FREQCTRL REGISTER(0x4008863C)
#define RFCORE_XREG_TXPOWER REGISTER(0x40088640)
#define RFCORE_XREG_FSMSTAT1 REGISTER(0x4008864C)
#define RFCORE_XREG_FIFOPCTRL REGISTER(0x40088650)
#define RFCORE_XREG_CCACTRL0 REGISTER(0x40088658)
#define RFCORE_XREG_RSSISTAT REGISTER(0x40088664)
#define RFCORE_XREG_RFIRQM0 REGISTER(0x4008868C)
#define RFCORE_XREG_RFIRQM1 REGISTER(0x40088690)
#define RFCORE_XREG_FSCAL1 REGISTER(0x400886B8)
#define RFCORE_XREG_AGCCTRL1 REGISTER(0x400886C8)
#define RFCORE_XREG_TXFILTCFG REGISTER(0x400887E8)
#define RFCORE_SFR_RFDATA REGISTER(0x40088828)
#define RFCORE_SFR_RFIRQF1 REGISTER(0x40088830)
#define RFCORE_SFR_RFIRQF0 REGISTER(0x40088834)
#define RFCORE_SFR_RFST REGISTER(0x40088838)
#define ANA_REGS_IVCTRL REGISTER(0x400D6004)
enum {
    FRMFILT0_ENABLE = 1 << 0,
    FRMFILT0_VERSIONS = 1 << 2,
    FRMFILT1_DATA = 1 << 4,
    FRMFILT1_ACK = 1 << 5
};
enum { FRMCTRL0_AUTOACK = 1 << 5, FRMCTRL0_AUTOCRC = 1 << 6 };
enum {
    FSMSTAT1_TX = 1 << 1,
    FSMSTAT1_CLEAR = 1 << 4,
    FSMSTAT1_SFD = 1 << 5,
    FSMSTAT1_FIFOP = 1 << 6,
    FSMSTAT1_FIFO = 1 << 7
};
enum { IRQ0_SFD = 1 << 1, IRQ0_RXPKTDONE = 1 << 6, IRQ1_TXDONE = 1 << 1 };
/* Strobes (table 23-5). RF_OFF_PROGRAM is what Renode, after Contiki, takes for the off strobe: the
 * silicon appends it to the command strobe processor's program, which is never started here. */
enum {
    ISRXON = 0xE3,
    ISTXON = 0xE9,
    ISFLUSHRX = 0xED,
    ISFLUSHTX = 0xEE,
    ISRFOFF = 0xEF,
    RF_OFF_PROGRAM = 0xDF
};

#endif
