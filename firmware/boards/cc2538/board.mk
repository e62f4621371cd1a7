# CC2538: what the Makefile needs to know; cc2538.ld says how much flash and RAM there are.
CROSS   := arm-none-eabi-
TARGET  := -mcpu=cortex-m3 -mthumb
# How clang, which only reads the code, finds the same.
CLANG   := --target=arm-none-eabi -isystem /usr/include/newlib
FLAGS   := $(TARGET) -D_POSIX_C_SOURCE=200809L
LINK    := $(TARGET) --specs=nano.specs -nostartfiles -Tboards/cc2538/cc2538.ld
DRIVERS := drivers/cc2538 drivers/analogue_board
STORAGE := storage
