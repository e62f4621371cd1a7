"""``tools/footprint`` on small programs: what fits is a table; what does not, or has no bound on its stack, fails and is named."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parent.parent.parent / "tools"
HEAD = {
    "avr": "void __vector_1(void) __attribute__((signal, used)); void __vector_1(void) {}\n",
    "arm": "int main(void); static void an_isr(void) {}\n"
    '__attribute__((section(".vectors"), used)) void *const vectors[3] = {0, main, an_isr};\n',
}
COMPILERS = {
    "avr": ["avr-gcc", "-mmcu=atmega1281"],
    "arm": ["arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb"],
}
OPTIONS = ["-O1", "-gdwarf-4", "-fstack-usage", "-fno-optimize-sibling-calls"]
SCRIPT = """
MEMORY { flash (rx) : ORIGIN = 0x200000, LENGTH = %d  ram (rwx) : ORIGIN = 0x20004000, LENGTH = %d }
SECTIONS {
    .text : { KEEP(*(.vectors)) *(.text*) *(.rodata*) } > flash
    .data : { *(.data*) } > ram AT > flash
    .bss : { *(.bss*) *(COMMON) } > ram
}
"""
PLAIN = "static volatile char kept[100]; int main(void) { kept[1] = 2; for (;;) {} }\n"


@dataclass
class Program:
    """Files of C that become an image, or fail to."""

    folder: Path
    arch: str
    flash: int = 10000
    ram: int = 2000

    def build(self, **sources: str) -> subprocess.CompletedProcess[str]:
        """What the linker says. ``sources`` by module; two underscores stand for a slash; HEAD goes before that of ``program``."""
        if not shutil.which(COMPILERS[self.arch][0]):
            pytest.skip(f"{COMPILERS[self.arch][0]} is not installed")
        objects = []
        for module, text in sources.items():
            path = self.folder / "objects" / f"{module.replace('__', '/')}.c"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(HEAD[self.arch] + text if module == "program" else text)
            objects.append(str(path.with_suffix(".o").relative_to(self.folder)))
            subprocess.run(
                [*COMPILERS[self.arch], *OPTIONS, "-c", path, "-o", path.with_suffix(".o")],
                cwd=path.parent, check=True,
            )  # fmt: skip
        if self.arch == "arm":
            (self.folder / "script.ld").write_text(SCRIPT % (self.flash, self.ram))
            limits = ["-nostartfiles", "--specs=nano.specs", "-Wl,-e,main", "-Tscript.ld"]
        else:
            limits = [
                f"-Wl,--defsym=__TEXT_REGION_LENGTH__={self.flash}",
                f"-Wl,--defsym=__DATA_REGION_LENGTH__={self.ram}",
            ]
        linked = subprocess.run(
            [*COMPILERS[self.arch], *limits, "-Wl,--emit-relocs", "-Wl,-Map,program.map", *objects, "-o", "program.elf"],
            cwd=self.folder, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
        (self.folder / "program.said").write_text(linked.stderr)
        return linked

    def footprint(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Of what was built."""
        return subprocess.run(
            [sys.executable, "-m", "footprint", "program.elf", "--objects", "objects", "--kept", "kept.txt", *options],
            cwd=self.folder, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(TOOLS)},
        )  # fmt: skip

    def measure(self, **sources: str) -> subprocess.CompletedProcess[str]:
        """Build, and measure."""
        linked = self.build(**sources)
        assert linked.returncode == 0, linked.stderr
        return self.footprint()


@pytest.fixture(params=COMPILERS)
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Program:
    return Program(tmp_path, request.param)


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """What it says."""
    assert done.returncode == 1, done.stdout
    return done.stderr.strip()


def line(done: subprocess.CompletedProcess[str], begin: str) -> str:
    """Of the output, the one that begins so."""
    assert done.returncode == 0, done.stderr
    return next(text for text in done.stdout.splitlines() if text.startswith(begin))


def stack_of(done: subprocess.CompletedProcess[str]) -> tuple[int, str]:
    """Bytes and the path."""
    _, size, path = line(done, "stack: ").split(": ")
    return int(size), path.partition(";")[0]


