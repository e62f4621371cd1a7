# IRIS: what the Makefile needs to know.
CROSS   := avr-
TARGET  := -mmcu=atmega1281
# How clang, which only reads the code, finds the same.
CLANG   := --target=avr -isystem /usr/lib/avr/include
# Tables that the compiler makes of switches would lie in RAM: 94 bytes less of it, for 26 of flash.
# -Waddr-space-convert: a pointer to flash does not silently become one to RAM, as memcpy takes.
# What clang does not know. Functions save and restore registers by one routine of libgcc's: 8,000 bytes of flash less.
OF_GCC  := -mstrict-X -mcall-prologues
# Values that gcc moves out of loops take registers, of which there are too few, and an address in X that is not of an access to it has to
# be put right after each: without both 1,700 bytes of flash less.
FLAGS   := $(TARGET) -DF_CPU=8000000UL -fno-tree-switch-conversion -Waddr-space-convert -fno-move-loop-invariants $(OF_GCC)
# Bytes of flash, and of RAM with the stack (docs/firmware.md has the ledger). With extensions: all of the chip's flash but its boot
# section, and the RAM that is reserved.
FLASH   := $(if $(EXTENSIONS),122880,118784)
RAM     := $(if $(EXTENSIONS),7680,7330)
LINK    := $(TARGET) -Wl,--defsym=__TEXT_REGION_LENGTH__=$(FLASH) -Wl,--defsym=__DATA_REGION_LENGTH__=$(RAM)
DRIVERS := drivers/avr drivers/rf230 drivers/digital_board
