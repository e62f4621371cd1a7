# IRIS: what the Makefile needs to know.
CROSS   := avr-
TARGET  := -mmcu=atmega1281
# Shared prologues: 3.5 KB less flash for some 20 cycles a call. Switches as code: tables of constants would lie in RAM (70 B).
# The others save 1.6 KB of flash. No caller may know which registers a function leaves alone: its prologue, as a call, takes Z.
FLAGS   := $(TARGET) -DF_CPU=8000000UL -mcall-prologues -fno-tree-switch-conversion -mstrict-X -fno-move-loop-invariants \
           -fno-inline-small-functions -fshort-enums -fira-algorithm=priority -fno-tree-loop-im -fno-tree-dominator-opts -fno-rerun-cse-after-loop \
           -fno-tree-pre -fno-tree-tail-merge -fno-tree-scev-cprop -fno-ssa-phiopt -fno-ipa-ra
LINK    := $(TARGET) -mrelax
# The whole program in one file, smaller (tools/shrink), but for what is counted in cycles, and what every wake and every frame goes through.
SHRINK  := yes
UNTOUCHED := boards/iris drivers/avr drivers/rf230 kernel net/mac query/vm query/fast query/row query/program query/slots
DRIVERS := drivers/avr drivers/rf230 drivers/digital_board
# Limits of the image: bytes of flash; of static RAM and worst-case stack together.
# With extensions: all of the chip but its boot section.
FLASH_LIMIT := $(if $(EXTENSIONS),122880,59392)
RAM_LIMIT   := 7680
