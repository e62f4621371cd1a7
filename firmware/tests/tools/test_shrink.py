"""What tools/shrink makes of assembly, by small examples; whole programs are run in hil_tests/test_shrunk_programs.py."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from firmware.tools.shrink.assembly import read_lines
from firmware.tools.shrink.layout import Lengths
from firmware.tools.shrink.order import ordered
from firmware.tools.shrink.proof import Difference, prove
from firmware.tools.shrink.relays import with_relays

TOOLS = Path(__file__).parents[2] / "tools"


class Shrinker:
    """Files of assembly, and what becomes of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: list[Path] = []

    def file(self, name: str, *functions: str, data: str = "") -> None:
        """Each function is its name, a colon and its instructions, a line each."""
        text = ""
        for function in functions:
            title, _, body = function.strip().partition(":")
            lines = [line.strip() for line in body.strip().splitlines()]
            code = "\n".join(line if line.endswith(":") else f"\t{line}" for line in lines)
            exported = "" if title.startswith("static ") else f".global\t{title}\n"
            title = title.removeprefix("static ")
            text += f'\t.section\t.text.{title},"ax",@progbits\n{exported}\t.type\t{title}, @function\n{title}:\n{code}\n'
        path = self._folder / f"{name}.s"
        path.write_text(text + data)
        path.with_suffix(".su").write_text("")
        self._files.append(path)

    def run(self, *options: str) -> str:
        """The program, which the assembler takes. Raises CalledProcessError."""
        image = self._folder / "image.s"
        command = [
            sys.executable,
            "-m",
            "shrink",
            "--root",
            self._folder,
            "--output",
            image,
            *options,
            *self._files,
        ]
        subprocess.run(command, check=True, cwd=TOOLS, capture_output=True, text=True)
        subprocess.run(
            ["avr-gcc", "-mmcu=atmega1281", "-c", "-o", self._folder / "image.o", image], check=True
        )
        return image.read_text()


@pytest.fixture
def shrinker(tmp_path: Path) -> Shrinker:
    return Shrinker(tmp_path)


