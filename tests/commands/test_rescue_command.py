"""The user's own rescue program: run instead of guard's rescue, and judged by what it leaves in the repository."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.support import commit, git, run, write
from tests.support.rescues import contents
from tests.support.sessions import script

LEFT = {"src/code.py": "x = 1\n", "docs/guide.md": "# guide\n"}


@pytest.fixture(autouse=True)
def begun(repository: Path) -> None:
    """A baseline with work of the user's, and what an agent left."""
    for name in ("first.txt", "gone.txt"):
        commit(repository, name)
    write(repository / "mine.txt", "the user's\n")
    assert run("baseline").code == 0
    for name, text in LEFT.items():
        write(repository / name, text)
    (repository / "gone.txt").unlink()


def rescued(
    tmp_path: Path, text: str, *words: str, code: int, env: dict[str, str] | None = None
) -> dict[str, Any]:
    command = {"GUARD_RESCUE__COMMAND": script(tmp_path / "program", f"set -e\n{text}")}
    result = run("rescue", "--format", "json", *words, env={**command, **(env or {})})
    assert result.code == code, (result.out, result.err)
    found: dict[str, Any] = result.json
    return found


def held(found: dict[str, Any]) -> dict[str, str]:
    return {one["path"]: one["why"] for one in found["held_back"]}


def last_snapshot() -> dict[str, Any]:
    found: dict[str, Any] = run("snapshots", "--format", "json").json["snapshots"][-1]
    return found


ALL = "git add src && git commit -qm one && git add docs gone.txt && git commit -qm two"


def test_one_that_commits_all(repository: Path, tmp_path: Path) -> None:
    found = rescued(tmp_path, ALL, code=0)
    assert (found["reason"], found["branch"], found["held_back"]) == ("rescued", None, [])
    assert found["commits"] == git(repository, "rev-list", "--reverse", "-2", "HEAD").split()
    assert found["detail"] == "the rescue command ended with exit code 0, and made 2 commits"
    assert git(repository, "status", "--porcelain") == "?? mine.txt\n"
    kept = last_snapshot()
    assert (kept["kind"], kept["unpromoted"]) == ("rescue", False)
    assert kept["id"] == found["snapshot"]["id"]


def test_its_commits_are_listed_in_the_text(repository: Path, tmp_path: Path) -> None:
    command = script(tmp_path / "program", ALL)
    result = run("rescue", env={"GUARD_RESCUE__COMMAND": command})
    ids = git(repository, "log", "--reverse", "-2", "--format=%h", "--abbrev=10").split()
    assert [line.strip() for line in result.out.splitlines()[2:]] == ids


def test_one_that_marks_its_commits_as_guard_does(repository: Path, tmp_path: Path) -> None:
    text = 'git add src docs gone.txt && git commit -qm "fix: x" -m "Guard-Rescue: $GUARD_RESCUE"'
    found = rescued(tmp_path, text, code=0)
    assert (found["reason"], len(found["commits"])) == ("rescued", 1)
    marks = git(repository, "log", "-1", "--format=%(trailers:key=Guard-Rescue,valueonly)").strip()
    assert marks == f"{found['run']}/{found['iteration']}"


def test_its_exit_code_is_told_and_counts_for_nothing(tmp_path: Path) -> None:
    found = rescued(tmp_path, f"{ALL}\nexit 3", code=0)
    assert found["reason"] == "rescued"
    assert "ended with exit code 3" in found["detail"]


def test_what_it_did_not_commit_is_named(tmp_path: Path) -> None:
    found = rescued(tmp_path, "git add src && git commit -qm one", code=1)
    assert found["reason"] == "rescued"
    assert held(found) == {
        "docs/guide.md": "not_committed: by the rescue command",
        "gone.txt": "not_committed: its deletion, by the rescue command",
    }
    assert "2 paths held back: not_committed" in found["detail"]
    assert last_snapshot()["unpromoted"]


@pytest.mark.parametrize("text", ["git commit -q --allow-empty -m nothing", "exit 1"])
def test_one_that_commits_nothing(text: str, tmp_path: Path) -> None:
    found = rescued(tmp_path, text, code=1)
    assert (found["reason"], found["commits"]) == ("refused", [])
    assert set(held(found)) == {*LEFT, "gone.txt"}
    assert last_snapshot()["unpromoted"]


