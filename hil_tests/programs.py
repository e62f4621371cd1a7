"""C programs drawn from a seed, for what has to do on an emulated chip what the compiler meant: several files, functions that call each
other without recursion, loops, branches, wide and narrow arithmetic, structs and tables, names that files share."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

TYPES = ["uint8_t", "int8_t", "uint16_t", "int16_t", "uint32_t", "int32_t"]
HEAD = """#include <stdint.h>
#include <string.h>
struct record { uint8_t kind; uint16_t count; int32_t sum; struct record *next; };
extern struct record records[8];
extern uint8_t table[32];
extern volatile uint8_t flags;
void tell(uint32_t value);
"""


@dataclass
class _Function:
    name: str
    parameters: list[str]
    file: int


@dataclass
class _Drawer:
    """What is drawn so far."""

    draw: random.Random
    done: list[_Function] = field(default_factory=list)

    def expression(self, names: list[str], depth: int = 0) -> str:
        """Of type int32_t or narrower."""
        if depth > 2 or (kind := self.draw.randrange(8)) < 3:
            number = str(self.draw.choice([0, 1, 2, 7, 200, 255, 1000, 40000, 70000]))
            return self.draw.choice([number, *names])
        left, right = self.expression(names, depth + 1), self.expression(names, depth + 1)
        if kind == 3:
            return f"table[({left}) & 31]"
        if kind == 4:
            return f"records[({left}) & 7].{self.draw.choice(['kind', 'count', 'sum'])}"
        if kind == 5:
            return f"((uint32_t)({left}) {self.draw.choice(['<<', '>>'])} (({right}) & 7))"
        if kind == 6:
            return f"((uint32_t)({left}) {self.draw.choice(['/', '%'])} (uint16_t)((({right}) & 63) + 1))"
        return f"((uint32_t)({left}) {self.draw.choice(['+', '-', '*', '^', '&', '|'])} (uint32_t)({right}))"

    def condition(self, names: list[str]) -> str:
        """For if."""
        operator = self.draw.choice(["<", ">", "==", "!=", "<=", ">="])
        left, right = self.expression(names, 1), self.expression(names, 1)
        return f"({self.draw.choice(TYPES)})({left}) {operator} ({self.draw.choice(TYPES)})({right})"

    def statements(self, names: list[str], file: int, depth: int = 0) -> Iterator[str]:
        """Of a function's body."""
        for _ in range(self.draw.randrange(1, 5)):
            target = self.draw.choice(names)
            kind = self.draw.randrange(10)
            if kind < 2:
                yield f"{target} = {self.expression(names)};"
            elif kind == 2:
                yield f"records[{self.draw.randrange(8)}].{self.draw.choice(['kind', 'count', 'sum'])} += {self.expression(names)};"
            elif kind == 3:
                yield f"if (flags & {1 << self.draw.randrange(8)}) flags = (uint8_t)({self.expression(names)});"
            elif kind == 4 and depth < 2:
                yield f"if ({self.condition(names)}) {{"
                yield from self.statements(names, file, depth + 1)
                if self.draw.random() < 0.5:
                    yield "} else {"
                    yield from self.statements(names, file, depth + 1)
                yield "}"
            elif kind == 5 and depth < 2:
                count = f"i{depth}"
                yield f"for (uint8_t {count} = 0; {count} < {self.draw.randrange(2, 6)}; {count}++) {{"
                yield from self.statements([*names], file, depth + 1)
                yield "}"
            elif kind == 6 and depth < 2:
                yield f"switch (({self.expression(names, 1)}) & 7) {{"
                for case in self.draw.sample(range(8), 4):
                    yield f"case {case}: {target} += {self.expression(names, 1)}; {self.draw.choice(['break;', '/* on */;'])}"
                yield f"default: {target} ^= {case};"
                yield "}"
            elif kind == 7:
                yield f"memcpy(&records[{self.draw.randrange(8)}], &records[{self.draw.randrange(8)}], sizeof records[0]);"
            elif kind == 8 and depth < 1:
                yield f"if ({self.condition(names)}) return (int32_t)({self.expression(names, 1)});"
            elif callees := [f for f in self.done if f.file == file or not f.name.startswith("own")]:
                callee = self.draw.choice(callees[-12:])
                arguments = ", ".join(
                    f"({kind_})({self.expression(names, 1)})" for kind_ in callee.parameters
                )
                yield f"{target} = {callee.name}({arguments});"

    def function(self, name: str, file: int) -> str:
        """Its definition; it may be called by those drawn later."""
        parameters = [self.draw.choice(TYPES) for _ in range(self.draw.randrange(5))]
        names = [f"p{i}" for i in range(len(parameters))]
        signature = (
            ", ".join(f"{kind} {name_}" for kind, name_ in zip(parameters, names, strict=True)) or "void"
        )
        local = [(f"v{i}", self.draw.choice(TYPES)) for i in range(self.draw.randrange(1, 5))]
        lines = [f"{kind} {name_} = ({kind}){self.draw.randrange(300)};" for name_, kind in local]
        if self.draw.random() < 0.3:
            lines.append("uint8_t room[20]; memcpy(room, table + 4, sizeof room); v0 ^= room[v0 & 15];")
        lines += self.statements([*names, *(name_ for name_, _ in local)], file)
        lines.append(f"return (int32_t)({self.expression([*names, 'v0'], 1)});")
        self.done.append(_Function(name, parameters, file))
        static = "static " if name.startswith("own") else ""
        return (
            f"{static}__attribute__((noinline)) int32_t {name}({signature})\n{{\n    "
            + "\n    ".join(lines)
            + "\n}\n"
        )