def body(text: str, name: str) -> list[str]:
    """Instructions and labels of a function, up to the next one."""
    found = re.search(rf"^{re.escape(name)}:\n(.*?)(?=^[A-Za-z_]|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"{name} is not in the program"
    return [line.strip() for line in found[1].splitlines()]


STORE = "\n".join(f"sts there+{i},r24" for i in range(6))
DATA = '\t.section .bss.there,"aw",@nobits\nthere:\n\t.zero 6\n'


def test_a_sequence_that_occurs_twice_is_there_once(shrinker: Shrinker) -> None:
    shrinker.file("a", f"main:\nldi r24,1\n{STORE}\ninc r24\n{STORE}\ndec r24\nrjmp main", data=DATA)
    text = shrinker.run()
    assert text.count("sts there+3,r24") == 1
    assert [line for line in body(text, "main") if line.startswith("rcall")] == 2 * ["rcall __shared_1"]
    assert body(text, "__shared_1")[-1] == "ret"


def test_a_sequence_that_ends_in_a_return_is_jumped_to(shrinker: Shrinker) -> None:
    shrinker.file(
        "a",
        "main:\ncall f\ncall g\nrjmp main",
        f"f:\nldi r24,1\n{STORE}\nret",
        f"g:\nldi r24,2\n{STORE}\nret",
        data=DATA,
    )
    text = shrinker.run()
    assert text.count("sts there+3,r24") == 1
    assert body(text, "f") == ["ldi r24,1", "rjmp __shared_1"] or body(text, "g") == [
        "ldi r24,2",
        "rjmp __shared_1",
    ]


def test_nothing_else_moves_with_the_stack(shrinker: Shrinker) -> None:
    push = "push r24\npush r25\npush r24\npush r25\nin r30,__SP_L__\nin r31,__SP_H__"
    shrinker.file("a", f"main:\n{push}\ninc r24\n{push}\ndec r24\nrjmp main")
    assert shrinker.run().count("push r24") == 4


@pytest.mark.parametrize("label", [False, True], ids=["behind it", "behind a label"])
def test_what_may_be_skipped_is_one_instruction(shrinker: Shrinker, label: bool) -> None:
    """Were the sequence behind a skip called, all of it would be skipped; were the call before a return jumped to, the return as well."""
    skip = "ldi r25,1\ncpse r24,r25\n" + (".L{0}:\n" if label else "")
    again = "inc r24\nbrne .L{0}\n" if label else ""
    stores = [f"f{i}:\n{skip.format(i)}{STORE}\n{again.format(i)}ret" for i in range(2)]
    calls = [f"g{i}:\n{skip.format(i + 2)}call f0\nret\n{again.format(i + 2)}ret" for i in range(2)]
    shrinker.file("a", "main:\ncall f0\ncall f1\ncall g0\ncall g1\nrjmp main", *stores, *calls, data=DATA)
    lines = [line.strip() for line in shrinker.run().splitlines() if not line.startswith(".L")]
    behind = [lines[i + 1 : i + 3] for i, line in enumerate(lines) if line.startswith("cpse")]
    assert len(behind) >= 2
    assert all(
        first == "sts there+0,r24" or (first, second) == ("rcall f0", "ret") for first, second in behind
    )


def test_loops_and_conditions_move_as_a_whole(shrinker: Shrinker) -> None:
    loop = "ldi r30,lo8(there)\nldi r31,hi8(there)\nldi r25,6\n0:\nst Z+,r24\ndec r25\nbrne 0b\n"
    part = loop + "cpi r24,3\nbreq .L{0}\ninc r24\nsts there,r24\n.L{0}:\nsts there+1,r24"
    shrinker.file("a", f"main:\n{part.format(1)}\nlsl r24\n{part.format(2)}\nrjmp main", data=DATA)
    text = shrinker.run()
    assert text.count("st Z+,r24") == 1
    assert text.count("sts there+1,r24") == 1


def test_prologues_are_calls_and_are_not_moved_with_others(shrinker: Shrinker) -> None:
    save = "push r14\npush r15\npush r16\npush r17\npush r28\npush r29"
    restore = "pop r29\npop r28\npop r17\npop r16\npop r15\npop r14\nret"
    functions = [
        f"f{i}:\n{save}\nmovw r28,r24\nmovw r16,r22\nldi r24,{i}\n{STORE}\n{restore}" for i in range(4)
    ]
    shrinker.file(
        "a", "main:\n" + "".join(f"call f{i}\n" for i in range(4)) + "rjmp main", *functions, data=DATA
    )
    text = shrinker.run()
    assert text.count("push r14") == 1
    for i in range(4):
        assert body(text, f"f{i}")[0] == "rcall __save_r14_r15_r16_r17_r28_r29"


def test_names_that_files_share_are_told_apart(shrinker: Shrinker) -> None:
    shrinker.file(
        "a", "main:\ncall own\ncall other\nrjmp main", f"static own:\nldi r24,1\n{STORE}\nret", data=DATA
    )
    shrinker.file("b", "other:\ncall own\nldi r20,0\nret", "static own:\nldi r24,2\nret")
    text = shrinker.run()
    assert body(text, "own.b") == ["ldi r24,2", "ret"]
    assert "rcall own.b" in body(text, "other")


def test_functions_that_nothing_reaches_are_left_out(shrinker: Shrinker) -> None:
    shrinker.file(
        "a",
        "main:\nrjmp main",
        "unused:\nret",
        "handler:\nret",
        data='\t.section .data.h,"aw",@progbits\nh:\n\t.word gs(handler)\n',
    )
    text = shrinker.run()
    assert "unused:" not in text
    assert "handler:" in text


def test_files_that_are_counted_in_cycles_stay_as_they_are(shrinker: Shrinker) -> None:
    shrinker.file(
        "boards/clock".replace("/", "_"),
        f"main:\nldi r24,1\n{STORE}\ninc r24\n{STORE}\ndec r24\nrjmp main",
        data=DATA,
    )
    assert shrinker.run("--untouched", "boards_clock").count("sts there+3,r24") == 2


def test_branches_reach(shrinker: Shrinker) -> None:
    """A long way takes an opposite branch around a jump."""
    filler = "\n".join(f"ldi r{16 + i % 16},{i % 251}" for i in range(100))
    shrinker.file(
        "a",
        f"main:\ncpi r24,1\nbrne .+2\nrjmp .L5\n{filler}\n.L5:\ninc r24\nbrne .L6\nlsl r24\n.L6:\nrjmp main",
    )
    lines = body(shrinker.run(), "main")
    assert lines[1:3] == ["brne .+2", "rjmp .L0_5"]
    assert "brne .L0_6" in lines


def test_what_the_compiler_is_not_known_to_write_is_said(shrinker: Shrinker) -> None:
    shrinker.file("a", "main:\nrjmp main", data='\t.section\t.text.odd,"ax",@progbits\n\tinc r24\n')
    with pytest.raises(subprocess.CalledProcessError) as error:
        shrinker.run()
    assert "a: outside of a function: inc r24" in error.value.stderr


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("ldi r24,1\nret", "ldi r24,2\nret", "f: ldi r24,1 has become ldi r24,2"),
        ("cpse r24,r25\ninc r24\ninc r25\nret", "cpse r24,r25\nrcall s\nret", "f: inc r25 has become ret"),
        ("breq .L1\ninc r24\n.L1:\ninc r25\nret", "brne .L1\ninc r24\n.L1:\ninc r25\nret", "f: breq .L1 has become brne .L1"),
        ("inc r24\n.L1:\ninc r25\nbrne .L1\nret", ".L1:\nrcall s\nbrne .L1\nret", "f: inc r25 has become inc r24"),
        ("inc r24\ninc r25\ncall g\nret", "rcall s\nrjmp h", "f: call g has become call h"),
        ("push r24\nret", "rcall p\nret", "f: push r24 is called, so that the stack is not as it was"),
    ],
    ids=["another instruction", "a skip", "another branch", "a loop", "another function", "the stack"],
)  # fmt: skip
def test_a_program_that_does_something_else_is_no_proof(before: str, after: str, why: str) -> None:
    def functions(f: str) -> list[str]:
        return (
            f"main:\nrcall f\nrjmp main\ns:\ninc r24\ninc r25\nret\np:\npush r24\nret\nf:\n{f}".splitlines()
        )

    old, new = (read_lines(functions(f)).functions for f in (before, after))
    prove(old, old, {"s", "p"})
    with pytest.raises(Difference, match=re.escape(why)):
        prove([f for f in old if f.name in ("f", "main")], new, {"s", "p"})