def test_one_that_commits_elsewhere(repository: Path, tmp_path: Path) -> None:
    text = f"git checkout -qb other; {ALL}; git checkout -q main"
    found = rescued(tmp_path, text, code=1)
    assert (found["reason"], found["branch"]) == ("not_plain:branch_changed", "refs/heads/other")
    assert found["held_back"] == []
    assert last_snapshot()["unpromoted"]


@pytest.mark.parametrize(
    "text",
    [
        "rm -r src; echo x > x.txt; git add x.txt; git commit -qm instead",
        "git add -A src; git rm -qrf src; echo x > x.txt; git add x.txt; git commit -qm instead",
    ],
)
def test_work_that_it_deletes_is_named_and_in_the_snapshot(
    text: str, repository: Path, tmp_path: Path
) -> None:
    before = contents(repository)
    found = rescued(tmp_path, f"{text}; git add docs gone.txt; git commit -qm rest", code=1)
    assert held(found) == {"src/code.py": "not_committed: by the rescue command"}
    assert last_snapshot()["unpromoted"]
    words = ("restore", found["snapshot"]["id"], "--to", tmp_path / "back")
    assert run(*words).code == 0
    assert contents(tmp_path / "back") == before


def test_work_that_it_changes_is_named(tmp_path: Path) -> None:
    found = rescued(tmp_path, f"echo '# other' > src/code.py; {ALL}", code=1)
    assert held(found) == {"src/code.py": "not_as_it_was: changed by the rescue command"}


def test_a_secret_that_it_commits_is_named(repository: Path, tmp_path: Path) -> None:
    write(repository / "src/key.py", 'T = "ghp_' + 'a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"\n')
    found = rescued(tmp_path, ALL, code=1)
    assert list(held(found)) == ["src/key.py"]
    assert held(found)["src/key.py"].startswith("committed by the rescue command: secret: ")


@pytest.mark.long
def test_one_that_hangs_is_ended(tmp_path: Path) -> None:
    limit = {"GUARD_RESCUE__TIME_LIMIT_SECONDS": "45"}
    text = "git add src && git commit -qm one; sleep 600"
    found = rescued(tmp_path, text, code=1, env=limit)
    assert found["reason"] == "rescued"
    assert "did not end in time, and made 1 commit;" in found["detail"]


def test_the_spec_is_its_argument(tmp_path: Path) -> None:
    rescued(tmp_path, f'echo "$1" > {tmp_path}/spec; {ALL}', "--spec", "login", code=0)
    assert (tmp_path / "spec").read_text() == "login\n"


def no_program(tmp_path: Path) -> str:
    return "commit-rescue.py --fast"


def no_format(tmp_path: Path) -> str:
    return shlex.quote(str(_made(tmp_path / "broken", "#!/nowhere/at/all\n")))


def no_words(tmp_path: Path) -> str:
    return 'rescue "without an end'


def not_executable(tmp_path: Path) -> str:
    return shlex.quote(str(write(tmp_path / "plain", "#!/bin/sh\n")))


def _made(path: Path, text: str) -> Path:
    write(path, text).chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (no_program, "there is no rescue command 'commit-rescue.py'"),
        (no_format, "the rescue command does not start"),
        (no_words, "cannot be split into words"),
        (not_executable, "there is no rescue command"),
    ],
)
def test_one_that_cannot_be_run_is_a_warning_and_guards_own_rescue(
    command: Any, words: str, repository: Path, tmp_path: Path
) -> None:
    result = run("rescue", "--format", "json", env={"GUARD_RESCUE__COMMAND": command(tmp_path)})
    assert (result.code, result.json["reason"]) == (0, "rescued")
    assert words in result.err
    assert "guard uses its own rescue instead" in result.err
    assert git(repository, "status", "--porcelain") == "?? mine.txt\n"


def test_one_that_lies_in_the_work_tree_is_not_found_by_its_name(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(repository / "bin/commit-rescue", f"touch {tmp_path}/ran")
    monkeypatch.setenv("PATH", str(repository / "bin"), prepend=":")
    result = run("rescue", env={"GUARD_RESCUE__COMMAND": "commit-rescue"})
    assert "there is no rescue command 'commit-rescue'" in result.err
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("word", ["--dry-run", "--branch"])
def test_it_has_no_part_in_a_plan_or_a_branch_of_its_own(
    word: str, tmp_path: Path, repository: Path
) -> None:
    command = script(tmp_path / "program", f"touch {tmp_path}/ran")
    result = run("rescue", word, env={"GUARD_RESCUE__COMMAND": command})
    assert result.code == 0
    assert "guard uses its own rescue, not the rescue command" in result.err
    assert not (tmp_path / "ran").exists()
