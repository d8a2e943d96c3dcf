"""The documents say what is true."""

import re
from pathlib import Path

import pytest

from docs.generate import stale
from guard.cli import COMMANDS
from guard.core.replay import view_kinds
from tests.support import ROOT

PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_generated_pages_are_current() -> None:
    assert stale() == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        assert target.startswith("https://") or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_that_are_named_exist(page: Path) -> None:
    named = set(re.findall(r"(?:`|\$ |^)guard ([a-z]+)", page.read_text(), re.MULTILINE))
    assert named <= set(COMMANDS), named - set(COMMANDS)


def test_every_state_file_is_documented() -> None:
    page = (ROOT / "docs" / "state.md").read_text()
    for kind in view_kinds():
        assert kind.file.rpartition("/")[2] in page


def test_ci_runs_the_readmes_test_command() -> None:
    commands = re.findall(
        r"^    (python3 -m venv .*)$", (ROOT / "README.md").read_text(), re.MULTILINE
    )
    assert [command.rpartition(" ")[2] for command in commands] == ["demo", ".venv/bin/pytest"]
    assert "README.md" in (ROOT / ".ci" / "run").read_text()