def test_what_is_shared_jumped_to_or_left_out_is_proven() -> None:
    before = "main:\ncall f\n.L1:\nrjmp .L1\nf:\ninc r24\ninc r25\ncall g\nret\ng:\ninc r24\ninc r25\nret"
    after = "main:\nrcall f\n.L1:\nrjmp .L1\nf:\nrcall s\ng:\nrjmp t\nt:\ns:\ninc r24\ninc r25\nret"
    prove(read_lines(before.splitlines()).functions, read_lines(after.splitlines()).functions, {"s", "t"})


def test_what_lies_behind_a_call_that_does_not_return_may_be_anything() -> None:
    """The compiler writes no return there, and other functions lie behind it afterwards."""
    before = "main:\ninc r24\ncall f\nf:\ninc r25\nrjmp f\ng:\ninc r26\nret"
    after = "main:\ninc r24\nrcall f\ng:\ninc r26\nret\nf:\ninc r25\nrjmp f"
    prove(read_lines(before.splitlines()).functions, read_lines(after.splitlines()).functions, set())
    cut = read_lines(before.replace("call f\n", "", 1).splitlines()).functions
    with pytest.raises(Difference, match=re.escape("main: end has become call g")):
        prove(cut, read_lines(after.replace("rcall f\n", "").splitlines()).functions, set())


