"""Work whose history is not here, or is hidden, is never proven for want of a baseline."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import git, run, write

PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"
TESTS = "import calc\n\n\ndef test_sum():\n    assert calc.add(1, 2) == 3\n"
WEAK = "def test_nothing():\n    pass\n"


@pytest.fixture(autouse=True)
def project(repository: Path) -> Path:
    """Make three commits; the last one breaks the code and guts the tests."""
    save(repository, {"conftest.py": "", "calc.py": "def add(a, b):\n    return a + b\n"})
    save(repository, {"tests/test_calc.py": TESTS})
    broken = {"calc.py": "def add(a, b):\n    return a - b\n", "tests/test_calc.py": WEAK}
    return save(repository, broken)


def save(project: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        write(project / path, text)
    git(project, "add", "-A")
    git(project, "commit", "-qm", "work")
    return project


def clone(project: Path, *words: str) -> Path:
    git(project, "config", "uploadpack.allowFilter", "true")
    folder = project.parent / "clone"
    git(project, "clone", "-q", *words, project.as_uri(), str(folder))
    git(folder, "config", "user.name", "Test")
    git(folder, "config", "user.email", "test@example.org")
    return folder


def prove(*words: str, code: int = 1) -> dict[str, Any]:
    found = run("prove", "--format", "json", "--command", PYTEST, *words)
    assert found.code == code, found.out + found.err
    document: dict[str, Any] = json.loads(found.out)
    return document


def said(proof: dict[str, Any]) -> tuple[str, str]:
    return proof["result"], proof["reason"]


def test_a_shallow_clone_proves_nothing_until_it_has_the_commit_before(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = git(project, "rev-parse", "HEAD~1").strip()
    shallow = clone(project, "--depth", "1")
    monkeypatch.chdir(shallow)
    for found in (prove(), prove("--baseline", parent)):
        assert said(found) == ("unverifiable", "history_missing")
        assert found["baseline"] == parent
        assert found["cells"] == {}
        assert "git fetch --deepen" in found["detail"]
    refused = run("prove", "--command", PYTEST, "--baseline", "HEAD~1")
    assert refused.code == 4
    assert "git fetch --deepen" in refused.err
    git(shallow, "fetch", "-q", "--deepen", "1")
    assert said(prove(code=17)) == ("refuted", "tests_weakened")


def hide_by_shallow(project: Path) -> None:
    write(project / ".git/shallow", git(project, "rev-parse", "HEAD"))


def hide_by_graft(project: Path) -> None:
    write(project / ".git/info/grafts", git(project, "rev-parse", "HEAD"))


def hide_by_replacement(project: Path) -> None:
    git(project, "replace", "--graft", "HEAD")


@pytest.mark.parametrize("hide", [hide_by_shallow, hide_by_graft, hide_by_replacement])
def test_a_parent_that_git_is_told_to_hide_is_the_baseline_all_the_same(
    project: Path, hide: Callable[[Path], None]
) -> None:
    parent = git(project, "rev-parse", "HEAD~1").strip()
    hide(project)
    found = prove(code=17)
    assert said(found) == ("refuted", "tests_weakened")
    assert found["baseline"] == parent


def test_history_that_was_thrown_away_is_held_against_the_recorded_baseline(project: Path) -> None:
    before = git(project, "rev-parse", "HEAD~1").strip()
    git(project, "reset", "-q", "--hard", before)
    assert run("baseline").code == 0
    git(project, "checkout", "-q", "--orphan", "fresh")
    save(project, {"calc.py": "def add(a, b):\n    return 0\n", "tests/test_calc.py": WEAK})
    assert said(prove(code=17)) == ("refuted", "tests_weakened")
    save(project, {"README": "words\n"})
    assert said(prove(code=17)) == ("refuted", "tests_weakened")


def test_a_partial_clone_proves_nothing_without_the_files_of_the_baseline(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partial = clone(project, "--filter=blob:none")
    monkeypatch.chdir(partial)
    found = prove()
    assert said(found) == ("unverifiable", "objects_missing")
    assert found["head"] == git(project, "rev-parse", "HEAD").strip()
    assert found["baseline"] == git(project, "rev-parse", "HEAD~1").strip()
    assert "partial clone" in found["detail"]
    seen = run("prove", "--command", PYTEST)
    assert "git fetch --refetch" in seen.out
    save(partial, {"README": "words\n"})
    words = ("check", "--baseline", "HEAD~2", "--no-probe", "--no-wait", "--format", "json")
    report = run(*words, "--prove", PYTEST).json
    assert (report["status"], report["assurance"]) == ("complete", "unproven")
    assert said(report["proof"]) == ("unverifiable", "objects_missing")
    git(partial, "archive", "-o", str(partial.parent / "all.tar"), "HEAD~2")
    assert said(prove("--baseline", "HEAD~2", code=17)) == ("refuted", "tests_weakened")