def test_what_fits_is_a_table_by_module(program: Program) -> None:
    other = "volatile char more[30]; void fill(void) { more[2] = 1; }\n"
    done = program.measure(
        program="void fill(void);\n" + PLAIN.replace("for", "fill(); for"), net__tree=other
    )
    assert line(done, "program ").split()[2] == "100"
    assert line(done, "net ").split()[2] == "30"
    size, path = stack_of(done)
    assert path == "main > fill"
    total = line(done, "RAM:").split()
    assert int(total[1]) == 130 + size
    assert total[3] == "2000"


def test_what_has_changed_since_the_table_was_kept_is_shown(program: Program) -> None:
    program.measure(program=PLAIN)
    assert program.footprint("--keep").returncode == 0
    done = program.measure(program=PLAIN.replace("100", "150"))
    assert line(done, "program ").split()[2:] == ["150", "+50"]
    assert line(done, "all ").split()[2:] == ["150", "+50"]
    assert sum(text.startswith("  program ") for text in done.stdout.splitlines()) == 1
    assert program.footprint("--keep").returncode == 0
    assert "+" not in program.footprint().stdout


def test_flash_that_is_too_large_fails_in_the_linker_and_is_told_with_what_grew(program: Program) -> None:
    program.measure(program=PLAIN)
    program.footprint("--keep")
    program.flash = 900
    table = "const volatile char table[2000] = {1}; int main(void) { return table[7]; }\n"
    assert program.build(program=table).returncode != 0
    done = program.footprint("--overflow", "program.said")
    assert "program.elf: flash: " in refused(done)
    assert "more than the 900 there are" in done.stderr
    assert "+2," in done.stdout or "+1,9" in done.stdout


def test_ram_that_is_too_small_for_data_fails_in_the_linker(program: Program) -> None:
    program.ram = 90
    assert program.build(program=PLAIN).returncode != 0
    assert refused(program.footprint("--overflow", "program.said")) == (
        "program.elf: RAM: 100 bytes, the stack not counted: 10 more than the 90 there are"
    )


def test_ram_that_is_too_small_for_data_and_stack_fails(program: Program) -> None:
    program.ram = 101
    assert program.build(program=PLAIN).returncode == 0
    done = program.footprint()
    size, _ = stack_of(subprocess.CompletedProcess([], 0, done.stdout, ""))
    assert refused(done) == (
        f"program.elf: RAM: {100 + size} bytes with the stack: {size - 1} more than the 101 there are"
    )


def test_other_words_of_the_linker_are_passed_on(program: Program) -> None:
    assert program.build(program="void nowhere(void); int main(void) { nowhere(); }\n").returncode != 0
    assert "undefined reference to `nowhere'" in refused(program.footprint("--overflow", "program.said"))


def test_the_deepest_path_counts_through_all_calls(program: Program) -> None:
    source = """
        __attribute__((noinline)) static int deep(int n) { volatile char room[200]; room[n] = 1; return room[n]; }
        __attribute__((noinline)) static int middle(int n) { volatile char room[50]; room[n] = 1; return deep(n) + room[n]; }
        __attribute__((noinline)) static int shallow(int n) { volatile char room[80]; room[n] = 1; return room[n]; }
        static volatile int n;
        int main(void) { for (;;) n = middle(n) + shallow(n); }
    """
    size, path = stack_of(program.measure(program=source))
    assert path == "main > middle > deep"
    assert 250 <= size < 400


def test_functions_of_libraries_count_with_what_they_push(program: Program) -> None:
    kind = {"avr": "long", "arm": "long long"}[program.arch]
    source = f"static volatile {kind} n = 3; int main(void) {{ for (;;) n = n / (n + 5); }}\n"
    size, path = stack_of(program.measure(program=source))
    library = {"avr": "main > __divmodsi4 > __udivmodsi4", "arm": "main > __aeabi_ldivmod > __udivmoddi4"}
    assert path.startswith(library[program.arch])
    frame = int((program.folder / "objects/program.su").read_text().split("main\t")[1].split()[0])
    # AVR: three calls and the interrupt's, ARM: what both push (4 words and 8) and the exception's nine words.
    assert size > frame + {"avr": 2 * 3 - 1, "arm": (9 + 4 + 8) * 4 - 1}[program.arch]


