"""A rescue of files that do not parse says so, and rescues them all the same."""

from pathlib import Path

import pytest

from guard.rescue import syntax_check
from tests.rescue.states import start
from tests.support import commit, git, write
from tests.support.rescues import attempt_rescue


@pytest.fixture(autouse=True)
def started(repository: Path) -> None:
    start(repository)


def subjects(root: Path) -> list[str]:
    return git(root, "log", "--format=%s", "--grep=Guard-Rescue").splitlines()


def test_broken_code_is_no_feature(repository: Path, workspace: Path) -> None:
    write(repository / "broken.py", "def broken(:\n    pass\n")
    write(repository / "api" / "whole.py", "def whole():\n    pass\n")
    result = attempt_rescue(repository, workspace, ["broken.py", "api/whole.py"])
    assert result.reason == "rescued"
    assert sorted(subjects(repository)) == ["feat(api): add whole", "wip: add broken"]
    body = git(repository, "log", "--format=%b", "--grep=^wip")
    assert "Does not parse:\n- broken.py: Python: " in body
    assert "Guard-Rescue: r1/2" in body
    assert "committed as wip, because it does not parse: broken.py (Python: " in result.detail
    assert git(repository, "status", "--porcelain") == ""


def test_a_dry_run_says_it_too(repository: Path, workspace: Path) -> None:
    write(repository / "a.json", '{"a": ')
    result = attempt_rescue(repository, workspace, ["a.json"], dry=True)
    assert [planned.subject[:4] for planned in result.plan] == ["wip:"]


def test_conflict_markers_in_any_language(repository: Path, workspace: Path) -> None:
    write(repository / "a.go", "package a\n<<<<<<< HEAD\n=======\n>>>>>>> b\n")
    attempt_rescue(repository, workspace, ["a.go"])
    assert subjects(repository) == ["wip: add a.go"]
    assert "- a.go: conflict markers" in git(repository, "log", "-1", "--format=%b")


def test_a_file_that_never_parsed_is_judged_by_nobody(repository: Path, workspace: Path) -> None:
    write(repository / "old.py", "".join(f"print 'line {n}'\n" for n in range(20)))
    write(repository / "moved.py", "".join(f"print 'other {n}'\n" for n in range(20)))
    git(repository, "add", ".")
    commit(repository, "In an older Python")
    write(repository / "old.py", (repository / "old.py").read_text() + "print 'more'\n")
    (repository / "moved.py").rename(repository / "elsewhere.py")
    attempt_rescue(repository, workspace, ["old.py", "moved.py", "elsewhere.py"])
    assert subjects(repository)
    assert not [subject for subject in subjects(repository) if subject.startswith("wip")]


def test_what_tests_read_may_be_broken_on_purpose(repository: Path, workspace: Path) -> None:
    write(repository / "tests" / "data" / "bad.json", "{")
    (repository / "link.py").symlink_to("def broken(:")
    write(repository / "long.py", "x = (\n" + "# long\n" * 50_000)
    attempt_rescue(repository, workspace, ["tests/data/bad.json", "link.py", "long.py"])
    assert subjects(repository)
    assert not [subject for subject in subjects(repository) if subject.startswith("wip")]


@pytest.mark.parametrize(
    "main",
    ["raise SystemExit(3)", "print('no JSON')", "import os; os.abort()", "while True: pass"],
    ids=["it fails", "its answer is not readable", "it crashes", "it hangs"],
)
def test_a_fault_of_the_look_refuses_no_rescue(
    repository: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch, main: str
) -> None:
    monkeypatch.setattr(syntax_check, "_MAIN", f"\n{main}\n")
    monkeypatch.setattr(syntax_check, "_MOST_SECONDS", 0.5)
    write(repository / "broken.py", "def broken(:\n")
    assert attempt_rescue(repository, workspace, ["broken.py"]).reason == "rescued"
    assert subjects(repository) == ["feat: add broken"]
