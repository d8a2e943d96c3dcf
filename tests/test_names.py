"""Names that a stranger can guess: no module is a gerund or a participle, and a class name stands for one class."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.support import ROOT

PARTICIPLE = re.compile(
    r".*(?:ing|ed)|begun|broken|built|come|done|drawn|found|given|gone|heard|held|kept|known|left|lost|made|met|said|seen"
    r"|sent|shown|spent|taken|told|torn|written"
)
NOUNS = frozenset({"landing"})
"""Words that look like a participle and are nouns: one is added with the module that is named by it."""
MODULES = sorted((ROOT / "guard").rglob("*.py"))
CHECKED = [
    *MODULES,
    *(path for name in ("tests", "benchmarks") for path in (ROOT / name).rglob("*.py")),
]


def names_a_state(stem: str) -> bool:
    """Tell whether the last word of a module's name is a gerund or a participle."""
    word = stem.removeprefix("test_").rpartition("_")[2]
    return PARTICIPLE.fullmatch(word) is not None and word not in NOUNS


def names_in(paths: list[Path], root: Path) -> list[str]:
    """List the modules, and the folders of modules, that are named by a gerund or a participle."""
    found = [path.relative_to(root).with_suffix("") for path in paths]
    return [str(path) for path in found if any(names_a_state(part) for part in path.parts)]


def test_no_module_is_named_by_a_gerund_or_a_participle() -> None:
    assert names_in(CHECKED, ROOT) == []


@pytest.mark.parametrize("stem", ["telling", "registered", "kept", "told", "line_meaning"])
def test_such_a_name_is_found(stem: str) -> None:
    assert names_a_state(stem)


@pytest.mark.parametrize(
    "path",
    [
        "guard/run/watching.py",
        "guard/watching/run.py",
        "tests/support/rescuing.py",
        "tests/run/test_files_kept.py",
    ],
)
def test_such_a_module_is_found_wherever_it_is(path: str, tmp_path: Path) -> None:
    assert names_in([tmp_path / path], tmp_path) == [path.removesuffix(".py")]


@pytest.mark.parametrize(
    "stem", ["assess", "agent_watch", "kept_output", "process_table", "record"]
)
def test_a_noun_or_an_imperative_is_none(stem: str) -> None:
    assert not names_a_state(stem)


def test_each_noun_that_is_allowed_is_used() -> None:
    used = {word for path in CHECKED for word in path.stem.split("_")}
    assert used >= NOUNS


def classes(paths: list[Path]) -> dict[str, list[str]]:
    found = defaultdict(list)
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(f"{path.name}:{node.lineno}")
    return found


def repeated(paths: list[Path]) -> dict[str, list[str]]:
    return {name: places for name, places in classes(paths).items() if len(places) > 1}


def test_a_class_name_stands_for_one_class() -> None:
    assert repeated(MODULES) == {}


def test_a_class_name_that_is_used_twice_is_found(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.py", "b.py")]
    for path in paths:
        path.write_text("class Place:\n    pass\n")
    assert repeated(paths) == {"Place": ["a.py:1", "b.py:1"]}
