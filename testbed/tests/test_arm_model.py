"""The emulated CC2538 itself, by small programs: exceptions, time, sleep, faults, and what it does not know."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from skerry_testbed.built import PROJECT
from skerry_testbed.core import World

Run = Callable[..., tuple[World, bytes]]
PRELUDE = Path(__file__).parent / "arm" / "prelude.h"
VECTORS = PRELUDE.with_name("vectors.c")

pytestmark = pytest.mark.skipif(
    not shutil.which("arm-none-eabi-gcc"), reason="arm-none-eabi-gcc is not installed"
)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """``run(c_source, seconds)``: one mote runs the program; the world, and the bytes of its UART."""

    def compile_and_run(source: str, duration_s: float = 0.1) -> tuple[World, bytes]:
        (tmp_path / "program.c").write_text(f'#include "{PRELUDE}"\n{source}')
        elf = tmp_path / "program.elf"
        script = PROJECT / "firmware" / "boards" / "cc2538" / "cc2538.ld"
        command = [
            "arm-none-eabi-gcc",
            "-mcpu=cortex-m3",
            "-mthumb",
            "-O1",
            "-ffreestanding",
            "-nostdlib",
            "-Wall",
            "-Werror",
        ]
        subprocess.run(
            [*command, "-I", str(PROJECT / "firmware"), f"-T{script}", "-Wl,-e,start", "-o", str(elf), str(tmp_path / "program.c"),
             str(VECTORS)], check=True,
        )  # fmt: skip
        world = World(seed=1)
        world.add_mote(1, "cc2538", elf, b"", clock_ppm=0.0, supply_mv=3000, boot_ns=0)
        world.run(round(duration_s * 1e9))
        return world, world.uart_read(0)

    return compile_and_run


def test_an_unknown_register_is_reported_once_with_its_address_and_place(run: Run) -> None:
    world, said = run(
        "void start(void) { for (int i = 0; i < 3; i++) say((uint8_t)REGISTER(0x40030004)); REGISTER(0x400D2060) = 7; for (;;) WFI(); }"
    )
    assert said == b"\0\0\0"
    read, written = world.messages()
    assert read.startswith("mote 1 at 0.0")
    assert "register 0x40030004 is not in the model, read in the block at 0x0021" in read
    assert "register 0x400d2060 is not in the model, written" in written
    assert not world.fault(0)


def test_radio_flags_cleared_as_only_one_chip_model_takes_it_stop_the_mote(run: Run) -> None:
    world, _ = run("void start(void) { RFCORE_SFR_RFIRQF0 = ~2UL; for (;;) WFI(); }")
    assert "radio register 0x40088834 written against its rules" in world.fault(0)


def test_interrupts_run_by_priority_and_one_of_higher_priority_cuts_in(run: Run) -> None:
    _, said = run("""
        static volatile uint32_t count; static volatile uint8_t notes[32];
        static void note(uint8_t byte) { notes[count++] = byte; }
        void irq_a(void) { note('a'); PEND(IRQ_B); note('A'); }
        void irq_b(void) { note('b'); }
        void start(void) {
            count = 0;
            ENABLE(IRQ_A); ENABLE(IRQ_B);
            PRIORITY(IRQ_A, 0x40); PRIORITY(IRQ_B, 0x20);
            PEND(IRQ_A); note('-');
            PRIORITY(IRQ_B, 0x60);
            PEND(IRQ_A); note('-');
            INTERRUPTS_OFF(); PEND(IRQ_B); PEND(IRQ_A); note('.'); INTERRUPTS_ON(); note('-');
            for (uint32_t i = 0; i < count; i++) say(notes[i]);
            for (;;) WFI();
        }""")
    assert said == b"abA-aAb-.aAb-"


def test_registers_survive_an_interrupt(run: Run) -> None:
    _, said = run("""
        void irq_a(void) {
            __asm__ volatile("mov r0, #0\\nmov r1, #0\\nmov r2, #0\\nmov r3, #0\\nmov r12, r0\\ncmp r0, r0"
                             ::: "r0", "r1", "r2", "r3", "r12", "cc");
        }
        void start(void) {
            uint32_t sum;
            ENABLE(IRQ_A);
            __asm__ volatile(
                "mov r0, #1\\nmov r1, #2\\nmov r2, #3\\nmov r3, #4\\nmov r12, r3\\nsub sp, #4\\ncmp r0, #9\\n"
                "str %2, [%1]\\nnop\\nnop\\nb 1f\\n1: add sp, #4\\n"
                "ite ne\\naddne r0, r0, #100\\nmoveq r0, #0\\nadd r0, r1\\nadd r0, r2\\nadd r0, r3\\nadd r0, r12\\nmov %0, r0"
                : "=r"(sum) : "r"(0xE000E200 + 4 * (IRQ_A / 32)), "r"(1UL << IRQ_A % 32) : "r0", "r1", "r2", "r3", "r12", "cc", "memory");
            say_number(sum);
            for (;;) WFI();
        }""")
    assert struct.unpack("<I", said) == (101 + 2 + 3 + 4 + 4,)


def test_three_instructions_take_125_ns(run: Run) -> None:
    """24 MIPS: a loop of two instructions, 1,200,000 times, takes 0.1 s of the crystal's 32,768 Hz."""
    _, said = run(
        """
        void start(void) {
            uint32_t before = ticks();
            __asm__ volatile("ldr r0, =1200000\\n1: subs r0, #1\\nbne 1b" ::: "r0", "cc");
            say_number(ticks() - before);
            for (;;) WFI();
        }""",
        0.3,
    )
    assert struct.unpack("<I", said)[0] == pytest.approx(3277, abs=1)