def program(seed: int, files: int = 3, functions: int = 14) -> list[str]:
    """The texts of its files; the last one has main, which tells what comes out of all functions."""
    drawer = _Drawer(random.Random(seed))
    texts = []
    shared: list[str] = []
    for file in range(files):
        bodies = []
        for number in range(functions):
            # Functions of a file's own have names that other files have, too.
            own = drawer.draw.random() < 0.4
            name = f"own{number}" if own else f"f{file}_{number}"
            drawer.done = [f for f in drawer.done if f.file == file or not f.name.startswith("own")]
            bodies.append(drawer.function(name, file))
            if not own:
                parameters = drawer.done[-1].parameters
                shared.append(f"int32_t {name}({', '.join(parameters) or 'void'});")
        texts.append(
            HEAD
            + "\n".join(shared)
            + '\n#pragma GCC diagnostic ignored "-Wunused-function"\n'
            + "\n".join(bodies)
        )
    calls = []
    for function in drawer.done:
        if not function.name.startswith("own"):
            for _ in range(2):
                arguments = ", ".join(str(drawer.draw.randrange(100)) for _ in function.parameters)
                calls.append(f"tell((uint32_t){function.name}({arguments}));")
    main = """#include <avr/io.h>
struct record records[8];
uint8_t table[32];
volatile uint8_t flags = 0x5A;
void tell(uint32_t value)
{
    for (uint8_t i = 0; i < 4; i++) {
        while (!(UCSR0A & _BV(UDRE0))) {}
        UDR0 = (uint8_t)(value >> (8 * i));
    }
}
int main(void)
{
    UBRR0 = 8;
    UCSR0B = _BV(TXEN0);
    for (uint8_t i = 0; i < 32; i++) table[i] = (uint8_t)(i * 37);
    for (uint8_t i = 0; i < 8; i++) records[i] = (struct record){i, (uint16_t)(i * 999), -70000L * i, &records[(i + 1) & 7]};
"""
    end = "    for (uint8_t i = 0; i < 8; i++) { tell(records[i].kind); tell(records[i].count); tell((uint32_t)records[i].sum); }\n"
    last = (
        HEAD
        + "\n".join(shared)
        + "\n"
        + main
        + "".join(f"    {call}\n" for call in calls)
        + end
        + "    for (;;) {}\n}\n"
    )
    return [*texts, last]
