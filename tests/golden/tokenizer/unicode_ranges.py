"""Writes src/data/unicode_ranges.cpp: the character classes as tokenizers 0.23.3 sees them.

Run with that version installed:  python3 tests/golden/tokenizer/unicode_ranges.py
"""

import pathlib

import tokenizers
from tokenizers import Regex, pre_tokenizers

VERSION = "0.23.3"
TARGET = pathlib.Path(__file__).parents[3] / "src/data/unicode_ranges.cpp"
HEAD = f"""// Written by tests/golden/tokenizer/unicode_ranges.py from tokenizers {VERSION}; not edited by hand.
#include "data/unicode.h"

namespace gruca::data {{
namespace {{

// clang-format off
"""
TAIL = """// clang-format on

}  // namespace

std::span<const CodePointRange> letter_ranges() {
    return kLetters;
}

std::span<const CodePointRange> number_ranges() {
    return kNumbers;
}

std::span<const CodePointRange> space_ranges() {
    return kSpaces;
}

}  // namespace gruca::data
"""


def ranges(expression):
    split = pre_tokenizers.Split(Regex(expression), behavior="isolated")
    found = []
    for point in range(0x110000):
        if 0xD800 <= point < 0xE000:
            continue
        if len(split.pre_tokenize_str("\x01" + chr(point) + "\x01")) == 3:
            if found and found[-1][1] == point - 1:
                found[-1][1] = point
            else:
                found.append([point, point])
    return found


def array(name, expression):
    lines, line = [], "   "
    for first, last in ranges(expression):
        item = f" {{{first:#x}, {last:#x}}},"
        if len(line) + len(item) > 100:
            lines.append(line)
            line = "   "
        line += item
    lines.append(line)
    return f"constexpr CodePointRange {name}[] = {{\n" + "\n".join(lines) + "\n};\n"


def main():
    assert tokenizers.__version__ == VERSION, f"needs tokenizers {VERSION}, not {tokenizers.__version__}"
    arrays = [array("kLetters", r"\p{L}"), array("kNumbers", r"\p{N}"), array("kSpaces", r"\s")]
    TARGET.write_text(HEAD + "\n".join(arrays) + TAIL)


if __name__ == "__main__":
    main()