def test_code_in_ram_may_change(run: Run) -> None:
    """Whoever writes it: also from the same page of RAM, and after it has run."""
    _, said = run(
        """
        static volatile uint16_t code[2];
        void start(void) {
            for (uint16_t round = 1; round < 4; round++) {
                code[0] = 0x2000 | round; /* MOVS r0, #round */
                code[1] = 0x4770; /* BX lr */
                say((uint8_t)((uint32_t(*)(void))((uintptr_t)code | 1))());
            }
            for (;;) WFI();
        }"""
    )
    assert said == b"\1\2\3"


@pytest.mark.parametrize("patience", [10000, 100, 1])
def test_a_wait_for_the_crystal_passes_as_if_it_went_round_by_round(
    run: Run, tmp_path: Path, patience: int
) -> None:
    """Under a debugger it does: rounds left, flags and time are the same, whether the crystal or the patience ends it."""
    world, said = run(
        f"#define PATIENCE {patience}"
        """
        void start(void) {
            uint32_t left = PATIENCE, seen, flags;
            SYST_RVR = 0xFFFFFF; SYST_CVR = 0; SYST_CSR = 5;
            SYS_CTRL_CLOCK_CTRL = CLOCK_CRYSTAL;
            __asm__ volatile("1: ldr %1, [%3, #4]\\nlsls %1, %1, #15\\nbpl 2f\\nsubs %0, #1\\nbne 1b\\n2: mrs %2, apsr"
                : "+l"(left), "=&l"(seen), "=r"(flags) : "l"(0x400D2000) : "cc");
            uint32_t at = SYST_CVR;
            say_number(left); say_number(seen); say_number(flags); say_number(at);
            for (;;) WFI();
        }"""
    )
    stepped = World(seed=1)
    stepped.add_mote(1, "cc2538", tmp_path / "program.elf", b"", clock_ppm=0.0, supply_mv=3000, boot_ns=0)
    stepped.on_stop(lambda *_: None)
    stepped.debug(0)
    stepped.run(world.now_ns)
    assert said == stepped.uart_read(0)
    assert world.energy(0) == stepped.energy(0)
    left, seen, *_ = struct.unpack("<4I", said)
    assert (left == 0, seen >> 31) == ((True, 1) if patience < 1000 else (False, 0))


def test_systick_counts_cycles_of_32_mhz(run: Run) -> None:
    _, said = run(
        """
        static volatile uint32_t count;
        void systick(void) { count++; }
        void start(void) {
            count = 0; SYST_RVR = 31999; SYST_CVR = 0; SYST_CSR = 7;
            uint32_t before = ticks();
            while (ticks() - before < 3277) WFI();
            say_number(count);
            for (;;) { SYST_CSR = 0; WFI(); }
        }""",
        0.3,
    )
    assert struct.unpack("<I", said)[0] in (100, 101)


def test_sleep_ends_with_the_sleep_timer_also_with_interrupts_off(run: Run) -> None:
    world, said = run(
        """
        void sleep_timer(void) { say('t'); }
        void start(void) {
            ENABLE(IRQ_SLEEP_TIMER); INTERRUPTS_OFF();
            SMWDTHROSC_ST3 = 0; SMWDTHROSC_ST2 = 0; SMWDTHROSC_ST1 = 0x40; SMWDTHROSC_ST0 = 0;
            WFI();
            say_number(ticks());
            INTERRUPTS_ON();
            say('.');
            for (;;) WFI();
        }""",
        1.0,
    )
    assert said[4:] == b"t."
    assert struct.unpack("<I", said[:4])[0] == pytest.approx(0x4000, abs=1)
    assert world.energy(0)["cpu_idle_s"] > 0.99


def test_the_first_wfi_after_an_interrupt_is_one_to_sleep_at(run: Run) -> None:
    _, said = run("""
        static volatile uint32_t count, woken;
        void systick(void) { count++; }
        void start(void) {
            count = woken = 0; SYST_RVR = 31999; SYST_CVR = 0; SYST_CSR = 7;
            while (count < 10) { WFI(); woken++; }
            say_number(woken);
            for (;;) { SYST_CSR = 0; WFI(); }
        }""")
    assert struct.unpack("<I", said) == (10,)


