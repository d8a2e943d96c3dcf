"""Names that a stranger can guess: no module is a gerund or a participle, and a class name stands for one class."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.support import ROOT

PARTICIPLE = re.compile(r"(?:ing|ed)$")
IRREGULAR = re.compile(
    r"begun|broken|built|come|done|drawn|fed|found|given|gone|heard|held|kept|known|left|lost|made|met|said|seen|sent|shown"
    r"|spent|taken|told|torn|written"
)
MODULES = sorted((ROOT / "guard").rglob("*.py"))


def names_a_state(stem: str) -> bool:
    word = stem.rpartition("_")[2]
    return bool(PARTICIPLE.search(word) or IRREGULAR.fullmatch(stem))


def test_no_module_is_named_by_a_gerund_or_a_participle() -> None:
    assert [str(path.relative_to(ROOT)) for path in MODULES if names_a_state(path.stem)] == []


@pytest.mark.parametrize("stem", ["telling", "registered", "kept", "told", "line_meaning"])
def test_such_a_name_is_found(stem: str) -> None:
    assert names_a_state(stem)


@pytest.mark.parametrize(
    "stem", ["assess", "agent_watch", "kept_output", "process_table", "record"]
)
def test_a_noun_or_an_imperative_is_none(stem: str) -> None:
    assert not names_a_state(stem)


def classes(paths: list[Path]) -> dict[str, list[str]]:
    found = defaultdict(list)
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(f"{path.name}:{node.lineno}")
    return found


def test_a_class_name_stands_for_one_class() -> None:
    assert {name: places for name, places in classes(MODULES).items() if len(places) > 1} == {}


def test_a_class_name_that_is_used_twice_is_found(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.py", "b.py")]
    for path in paths:
        path.write_text("class Place:\n    pass\n")
    assert classes(paths) == {"Place": ["a.py:1", "b.py:1"]}
