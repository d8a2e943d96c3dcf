"""The table of capabilities: every row names tests, and each of them exists."""

import re

import pytest

from tests.support import ROOT

PAGE = (ROOT / "docs/contributing/capabilities.md").read_text()
ROWS = [line for line in PAGE.splitlines() if re.match(r"\| (?!capability|---)", line)]
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)::(test_\w+)`", PAGE)))


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_test_that_the_table_names_exists(file: str, name: str) -> None:
    source = (ROOT / "tests" / file).read_text()
    assert re.search(rf"^def {name}\(", source, re.MULTILINE), f"{file} has no {name}"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip()[:40])
def test_every_row_has_a_command_and_a_test(row: str) -> None:
    _, capability, command, tests, _ = (cell.strip() for cell in row.split("|"))
    assert capability
    assert command
    assert "::test_" in tests
