"""What a mote keeps in EEPROM or flash."""

from __future__ import annotations

from construct import Array, Default, Int8ul, Int16sl, Int16ul, Int32sl, Int32ul, Struct

from skerry_protocol.attributes import STATICS_MAXIMUM

#: Everything that EEPROM (AVR) or flash (ARM) keeps. Written by ``skerry-settings`` and the testbed.
Settings = Struct(
    "magic" / Int16ul * "0x5359; anything else: unset, defaults apply",
    "nodeid" / Int16ul * "short address, 0..65534",
    "pan" / Int16ul * "PAN id",
    "channel" / Int8ul * "802.15.4 channel, 11..26",
    "root" / Int8ul * "1: this mote is the root and speaks on its UART",
    "x" / Int32sl * "position, cm",
    "y" / Int32sl * "position, cm",
    "boots" / Int16ul * "boot count, raised by the firmware at each start",
    "session" / Int16ul * "name of its session as the root, raised at each start; 0: to be drawn at random",
    "factory" / Int32ul * "factory number, where the chip has none; 0: to be drawn at random",
    "room" / Int16ul * "constants of the deployment, set by commands",
    "floor" / Int16sl,
    "group" / Int16ul,
    "channels" / Int16ul * "bit n: data slots hop over channel 11 + n, too; 0: all is sent on `channel`",
    "statics"
    / Default(Array(STATICS_MAXIMUM, Int16ul), [0] * STATICS_MAXIMUM)
    * "users' static attributes, set by commands: 32768 more than the value; 0: NULL",
)

SETTINGS_MAGIC = 0x5359
