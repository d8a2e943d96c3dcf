"""A git that hangs or is slow: the check ends in its time, with a repository problem, and never as a verdict or a bug.

The limits in these tests are short and the git hangs for good, so a check that returns at all was ended by its limit.
"""

import os
import shutil
import time
from pathlib import Path

import pytest

import guard
from guard.errors import RepositoryProblem
from guard.git.locate import find_repository
from guard.git.reader import RepositoryReader
from guard.git.run import GitTimedOut, limit_git, run_git
from guard.system.clock import Deadline
from tests.support import Result, commit, git, run, write

GIT = shutil.which("git")
HANGS = "exec sleep 1000"
ONE_LOOK = ("check", "--no-probe", "--no-wait")


@pytest.fixture
def left_work(repository: Path) -> Path:
    """An iteration that left a file."""
    commit(repository, "first.txt")
    assert run("baseline").code == 0
    write(repository / "new.txt", "work\n")
    return repository


def plant_git(folder: Path, when: str = "*", does: str = HANGS) -> str:
    """Return a PATH whose git does something else first when its words match a shell pattern."""
    script = f'#!/bin/sh\ncase " $* " in {when}) {does};; esac\nexec {GIT} "$@"\n'
    write(folder / "bin" / "git", script).chmod(0o755)
    return f"{folder / 'bin'}:{os.environ['PATH']}"


def check(path: str, git_seconds: float, max_seconds: float = 900, *words: str) -> Result:
    env = {
        "PATH": path,
        "GUARD_COMPLETION_CHECK__GIT_TIMEOUT_SECONDS": str(git_seconds),
        "GUARD_COMPLETION_CHECK__MAX_SECONDS": str(max_seconds),
    }
    return run(*(words or ONE_LOOK), env=env)


@pytest.mark.parametrize(
    "command", [ONE_LOOK, ("baseline",), ("rescue",)], ids=lambda words: words[0]
)
def test_a_git_that_never_answers_ends_every_command_as_a_repository_problem(
    left_work: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    begun = time.monotonic()
    result = check(plant_git(tmp_path), 0.5, 900, *command)
    # Without a limit on the snapshot that is taken after the first time-out, this took longer than five minutes.
    assert time.monotonic() - begun < 120
    assert result.code == 4, result.err
    assert "took longer than 0.5 s" in result.err
    assert "bug in guard" not in result.err


def test_a_git_that_is_slower_than_its_limit_is_a_repository_problem(
    left_work: Path, tmp_path: Path
) -> None:
    result = check(plant_git(tmp_path, does="sleep 4"), 0.5)
    assert result.code == 4, result.err
    assert "took longer than 0.5 s" in result.err


def test_a_git_that_hangs_at_one_question_leaves_the_work_saved(
    left_work: Path, tmp_path: Path
) -> None:
    # The other calls of git have to answer in this time, on a busy machine too.
    result = check(plant_git(tmp_path, "*' status '*"), 6)
    assert result.code == 4, result.err
    assert "the work tree is saved: guard restore" in result.err


def test_a_git_that_hangs_while_it_moves_the_branch_ends_a_rescue_and_leaves_no_lock(
    left_work: Path, tmp_path: Path
) -> None:
    head = git(left_work, "rev-parse", "HEAD")
    begun = time.monotonic()
    result = check(plant_git(tmp_path, "*' update-ref -m '*"), 60, 12, "rescue")
    assert time.monotonic() - begun < 120
    assert (result.code, "guard restore" in result.out) == (1, True), result
    assert "update-ref failed: it did not end in its time" in result.out
    assert git(left_work, "rev-parse", "HEAD") == head
    assert not (left_work / ".git" / "index.lock").exists()
    assert run("rescue").code == 0
    assert git(left_work, "status", "--porcelain") == ""


@pytest.mark.parametrize("word", ["fast-import", "cat-file"])
def test_a_git_that_hangs_in_the_snapshot_ends_with_the_time_of_the_check(
    left_work: Path, tmp_path: Path, word: str
) -> None:
    result = check(plant_git(tmp_path, f"*' {word} '*"), 60, 6)
    assert result.code == 4, result.err
    assert "git used up the 4 s that it may take in a check" in result.err
    assert "completion_check.max_seconds" in result.err


def test_probes_and_waits_are_not_in_the_time_of_the_check(
    left_work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "probe", "#!/bin/sh\ncat >/dev/null\necho no answer\n").chmod(0o755)
    settings = {
        "completion_check.probe_command": str(tmp_path / "probe"),
        "completion_check.probe_interval_seconds": 0.01,
        "completion_check.max_probes": 2,
    }
    added: list[float] = []
    monkeypatch.setattr(Deadline, "extend", lambda _self, seconds: added.append(seconds))
    report = guard.check(agent="command", settings=settings, rescue=False)
    assert report.probes == 2
    assert len(added) == 3, "two probes and the wait between them"


def test_a_git_that_does_not_answer_is_no_proof_that_a_snapshot_is_gone(
    left_work: Path, tmp_path: Path
) -> None:
    result = check(plant_git(tmp_path, "*':manifest.json '*"), 60, 6)
    assert result.code == 4, result.err
    assert "gone" not in result.err


def test_a_git_that_answers_again_gets_its_usual_time(repository: Path, tmp_path: Path) -> None:
    commit(repository, "first.txt")
    stuck = {**os.environ, "PATH": plant_git(tmp_path)}
    place = find_repository(repository, lambda _folder: None)
    for _ in range(12):
        with pytest.raises(GitTimedOut):
            RepositoryReader(place, stuck, 0.01).ask("status")
    assert RepositoryReader(place, os.environ, 60).ask("rev-parse", "HEAD")
    slow = {**os.environ, "PATH": plant_git(tmp_path, does="sleep 2")}
    assert RepositoryReader(place, slow, 60).ask("rev-parse", "HEAD")


def test_no_git_begins_after_the_deadline() -> None:
    over = Deadline(0)
    with limit_git(over), pytest.raises(RepositoryProblem, match="may take in a check"):
        run_git("--version", environ=os.environ)
    over.extend(600)
    with limit_git(over):
        assert run_git("--version", environ=os.environ).code == 0