def test_functions_that_call_each_other_lie_near_each_other(shrinker: Shrinker) -> None:
    """Sixteen KB, in whose file each function calls one from the other end: in that order none would be reached by a short call."""
    half = 80
    filler = "\n".join(f"out {number % 32},r{number % 7 + 20}" for number in range(50))
    functions = [
        f"static f{number}:\n{filler}\neor r{number % 13},r{number // 13}\n"
        + (f"call f{number + half}\ninc r24\nret" if number < half else "ret")
        for number in range(2 * half)
    ]
    calls = "\n".join(f"call f{number}" for number in range(half))
    shrinker.file("a", f"main:\n{calls}\nrjmp main", *functions)
    text = shrinker.run("--untouched", "a")
    pairs = re.findall(r"\tr?call f(?:8\d|9\d|1\d\d)$", text, re.M)
    assert len(pairs) == half
    assert sum(pair.startswith("\trcall") for pair in pairs) > 0.9 * half
    assert text == shrinker.run("--untouched", "a")


def far(number: int) -> str:
    """Some instructions of a function that is like no other, 1 KB."""
    return "\n".join(f"ldi r{16 + i % 16},{(i * 7 + number * 13) % 251}" for i in range(512))


def laid(text: str) -> tuple[Lengths, list[str]]:
    """A program as it is laid out, proven to do the same, and its lines."""
    program = read_lines(text.splitlines()).functions
    lengths = Lengths(program, set())
    prove(program, read_lines(lengths.lines()).functions, set())
    return lengths, [line.strip() for line in lengths.lines()]


def test_a_call_goes_by_a_jump_that_is_there_anyway() -> None:
    """What calls g lies out of reach of it, and the jump at the end of h between."""
    text = (
        f"g:\ninc r24\nret\na:\n{far(1)}\n{far(2)}\n{far(3)}\nret\nh:\ndec r24\njmp g\n"
        f"b:\n{far(4)}\n{far(5)}\ncall g\ninc r25\ncall g\nret"
    )
    lengths, lines = laid(text)
    way = lines[lines.index("rjmp g") - 1]
    assert [line for line in lines if "call" in line] == 2 * [f"rcall {way.removesuffix(':')}"]
    assert lengths.total == sum(function.size for function in read_lines(text.splitlines()).functions)


def test_no_two_jumps_lend_to_each_other() -> None:
    """Both are too far from where they go, and within reach of each other: one of them stays long."""
    _, lines = laid(
        f"g:\ninc r24\nret\na:\n{far(1)}\n{far(2)}\n{far(3)}\n{far(4)}\n{far(5)}\nret\nb:\ninc r25\njmp g\n"
        f"c:\ninc r26\njmp g\nd:\n{far(6)}\ninc r27\njmp g"
    )
    assert sum(line == "jmp g" for line in lines) == 1
    assert sum(line.startswith("rjmp .Lway") for line in lines) == 2


def test_a_branch_goes_by_a_jump_or_a_branch_on_the_same_condition() -> None:
    filler = "\n".join(f"ldi r{16 + i % 16},{i % 251}" for i in range(50))
    text = f"f:\nbreq .L1\n{filler}\nbreq .L1\n{filler}\nbrne .L2\ninc r24\njmp .L1\n.L2:\n{filler}\n.L1:\ninc r25\nret"
    program = read_lines(text.splitlines()).functions
    lengths = Lengths(program, set())
    lines = [line.strip() for line in lengths.lines() if not line.startswith("\tldi")]
    assert sum(line.startswith("breq .Lway") for line in lines) == 2
    assert lengths.total == program[0].size
    prove(program, read_lines(lengths.lines()).functions, set())
    timed = Lengths(program, {"f"})
    assert timed.total == program[0].size + 4
    assert not any(".Lway" in line for line in timed.lines())


def test_calls_from_afar_share_a_jump_made_for_them() -> None:
    """And it lies where nothing runs on into it: not between e and g, which lie next to each other so that e need not jump."""
    program = read_lines(
        f"main:\ncall b\ncall d\njmp main\ne:\ninc r24\njmp g\ng:\ninc r24\nret\na:\n{far(1)}\n{far(2)}\n{far(3)}\nret\n"
        f"b:\n{far(4)}\n{far(5)}\ncall g\ninc r26\ncall g\nret\nd:\ncall g\ninc r27\ncall g\nret".splitlines()
    ).functions
    before = Lengths(program, set()).total
    functions, lengths = with_relays(program, set())
    assert [f.name for f in functions if f.name.startswith("__far_")]
    assert lengths.total == before - 6
    prove(program, read_lines(lengths.lines()).functions, {f.name for f in functions if f.file == "shared"})


