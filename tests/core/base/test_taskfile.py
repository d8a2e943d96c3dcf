"""Task boxes: what counts as one, what is done, what is optional, and that hostile text costs little."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.base.taskfile import Box, boxes, open_boxes
from tests.support.cost import cpu_limit

BOX = "- [ ] a\n"


def lines(markdown: str) -> list[int]:
    return [box.line for box in boxes(markdown)]


BOXES = {
    "hyphen, star and plus": ("- [ ] a\n* [ ] b\n+ [ ] c\n", [1, 2, 3]),
    "numbers with a dot and with a bracket": ("1. [ ] a\n2. [ ] b\n3) [ ] c\n", [1, 2, 3]),
    "ticked by x and by X": ("- [x] a\n- [X] b\n", [1, 2]),
    "nested by two, four and a tab": (
        "- [ ] a\n  - [ ] b\n    - [ ] c\n\t\t- [ ] d\n",
        [1, 2, 3, 4],
    ),
    "nested under a number": ("1. a\n   - [ ] b\n", [2]),
    "nested in one line": ("- 1. [ ] a\n", [1]),
    "up to three spaces before": ("   - [ ] a\n", [1]),
    "a tab behind the marker": ("-\t[ ] a\n", [1]),
    "a tab in the box": ("- [\t] a\n", [1]),
    "after a paragraph": ("text\n- [ ] a\n", [2]),
    "a list that begins with 1 after a paragraph": ("text\n1. [ ] a\n", [2]),
    "between paragraphs of its item": ("- [ ] a\n\n  more\n\n  - [ ] b\n", [1, 5]),
    "under a line that goes on without indent": ("- [ ] a\nmore\n    - [ ] b\n", [1, 3]),
    "a comment behind the text": ("- [ ] a <!-- note -->\n- [ ] b\n", [1, 2]),
    "an opened comment behind the text": ("- [ ] a <!--\n- [ ] b\n", [1, 2]),
    "code in the text": ("- [ ] `[ ] a` ```\n- [ ] b\n", [1, 2]),
    "after a table": ("| a |\n|---|\n| [ ] |\n\n- [ ] b\n", [5]),
    "no newline at the end": ("- [ ] a", [1]),
    "line ends of Windows": ("x\r\n\r\n- [ ] a\r\n- [ ] b\r\n", [3, 4]),
    "line ends of old Macs": ("x\r- [ ] a\r", [2]),
    "a byte order mark": ("\ufeff- [ ] a\n", [1]),
    "separators that are no line ends": ("x\u2028\x0b\x0c\x85- [ ] a\n- [ ] b\n", [2]),
}


@pytest.mark.parametrize(("markdown", "expected"), BOXES.values(), ids=BOXES)
def test_a_box(markdown: str, expected: list[int]) -> None:
    assert lines(markdown) == expected


NO_BOXES = {
    "nothing": "",
    "prose": "Nothing [ ] here.\n",
    "brackets without a marker": "[ ] a\n",
    "no space behind the marker": "-[ ] a\n",
    "nothing in the brackets": "- [] a\n",
    "two spaces in the brackets": "- [  ] a\n",
    "another sign in the brackets": "- [-] a\n- [~] b\n- [✓] c\n",
    "no space behind the brackets": "- [ ]a\n",
    "a link": "- [ ](a)\n",
    "no text": "- [ ]\n- [ ]   \n",
    "text before": "- a [ ] b\n",
    "a number of ten digits": "1234567890. [ ] a\n",
    "digits of another script": "١. [ ] a\n",
    "a list that begins with 2 in a paragraph": "text\n2. [ ] a\n",
    "a cell of a table": "| - [ ] a |\n",
    "a quotation": "> - [ ] a\n> - [ ] b\n",
    "indented code": "    - [ ] a\n",
    "indented code after a paragraph": "text\n\n\t- [ ] a\n",
    "indented code in an item": "- a\n\n      - [ ] b\n",
    "indented code under a rule": "* * *\n      - [ ] a\n",
    "code right behind a marker": "-     [ ] a\n",
    "five spaces under an item that began empty": "-\n\n     - [ ] a\n",
}


@pytest.mark.parametrize("markdown", NO_BOXES.values(), ids=NO_BOXES)
def test_no_box(markdown: str) -> None:
    assert boxes(markdown) == ()


VERBATIM = {
    "backticks": ("```\n- [ ] x\n```\n- [ ] a\n", [4]),
    "tildes": ("~~~\n- [ ] x\n~~~\n- [ ] a\n", [4]),
    "a fence with a language": ("```markdown\n- [ ] x\n```\n- [ ] a\n", [4]),
    "a longer fence around a shorter": ("````\n```\n- [ ] x\n```\n````\n- [ ] a\n", [6]),
    "a longer end": ("```\n- [ ] x\n`````\n- [ ] a\n", [4]),
    "tildes do not end backticks": ("```\n~~~\n- [ ] x\n```\n- [ ] a\n", [5]),
    "an end has nothing behind it": ("```\n``` x\n- [ ] x\n```  \n- [ ] a\n", [5]),
    "an end indented like code is none": ("```\n    ```\n- [ ] x\n```\n- [ ] a\n", [5]),
    "an indented fence": ("   ```\n- [ ] x\n  ```\n- [ ] a\n", [4]),
    "a fence in an item": ("- [ ] a\n  ```\n  - [ ] x\n  ```\n- [ ] b\n", [1, 5]),
    "a fence right behind a marker": ("- ```\n  - [ ] x\n  ```\n- [ ] a\n", [4]),
    "a fence ends with its item": ("- ```\n  - [ ] x\n- [ ] a\n", [3]),
    "a fence over a blank line": ("```\n\n- [ ] x\n\n```\n- [ ] a\n", [6]),
    "a fence without an end": ("- [ ] a\n\n```\n- [ ] x\n\n- [ ] y\n", [1]),
    "backticks in one line are no fence": ("``` `\n- [ ] a\n", [2]),
    "two backticks are no fence": ("``\n- [ ] a\n", [2]),
    "a quotation inside of a fence": ("```\n> ```\n- [ ] x\n```\n- [ ] a\n", [5]),
    "a comment": ("<!--\n- [ ] x\n-->\n- [ ] a\n", [4]),
    "a comment in one line": ("<!-- - [ ] x -->\n- [ ] a\n", [2]),
    "a comment that ends in text": ("<!-- x\n- [ ] x\ny --> z\n- [ ] a\n", [4]),
    "a comment over blank lines": ("<!--\n\n- [ ] x\n\n-->\n- [ ] a\n", [6]),
    "a comment between items": ("- [ ] a\n<!--\n- [ ] x\n-->\n- [ ] b\n", [1, 5]),
    "a comment without an end": ("- [ ] a\n\n<!--\n- [ ] x\n", [1]),
    "a fence inside of a comment": ("<!--\n```\n-->\n- [ ] a\n", [4]),
    "a comment inside of a fence": ("```\n<!--\n```\n- [ ] a\n", [4]),
    "preformatted HTML": ("<pre>\n- [ ] x\n</pre>\n- [ ] a\n", [4]),
    "YAML before the text": ("---\ntodo:\n  - [ ] x\n- [ ] y\n---\n- [ ] a\n", [6]),
    "TOML before the text": ("+++\n- [ ] x\n+++\n- [ ] a\n", [4]),
    "front matter that does not end": ("---\n- [ ] a\n", [2]),
    "front matter is at the front": ("\n---\n- [ ] a\n---\n", [3]),
}


@pytest.mark.parametrize(("markdown", "expected"), VERBATIM.values(), ids=VERBATIM)
def test_what_is_shown_as_it_stands_has_no_boxes(markdown: str, expected: list[int]) -> None:
    assert lines(markdown) == expected


OPTIONAL = {
    "a heading says so": (f"## Optional\n{BOX}", [True]),
    "in any letters": (f"# oPTIONAL things\n{BOX}", [True]),
    "in brackets, bold or slanted": (
        f"# A (optional)\n{BOX}# **Optional**\n{BOX}# _optional_\n{BOX}",
        [True] * 3,
    ),
    "under a heading with a line of hyphens": (f"Optional\n---\n{BOX}", [True]),
    "under a heading with a line of equals signs": (f"Nice, but\noptional\n===\n{BOX}", [True]),
    "up to a heading of the same level": (f"## Optional\n{BOX}## Core\n{BOX}", [True, False]),
    "up to a heading of a higher level": (f"## Optional\n{BOX}# Core\n{BOX}", [True, False]),
    "up to a heading with a line under it": (
        f"## Optional\n{BOX}\nCore\n---\n{BOX}",
        [True, False],
    ),
    "with the headings below it": (f"## Optional\n### Later\n{BOX}#### Last\n{BOX}", [True, True]),
    "from one to the next": (f"## Optional\n## Also optional\n{BOX}", [True]),
    "not above it": (f"{BOX}## Optional\n", [False]),
    "not beside it": (f"# All\n## Optional\n## Core\n{BOX}", [False]),
    "not as a part of a word": (f"# Optionally\n{BOX}# Nonoptional\n{BOX}", [False, False]),
    "not when it says the opposite": (
        f"# Non-optional\n{BOX}# Not optional\n{BOX}",
        [False, False],
    ),
    "not in a paragraph": (f"Optional\n\n{BOX}", [False]),
    "not by the text of the box": ("- [ ] optional\n", [False]),
    "not in seven hashes or without a space": (f"####### Optional\n#Optional\n{BOX}", [False]),
    "not in a fence": (f"```\n# Optional\n```\n{BOX}", [False]),
    "not in an item": (f"- # Optional\n{BOX}", [False]),
    "not by a rule under an item": (f"- optional\n---\n{BOX}", [False]),
}


@pytest.mark.parametrize(("markdown", "expected"), OPTIONAL.values(), ids=OPTIONAL)
def test_optional(markdown: str, expected: list[bool]) -> None:
    assert [box.optional for box in boxes(markdown)] == expected


PARENTS = {
    "none beside each other": ("- [ ] a\n- [ ] b\n", [None, None]),
    "nested": ("- [ ] a\n  - [ ] b\n    - [ ] c\n  - [ ] d\n- [ ] e\n", [None, 1, 2, 1, None]),
    "through an item without a box": ("- [ ] a\n  - x\n    - [ ] b\n", [None, 1]),
    "not from the list before": ("- [ ] a\n\n# H\n\n- x\n  - [ ] b\n", [None, None]),
    "not from an item that is over": ("- [ ] a\n- x\n  - [ ] b\n", [None, None]),
    "in one line": ("- [ ] a\n  1. - [ ] b\n", [None, 1]),
    "behind a paragraph": ("- [ ] a\n\n  more\n\n  - [ ] b\n", [None, 1]),
}


@pytest.mark.parametrize(("markdown", "expected"), PARENTS.values(), ids=PARENTS)
def test_what_a_box_is_nested_in(markdown: str, expected: list[int | None]) -> None:
    assert [box.parent for box in boxes(markdown)] == expected


FILE = """\
# Tasks