def test_a_library_that_moves_the_stack_by_itself_is_named(tmp_path: Path) -> None:
    source = "#include <setjmp.h>\nstatic jmp_buf there; int main(void) { if (!setjmp(there)) longjmp(there, 1); return 0; }\n"
    said = refused(Program(tmp_path, "avr").measure(program=source))
    assert said == "program.elf: longjmp, of a library, sets the stack pointer: its frame cannot be told"


def test_registers_that_libgcc_saves_for_a_compiled_function_are_in_its_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """-mcall-prologues: it jumps into a row of 18 pushes, of a word each, with the bytes of room to make in X."""
    monkeypatch.setattr(f"{__name__}.OPTIONS", ["-Os", "-gdwarf-4", "-fstack-usage", "-mcall-prologues"])
    source = """
        __attribute__((noinline)) static long deep(long a, long b) { volatile char room[30]; room[a] = b; return room[b]; }
        __attribute__((noinline)) static long middle(long a, long b, long c) {
            volatile char room[50];
            room[a] = deep(a, b);
            return deep(b, c) + deep(a, c) + deep(a, b) + room[b];
        }
        static volatile long n;
        int main(void) { for (;;) n = middle(n, n, n); }
    """
    program = Program(tmp_path, "avr")
    size, path = stack_of(program.measure(program=source))
    assert path == "main > middle > deep"
    code = subprocess.run(
        ["avr-objdump", "-d", tmp_path / "program.elf"], check=True, capture_output=True, text=True
    ).stdout
    (room_of_middle,) = [text for text in code.split("\n\n") if "<middle>:" in text]
    begin = re.search(
        r"ldi\tr26, 0x(\w+).*\n.*ldi\tr27, 0x00.*\n.*\n.*\n.*<__prologue_saves__(?:\+0x(\w+))?>",
        room_of_middle,
    )
    assert begin, room_of_middle
    middle = 2 + 18 - int(begin[2] or "0", 16) // 2 + int(begin[1], 16)
    frames = dict(re.findall(r":(\w+)\t(\d+)\t", (tmp_path / "objects/program.su").read_text()))
    assert middle == int(frames["middle"]) > 2 + 50
    assert size == int(frames["main"]) + middle + int(frames["deep"]) + int(frames["__vector_1"])


def test_registers_that_libgcc_saves_for_a_library_are_in_its_frame(tmp_path: Path) -> None:
    """What divides signed numbers saves twelve registers by that row, and goes on to what divides unsigned ones."""
    found = []
    for kind in ("unsigned long long", "long long"):
        source = f"static volatile {kind} n = 3; int main(void) {{ for (;;) n = n / (n + 5); }}\n"
        found.append(stack_of(Program(tmp_path, "avr").measure(program=source)))
    (unsigned, without), (signed, path) = found
    assert path == without.replace("__udivdi3 >", "__divdi3 > __divdi3_moddi3 >", 1)
    assert signed - unsigned == 12 + 2


def test_recursion_fails_with_its_cycle(program: Program) -> None:
    source = """
        static int ping(int n);
        __attribute__((noinline)) static int pong(int n) { return n ? ping(n - 1) + 1 : 0; }
        __attribute__((noinline)) static int ping(int n) { return n ? pong(n - 1) + 2 : 1; }
        static volatile int n;
        int main(void) { for (;;) n = ping(n); }
    """
    said = refused(program.measure(program=source)).removeprefix("program.elf: ")
    assert said in ("recursion: ping -> pong -> ping", "recursion: pong -> ping -> pong")


HANDLERS = """
    typedef void event_handler(void);
    extern event_handler *volatile waiting;
    void run(void);
    static volatile int n;
    __attribute__((noinline)) static void handle(void) { volatile char room[90]; room[n] = 1; n = room[0]; }
    event_handler *volatile waiting = handle;
    int main(void) { for (;;) run(); }
"""
KERNEL = "typedef void event_handler(void); extern event_handler *volatile waiting; void run(void); void run(void) { waiting(); }\n"


def test_calls_through_pointers_reach_what_is_of_their_type(program: Program) -> None:
    size, path = stack_of(program.measure(program=HANDLERS, kernel__kernel=KERNEL))
    assert path == "main > run > handle"
    assert size > 90


