"""The documents say what is true."""

import re
import tomllib
from pathlib import Path

import pytest

from docs.generate import stale
from guard.cli import COMMANDS
from guard.core.log.table import view_kinds
from tests.support import ROOT

INDEX = ROOT / "docs" / "README.md"
PAGES = [
    *(ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "SECURITY.md"),
    ROOT / ".github" / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def links(page: Path) -> list[str]:
    """Return the targets of the links on a page, code left out, without their fragments."""
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"\]\(([^)#]+)", text)


def linked_pages(page: Path) -> set[Path]:
    return {(page.parent / target).resolve() for target in links(page) if "://" not in target}


def test_generated_pages_are_current() -> None:
    assert stale() == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for target in links(page):
        assert target.startswith("https://") or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_that_are_named_exist(page: Path) -> None:
    text = page.read_text()
    blocks = re.findall(r"^```.*?^```|^    \$ .*$", text, re.DOTALL | re.MULTILINE)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    lines = [*"\n".join(blocks).splitlines(), *re.findall(r"`([^`]+)`", prose)]
    named = {name for line in lines for name in re.findall(r"(?:^|\$ )guard ([a-z]+)", line)}
    assert named <= set(COMMANDS), named - set(COMMANDS)


def test_the_index_lists_every_page_once() -> None:
    listed = re.findall(r"^- \[[^]]+\]\(([^)#]+)\)", INDEX.read_text(), re.MULTILINE)
    pages = {name_of(page) for page in (ROOT / "docs").rglob("*.md")} - {name_of(INDEX)}
    named = [name_of((INDEX.parent / target).resolve()) for target in listed]
    assert sorted(name for name in named if name.startswith("docs/")) == sorted(pages)


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    found = {ROOT / "README.md"}
    while found:
        reached |= found
        found = {
            target
            for page in found
            for target in linked_pages(page)
            if target.suffix == ".md" and target not in reached
        }
    assert {name_of(page) for page in PAGES} <= {name_of(page) for page in reached}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_of_the_project_that_are_named_exist(page: Path) -> None:
    text = page.read_text()
    files = re.findall(
        r"`((?:guard|tests|docs|benchmarks|examples)/[\w/.-]+\.\w+|\.ci/[\w.]+)`", text
    )
    modules = re.findall(r"`(guard\.\w+\.[\w.]+)`|python -m (guard\.[\w.]+)", text)
    names = [*files, *(f"{''.join(name).replace('.', '/')}" for name in modules)]
    missing = [n for n in names if not (ROOT / n).exists() and not (ROOT / f"{n}.py").exists()]
    assert missing == []


def test_pages_that_the_code_names_exist() -> None:
    for path in [*(ROOT / "guard").rglob("*.py"), ROOT / "action.yml"]:
        for name in re.findall(r"\bdocs/[\w/.-]+\.md", path.read_text()):
            assert (ROOT / name).is_file(), f"{path} names {name}"


ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()


def test_the_architecture_shows_the_tree_as_it_is() -> None:
    tree = ARCHITECTURE.partition("```\nguard/\n")[2].partition("```")[0]
    shown = [
        name.removesuffix("/")
        for line in re.findall(r"^  (\S.*)$", tree, re.MULTILINE)
        for name in re.findall(r"[a-z]+(?:/|\.py)(?=\s|$)", line)
    ]
    folders = [path.parent for path in ROOT.glob("guard/*/__init__.py")]
    modules = [path for path in ROOT.glob("guard/*.py") if not path.name.startswith("__")]
    assert sorted(shown) == sorted(path.name for path in [*folders, *modules])


def test_the_architecture_lists_the_layers_that_are_checked() -> None:
    imports = ARCHITECTURE.partition("\n## Imports\n")[2]
    shown = re.findall(r"^\d\. (.*)$", imports, re.MULTILINE)
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    (layers,) = [one["layers"] for one in contracts if one["type"] == "layers"]
    assert [re.findall(r"`(\w+)`", line) for line in shown] == [
        re.findall(r"\w+", one) for one in layers
    ]


def test_every_state_file_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "state.md").read_text()
    for kind in view_kinds():
        assert kind.file.rpartition("/")[2] in page


def test_ci_runs_the_readmes_test_command() -> None:
    commands = re.findall(
        r"^    (python3 -m venv .*)$", (ROOT / "README.md").read_text(), re.MULTILINE
    )
    assert [command.rpartition(" ")[2] for command in commands] == ["demo", ".venv/bin/pytest"]
    assert "README.md" in (ROOT / ".ci" / "run").read_text()
