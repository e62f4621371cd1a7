# CC2538: what the Makefile needs to know.
CROSS   := arm-none-eabi-
TARGET  := -mcpu=cortex-m3 -mthumb
FLAGS   := $(TARGET) -D_POSIX_C_SOURCE=200809L
LINK    := $(TARGET) --specs=nano.specs -nostartfiles -Tboards/cc2538/cc2538.ld
DRIVERS := drivers/cc2538 drivers/analogue_board
# With extensions: what the linker script has room for.
FLASH_LIMIT := $(if $(EXTENSIONS),389120,59392)
RAM_LIMIT   := 12288