def test_a_bad_access_is_a_hard_fault_and_one_more_in_its_handler_locks_the_cpu_up(run: Run) -> None:
    world, said = run("""
        void hard_fault(void) { say('f'); REGISTER(0x60000000) = 1; for (;;) {} }
        void start(void) { REGISTER(0x60000000) = 1; for (;;) WFI(); }""")
    assert said == b"f"
    assert world.fault(0).startswith("locked up in a hard fault: ")
    assert not world.alive(0)


@pytest.mark.parametrize(
    "what", ["REGISTER(0x00200000) = 0", '__asm__ volatile("svc #1")', "((void (*)(void))0x10000001)()"]
)
def test_what_the_chip_forbids_is_a_hard_fault(run: Run, what: str) -> None:
    world, said = run(f"""
        void hard_fault(void) {{ say('f'); for (;;) WFI(); }}
        void start(void) {{ {what}; say('!'); for (;;) WFI(); }}""")
    assert said == b"f"
    assert not world.fault(0)


def test_a_commanded_reset_starts_anew_and_keeps_the_ram(run: Run) -> None:
    world, said = run("""
        static volatile uint32_t seen __attribute__((section(".noinit")));
        void start(void) {
            if (seen != 0x5EEDUL) { seen = 0x5EEDUL; say('1'); SCB_AIRCR = AIRCR_RESET; }
            say('2');
            for (;;) WFI();
        }""")
    assert said == b"12"
    assert world.counters(0)["resets"] == 1


FLASH = """
    static void word(uint32_t at, uint32_t value) {
        FLASH_CTRL_FADDR = at / 4; FLASH_CTRL_FCTL |= FCTL_WRITE; FLASH_CTRL_FWDATA = value; FLASH_CTRL_FCTL &= ~2UL;
    }
    __attribute__((unused)) static void erase(uint32_t at) { FLASH_CTRL_FADDR = at / 4; FLASH_CTRL_FCTL |= FCTL_ERASE; }
"""


def test_flash_is_written_word_by_word_erased_by_pages_and_kept_without_power(run: Run) -> None:
    world, said = run(f"""{FLASH}
        void start(void) {{
            uint32_t at = 0x7E804;
            if (REGISTER(FLASH_BASE + at) == 0xFFFFFFFF) {{ word(at, 0x0F00FF00); word(0x7F000, 0); }}
            else {{ erase(0x7F7FC); }}
            say_number(REGISTER(FLASH_BASE + at)); say_number(REGISTER(FLASH_BASE + 0x7F000));
            for (;;) WFI();
        }}""")
    assert struct.unpack("<II", said) == (0x0F00FF00, 0)
    assert sum(world.erasures(0)) == 0
    world.reboot(0)
    world.run(round(0.3e9))
    assert struct.unpack("<II", world.uart_read(0)) == (0x0F00FF00, 0xFFFFFFFF)
    assert [page for page, erased in enumerate(world.erasures(0)) if erased] == [0x7F000 // 2048]


def test_a_word_that_was_not_erased_is_a_fault(run: Run) -> None:
    """Though it would only clear further bits, which the chip stands eight times."""
    world, said = run(
        FLASH
        + "void start(void) { word(0x7E804, 0xFF00FF00); say('1'); word(0x7E804, 0xFF000000); say('2'); for (;;) WFI(); }"
    )
    assert said == b"1"
    assert world.fault(0).startswith("flash: 0x0027e804 is written, and holds 0xff00ff00: it was not erased")


def test_power_goes_while_flash_is_written_and_while_it_is_erased(run: Run) -> None:
    """The words before are whole, the one under way has some of its zeros, the one behind it none; of a page, some is erased."""
    world, said = run(
        FLASH
        + """
        void start(void) {
            for (uint32_t at = 0x7E800; at < 0x7E80C; at += 4) say_number(REGISTER(FLASH_BASE + at));
            for (volatile uint32_t i = 0; i < 600000; i++) {}
            if (REGISTER(FLASH_BASE + 0x7E800) == 0) erase(0x7E800);
            else { word(0x7E800, 0); word(0x7E804, 0); word(0x7E808, 0); }
            say('e');
            for (;;) WFI();
        }""",
        0.005,
    )
    assert struct.unpack("<III", said) == (2**32 - 1,) * 3
    world.cut_power(0, 1, 5)
    world.run(round(0.2e9))
    first, torn, last = struct.unpack("<III", world.uart_read(0))
    assert (first, last) == (0, 2**32 - 1)
    assert torn not in (0, 2**32 - 1)
    world.cut_power(0, 0, 6)
    world.run(round(0.4e9))
    half = struct.unpack("<III", world.uart_read(0))
    assert half[0] not in (0, 2**32 - 1)
    assert half[2] == 2**32 - 1
    assert world.counters(0)["resets"] == 2
    assert sum(world.erasures(0)) == 1