def test_what_goes_a_way_is_proven_to_get_there() -> None:
    before = (
        "main:\ncall f\njmp main\nf:\ncpi r24,1\nbreq .L1\ninc r24\n.L1:\ncall g\ninc r25\njmp g\ng:\nret"
    )
    after = (
        "main:\nrcall f\nrjmp main\nf:\ncpi r24,1\nbreq .Lway_1\ninc r24\n.L1:\nrcall .Lway_2\ninc r25\n.Lway_2:\nrjmp g\ng:\nret\n"
        "u:\n.Lway_1:\n{0} .L1\nret"
    )
    old = read_lines(before.splitlines()).functions
    for way in ("breq", "rjmp"):
        prove(old, read_lines(after.format(way).splitlines()).functions, {"u"})
    with pytest.raises(Difference, match=re.escape("f: call g has become brne .L1")):
        prove(old, read_lines(after.format("brne").splitlines()).functions, {"u"})
    wrong = after.format("rjmp").replace("rjmp g", "rjmp main")
    with pytest.raises(Difference, match=re.escape("f: call g has become call main")):
        prove(old, read_lines(wrong.splitlines()).functions, {"u"})


@pytest.mark.parametrize("jump", ["rjmp .L1", "rjmp .L2"])
def test_the_jump_in_a_long_branch_is_a_way(jump: str) -> None:
    before = "main:\nbreq .L1\ninc r24\njmp .L1\n.L2:\ninc r26\n.L1:\ninc r25\njmp main"
    after = f"main:\nbrne .+2\n.Lwayjump_1:\n{jump}\ninc r24\nrjmp .Lwayjump_1\n.L2:\ninc r26\n.L1:\ninc r25\nrjmp main"
    old, new = (read_lines(text.splitlines()).functions for text in (before, after))
    if jump == "rjmp .L1":
        prove(old, new, set())
    else:
        with pytest.raises(Difference, match=re.escape("main: inc r25 has become inc r26")):
            prove(old, new, set())


def test_a_function_goes_before_the_one_that_it_ends_with_a_jump_to() -> None:
    program = read_lines(
        "a:\ninc r24\nret\nb:\ninc r25\njmp e\nc:\ninc r26\njmp b\nd:\ninc r27\njmp a\ne:\ninc r28\nret".splitlines()
    ).functions
    found = ordered(Lengths(program, set()), program, 2000, 2)
    names = "".join(function.name for function in found)
    assert "cbe" in names
    assert "da" in names
    assert sorted(names) == list("abcde")
    assert found == ordered(Lengths(program, set()), program, 2000, 2)
    assert Lengths(found, set()).total == Lengths(program, set()).total - 6


def test_prologues_of_two_registers_are_calls_that_leave_arguments_alone(shrinker: Shrinker) -> None:
    """The routine goes on by Z alone; it is part of that for more registers."""
    functions = [
        f"f{i}:\n{save}\nmovw r28,r24\nldi r24,{i}\n{STORE}\n{restore}"
        for i, (save, restore) in enumerate(
            2 * [("push r28\npush r29", "pop r29\npop r28\nret"),
                 ("push r17\npush r28\npush r29", "pop r29\npop r28\npop r17\nret")]
        )
    ]  # fmt: skip
    calls = "".join(f"call f{i}\n" for i in range(4))
    shrinker.file("a", f"main:\n{calls}rjmp main", *functions, data=DATA)
    text = shrinker.run()
    assert text.count("push r28") == 1
    assert [body(text, f"f{i}")[0] for i in range(2)] == ["rcall __save_r28_r29", "rcall __save_r17_r28_r29"]
    routine = body(text, "__save_r17_r28_r29") + body(text, "__save_r28_r29")
    assert {line.split()[1] for line in routine if line.startswith("pop")} == {"r30", "r31"}
