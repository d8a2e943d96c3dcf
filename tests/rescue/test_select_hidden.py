"""Work that ignore rules hide: under a rule of the iteration's own it is held back and named, else it is counted."""

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.rescue.states import start
from tests.snapshots.test_take_faults import WITHOUT_PRIVILEGE
from tests.support import TIME_LIMIT, commit, git, run, write
from tests.support.rescues import attempt_rescue
from tests.support.sessions import QUICK, answering, script

NEW_RULE = "ignored: by a rule of this iteration"


@pytest.fixture(autouse=True)
def started(repository: Path) -> None:
    start(repository)


@pytest.mark.parametrize("rules", [".gitignore", ".git/info/exclude"])
def test_what_a_new_rule_hides_is_held_back(rules: str, repository: Path, workspace: Path) -> None:
    since = datetime.now(UTC)
    write(repository / rules, "feature.py\n")
    write(repository / "feature.py", "work\n")
    write(repository / "new.txt", "new\n")
    result = attempt_rescue(repository, workspace, [".gitignore", "new.txt"], since=since)
    assert [(one.path, one.why) for one in result.held_back] == [("feature.py", NEW_RULE)]
    assert result.commits
    assert git(repository, "ls-files", "feature.py") == ""


def test_what_an_old_rule_hides_is_counted(repository: Path, workspace: Path) -> None:
    write(repository / ".gitignore", "*.log\n")
    git(repository, "add", ".gitignore")
    git(repository, "commit", "-q", "-m", "rules")
    since = datetime.now(UTC)
    write(repository / "run.log", "said\n")
    write(repository / "new.txt", "new\n")
    result = attempt_rescue(repository, workspace, ["new.txt"], since=since)
    assert (result.reason, result.held_back) == ("rescued", ())
    assert "1 ignored file written since the baseline in the snapshot only" in result.detail


def playing(tmp_path: Path, text: str) -> tuple[str, ...]:
    """The words of a run of this shell script, which is asked and says that it is complete."""
    asking = ("--agent", "command", "--probe-command", answering(tmp_path, "complete"))
    return (*asking, *QUICK, "--", script(tmp_path / "agent", text))


def test_a_check_keeps_what_rules_beside_the_work_tree_may_hide(
    repository: Path, tmp_path: Path
) -> None:
    commit(repository)
    words = playing(tmp_path, "echo '*' > .git/info/exclude; echo work > work.py")
    result = run("run", "--format", "json", *words)
    assert result.json["uncommitted"]["untracked"] == ["work.py"]
    assert result.json["snapshot"]["files"] == len(os.listdir(repository)) - 1


def test_what_cannot_be_read_is_said_before_nothing_is_left(
    repository: Path, tmp_path: Path
) -> None:
    commit(repository)
    words = playing(tmp_path, "mkdir work; echo precious > work/z.py; chmod 000 work")
    code = WITHOUT_PRIVILEGE + "from guard.cli import main\nmain()\n"
    done = subprocess.run(
        [sys.executable, "-c", code, "run", *words],
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
        check=False,
    )
    (repository / "work").chmod(0o700)
    assert "guard cannot read every file, so something may be left: work: Permission" in done.stderr
    assert "not in it: work: Permission denied" in done.stdout