def test_a_jump_through_a_pointer_is_followed_as_a_call_is(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The MAC's last statement is its caller's handler: the compiler jumps there."""
    monkeypatch.setattr(f"{__name__}.OPTIONS", ["-Os", "-gdwarf-4", "-fstack-usage"])
    source = HANDLERS.replace("void event_handler(void)", "void mac_handler(int outcome)").replace(
        "event_", "mac_"
    )
    source = source.replace("handle(void)", "handle(int outcome)").replace("room[n]", "room[outcome]")
    mac = KERNEL.replace("void event_handler(void)", "void mac_handler(int outcome)").replace(
        "event_", "mac_"
    )
    mac = mac.replace("waiting();", "waiting(5);")
    size, path = stack_of(program.measure(program=source, net__mac__mac=mac))
    assert path == "main > run > handle"
    assert size > 90


def test_a_call_through_a_pointer_must_be_declared(program: Program) -> None:
    said = refused(program.measure(program=HANDLERS, other=KERNEL))
    assert (
        "other: run calls through a pointer: CALLERS in tools/footprint/pointers.py says of what type" in said
    )


def test_a_jump_table_that_reads_as_a_call_is_none(tmp_path: Path) -> None:
    """Words of it lie behind the table of interrupts, without a symbol; 0x9419 is `eijmp`."""
    table = '__asm__(".pushsection .progmem.gcc_sw_table,\\"a\\"\\n.word 0x9419\\n.popsection");\n'
    stack_of(Program(tmp_path, "avr").measure(program=table + "int main(void) { return 0; }\n"))


def test_any_register_may_hold_the_pointer(tmp_path: Path) -> None:
    other = KERNEL.replace(
        "waiting();",
        'register event_handler *to __asm__("sl") = waiting; __asm__ volatile("blx %0" :: "r"(to) : "lr");',
    )
    said = refused(Program(tmp_path, "arm").measure(program=HANDLERS, other=other))
    assert "other: run calls through a pointer" in said


def test_a_function_whose_address_nobody_calls_fails(program: Program) -> None:
    lost = "static long lost(char c) { return c + n; } long (*volatile nobody)(char) = lost; int main(void) { nobody = 0;"
    said = refused(program.measure(program=HANDLERS.replace("int main(void) {", lost), kernel__kernel=KERNEL))
    assert "program: the address of lost is taken, of type base long int (base char)" in said


def test_a_compiled_function_without_a_frame_fails(program: Program) -> None:
    program.build(program=PLAIN, net__tree="void fill(void) {}\n")
    (program.folder / "objects/net/tree.su").unlink()
    assert "net/tree: fill has no frame" in refused(program.footprint())


def test_a_frame_without_bound_fails(program: Program) -> None:
    source = "static volatile int n; int main(void) { for (;;) { volatile char room[n]; room[n - 1] = 1; n = room[0]; } }\n"
    assert "main has a frame without bound" in refused(program.measure(program=source))


def test_what_is_no_image_is_named(tmp_path: Path) -> None:
    (tmp_path / "program.elf").write_bytes(b"no image at all, sorry")
    assert refused(Program(tmp_path, "avr").footprint()) == "program.elf: not an ELF file"


def test_an_image_for_another_machine_is_named(tmp_path: Path) -> None:
    program = Program(tmp_path, "avr")
    program.build(program=PLAIN)
    subprocess.run(
        ["gcc", "-Wl,-Map,program.map", "-o", "program.elf", "-x", "c", "-"],
        input="int main(void) {}",
        text=True,
        cwd=tmp_path,
        check=True,
    )
    assert "program.elf: made for EM_X86_64: known are EM_AVR, EM_ARM" in refused(program.footprint())


def test_members_of_our_own_archives_are_modules() -> None:
    files = ["o/net/tree.o", "o/index.a(zone.o)", "/usr/lib/libgcc.a(divmod.o)", "/usr/lib/crt1.o"]
    script = f"from footprint.image import *\nfor one in {files}: print(module_of(one, Path('o')))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(TOOLS)}
    )  # fmt: skip
    assert done.stdout.split() == ["net/tree", "index/zone", "libraries", "start"]