- [x] 1.1 Read the spec
- [ ] 1.2 Write the code
  - [x] the parser
  - [ ] the printer

## Optional
- [ ] 2.1 Paint it
"""


def test_what_a_box_says_and_what_is_left() -> None:
    assert boxes(FILE)[0] == Box(
        line=3, text="1.1 Read the spec", done=True, optional=False, mark=3, parent=None
    )
    assert [box.text for box in open_boxes(FILE)] == ["1.2 Write the code", "the printer"]
    assert [box.done for box in boxes(FILE)] == [True, False, True, False, False]


def test_a_file_without_boxes_is_told_from_one_that_is_done() -> None:
    assert (boxes("# Tasks\n"), open_boxes("# Tasks\n")) == ((), ())
    assert (len(boxes("- [x] a\n")), open_boxes("- [x] a\n")) == (1, ())


MEGABYTE = 1_000_000
STAIRS = "".join(" " * (2 * depth) + "- x\n" for depth in range(700))
HOSTILE = {
    "markers in one line": "- " * (MEGABYTE // 2) + "x",
    "stars in one line": "* " * (MEGABYTE // 2) + "x",
    "numbers in one line": "1. " * (MEGABYTE // 3),
    "spaces": " " * MEGABYTE,
    "tabs": "\t" * MEGABYTE,
    "backticks": "`" * MEGABYTE,
    "fences": "```\n" * (MEGABYTE // 4),
    "fences of every length": "".join("`" * n + "\n~\n" for n in range(3, 1400)),
    "hashes": "#" * MEGABYTE,
    "hyphens": "-" * MEGABYTE,
    "comments that open": "<!--" * (MEGABYTE // 4),
    "brackets": "- " + "[" * MEGABYTE,
    "newlines": "\n" * MEGABYTE,
    "stairs, and lines that belong to each step": STAIRS + "x\n" * (MEGABYTE // 4),
    "front matter without an end": "---\n" + "a\n" * (MEGABYTE // 2),
    "headings with lines under them": "a\n=\n" * (MEGABYTE // 4),
}


@pytest.mark.parametrize("markdown", HOSTILE.values(), ids=HOSTILE)
def test_a_megabyte_of_anything_is_read_in_seconds(markdown: str) -> None:
    with cpu_limit():
        assert boxes(markdown) == ()


def test_a_hundred_thousand_boxes_are_counted() -> None:
    assert len(open_boxes("- [ ] a\n" * 100_000)) == 100_000


pieces = st.sampled_from(
    [
        "- ",
        "* ",
        "1. ",
        "[ ] ",
        "[x] ",
        "a",
        "#",
        "`",
        "```",
        "~~~",
        "<!--",
        "-->",
        "\n",
        "\n",
        " ",
        "\t",
        "> ",
        "---",
    ]
)


@given(st.lists(pieces, max_size=40).map("".join))
def test_any_text_has_boxes_in_order_with_their_marker(markdown: str) -> None:
    found = boxes(markdown)
    assert [box.line for box in found] == sorted({box.line for box in found})
    rows = markdown.split("\n")
    for box in found:
        assert rows[box.line - 1][box.mark] == ("x" if box.done else " ")
        assert box.parent is None or box.parent < box.line
        assert "[x]" in rows[box.line - 1] if box.done else "[ ]" in rows[box.line - 1]
        assert box.text
