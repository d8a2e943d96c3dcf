"""`guard rescue`: what it commits and what it says, end to end on real repositories."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from guard.schemas.validate import validator
from tests.support import commit, git, run, write
from tests.support.rescues import contents, fingerprint
from tests.support.sessions import answering, ending, script, started, until

TASKS = "- [ ] write `src/code.py`\n- [ ] the rest\n"


@pytest.fixture
def begun(repository: Path) -> Path:
    """A repository with a baseline, and work of the user's that is older: changed, staged and untracked."""
    for name in ("first.txt", "mine.txt", "staged.txt"):
        commit(repository, name)
    commit(repository, "tasks.md", TASKS)
    write(repository / "mine.txt", "the user's\n")
    write(repository / "staged.txt", "staged by the user\n")
    git(repository, "add", "staged.txt")
    write(repository / "notes.txt", "the user's too\n")
    assert run("baseline").code == 0
    return repository


OWN = " M mine.txt\nM  staged.txt\n?? notes.txt\n"


def leave(root: Path) -> None:
    """What an agent forgot to commit."""
    write(root / "src/code.py", "def f():\n    return 1\n")
    write(root / "tests/test_code.py", "def test_f():\n    pass\n")
    write(root / "README.md", "# read\n")
    write(root / "first.txt", "changed\n")


def rescue(*words: str | Path, code: int = 0) -> dict[str, Any]:
    result = run("rescue", "--format", "json", *words)
    assert result.code == code, (result.out, result.err)
    assert list(validator("rescue").iter_errors(result.json)) == []
    found: dict[str, Any] = result.json
    return found


def state(root: Path) -> tuple[Any, Any]:
    return fingerprint(root / ".git"), contents(root)


def snapshots() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run("snapshots", "--format", "json").json["snapshots"]
    return found


def events(kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run("log", "--format", "json", "--type", kind).json["events"]
    return found


def test_what_was_left_is_committed_and_the_users_is_not(begun: Path) -> None:
    leave(begun)
    before = git(begun, "rev-parse", "HEAD").strip()
    found = rescue()
    assert (found["reason"], found["branch"], found["held_back"]) == ("rescued", None, [])
    assert (found["dry_run"], found["iteration"], found["ticked"]) == (
        False,
        1,
        ["write `src/code.py`"],
    )
    assert git(begun, "status", "--porcelain") == OWN
    assert git(begun, "rev-list", "--reverse", f"{before}..").split() == found["commits"]
    said = git(begun, "log", "--reverse", "--format=%s", f"{before}..").splitlines()
    assert said == [one["subject"] for one in found["plan"]]
    assert git(begun, "diff", "--name-only", before, "HEAD").split() == [
        *("README.md", "first.txt", "src/code.py", "tasks.md", "tests/test_code.py")
    ]
    (kept,) = [one for one in snapshots() if one["kind"] == "rescue"]
    assert (kept["id"], kept["unpromoted"]) == (found["snapshot"]["id"], False)


def test_the_text_says_first_how_to_get_it_back(begun: Path) -> None:
    leave(begun)
    result = run("rescue")
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0].startswith("guard restore ")
    assert lines[0].endswith(" --to DIR")
    assert lines[1].startswith("  rescued: 4 files committed on main")
    log = git(begun, "log", "--reverse", "--format=%h %s", "--abbrev=10", "-4").splitlines()
    told = [line.strip().rpartition(" (")[0] for line in lines[2:-1]]
    assert told == log[-len(told) :]
    assert lines[-1] == "  ticked: write `src/code.py`"
    again = run("rescue")
    assert again.code == 0
    assert again.out.splitlines()[1] == "  nothing: nothing was left to commit"


def test_more_files_than_are_listed_are_counted(begun: Path) -> None:
    for number in range(130):
        write(begun / f"notes/{number}.md", f"# {number}\n")
    assert "(130 files)" in run("rescue").out


def test_it_is_in_the_log_and_the_breaker_has_no_part_in_it(begun: Path) -> None:
    leave(begun)
    breaker = run("breaker", "show", "--format", "json").json
    assert rescue("--dry-run")["reason"] == "planned"
    found = rescue()
    (event,) = events("rescue_made")
    assert event["worktree"]
    for name in ("commits", "reason", "detail", "branch", "held_back", "run", "iteration"):
        assert event[name] == found[name]
    assert event["snapshot"] == found["snapshot"]["id"]
    assert rescue()["reason"] == "nothing"
    assert run("breaker", "show", "--format", "json").json == breaker
    metrics = run("metrics", "--format", "json").json
    assert (metrics["rescues"], metrics["rescue_success_rate"], metrics["checks"]) == (1, 1.0, 0)
    assert metrics["rescued_commits"] == len(found["commits"])


def test_a_check_counts_it_as_rescued_work(begun: Path, tmp_path: Path) -> None:
    leave(begun)
    commits = rescue()["commits"]
    result = run("check", "--format", "json", "--probe-command", answering(tmp_path, "complete"))
    found = result.json
    assert (result.code, found["status"], found["reason"]) == (0, "complete", "rescued")
    assert (found["rescued"], found["rescued_commits"], found["new_commits"]) == (
        True,
        len(commits),
        0,
    )


def test_a_dry_run_changes_nothing_and_a_real_one_does_what_it_said(begun: Path) -> None:
    leave(begun)
    before = state(begun)
    planned = rescue("--dry-run")
    assert (planned["reason"], planned["dry_run"], planned["commits"]) == ("planned", True, [])
    assert state(begun) == before
    assert events("rescue_made") == []
    assert [one["unpromoted"] for one in snapshots()] == [False] * len(snapshots())
    text = run("rescue", "--dry-run").out.splitlines()
    assert text[2].startswith(f"  planned {planned['plan'][0]['subject']} (")
    real = rescue()
    assert (real["plan"], real["ticked"]) == (planned["plan"], planned["ticked"])
    assert len(real["commits"]) == len(planned["plan"])


def test_a_dry_run_says_that_it_would_be_elsewhere(begun: Path) -> None:
    leave(begun)
    git(begun, "checkout", "-q", "--detach")
    assert "on a branch of its own (detached)" in rescue("--dry-run")["detail"]
    assert git(begun, "branch", "--list", "guard/*") == ""


def test_a_branch_of_its_own(begun: Path) -> None:
    leave(begun)
    head, files = git(begun, "rev-parse", "HEAD"), contents(begun)
    index = (begun / ".git/index").read_bytes()
    found = rescue("--branch")
    assert found["reason"] == "on_branch"
    name = found["branch"]
    assert name.startswith("guard/rescue/")
    assert (git(begun, "rev-parse", "HEAD"), contents(begun)) == (head, files)
    assert (begun / ".git/index").read_bytes() == index
    assert git(begun, "rev-parse", name).strip() == found["commits"][-1]
    assert git(begun, "diff", "--name-only", "HEAD", name).split() == [
        *("README.md", "first.txt", "src/code.py", "tests/test_code.py")
    ]
    assert snapshots()[-1]["unpromoted"]


def test_what_is_held_back_is_named_and_the_exit_code_says_so(begun: Path) -> None:
    leave(begun)
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    write(begun / "config.py", f'TOKEN = "{token}"\n')
    write(begun / "mine.txt", "the user's\nand the agent's\n")
    found = rescue(code=1)
    assert found["reason"] == "rescued"
    held = {one["path"]: one["why"] for one in found["held_back"]}
    assert set(held) == {"config.py", "mine.txt"}
    assert "secret" in held["config.py"]
    assert token not in json.dumps(found)
    assert "mixed" in held["mine.txt"]
    assert git(begun, "status", "--porcelain") == OWN.replace("??", "?? config.py\n??")
    assert snapshots()[-1]["unpromoted"]
    text = run("rescue")
    assert text.code == 1
    assert "  held back: config.py (secret: " in text.out
    assert text.out.splitlines()[1].startswith("  held_back: nothing else to commit")


def test_a_state_that_is_not_plain_leaves_a_branch_and_exit_code_1(begun: Path) -> None:
    leave(begun)
    git(begun, "checkout", "-q", "-b", "other")
    found = rescue(code=1)
    assert found["reason"] == "not_plain:branch_changed"
    assert found["branch"].startswith("guard/rescue/")
    assert git(begun, "log", "-1", "--format=%s", "other") == "Add tasks.md\n"


def test_nothing_left(begun: Path) -> None:
    before = state(begun)
    found = rescue()
    assert (found["reason"], found["commits"], found["plan"]) == ("nothing", [], [])
    assert state(begun) == before


def test_a_revision_for_a_baseline(repository: Path) -> None:
    commit(repository, "first.txt")
    leave(repository)
    found = rescue("--baseline", "HEAD")
    assert found["reason"] == "rescued"
    assert git(repository, "status", "--porcelain") == ""
    missing = run("rescue", "--baseline", "nowhere")
    assert (missing.code, missing.out) == (4, "")


def test_the_first_commits(repository: Path) -> None:
    assert run("baseline").code == 0
    leave(repository)
    assert rescue()["reason"] == "rescued"
    assert git(repository, "status", "--porcelain") == ""


def open_boxes() -> str:
    """What a check says of the boxes."""
    result = run("check", "--no-probe", "--no-wait", "--spec", "login", "--format", "json")
    return "\n".join(map(str, result.json["evidence"]))


def test_a_specs_task_file(begun: Path) -> None:
    commit(begun, "specs/login/tasks.md", "- [ ] `src/code.py`\n- [ ] more\n")
    assert run("baseline").code == 0
    leave(begun)
    assert "2 open" in open_boxes()
    assert rescue("--spec", "login")["ticked"] == ["`src/code.py`"]
    assert (begun / "tasks.md").read_text() == TASKS
    assert git(begun, "show", "HEAD:specs/login/tasks.md") == "- [x] `src/code.py`\n- [ ] more\n"
    assert "1 open" in open_boxes()


def test_a_task_file_behind_a_link_is_not_ticked(begun: Path, tmp_path: Path) -> None:
    write(tmp_path / "login/tasks.md", "- [ ] `src/code.py`\n")
    (begun / "specs").symlink_to(tmp_path)
    git(begun, "add", "specs")
    git(begun, "commit", "-q", "-m", "link", "--", "specs")
    assert run("baseline").code == 0
    leave(begun)
    assert rescue("--spec", "login")["ticked"] == []
    assert (tmp_path / "login/tasks.md").read_text() == "- [ ] `src/code.py`\n"


def test_without_a_baseline_it_is_an_error_with_a_hint(repository: Path) -> None:
    commit(repository)
    result = run("rescue")
    assert (result.code, result.out) == (4, "")
    assert "hint: run `guard baseline`" in result.err


def test_without_a_repository_it_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "nothing"
    folder.mkdir()
    result = run("rescue", cwd=folder)
    assert (result.code, result.out) == (4, "")


def test_without_its_git_directory_there_is_only_a_snapshot(begun: Path) -> None:
    leave(begun)
    shutil.rmtree(begun / ".git")
    found = rescue(code=1)
    assert (found["reason"], found["commits"]) == ("not_plain:git", [])
    assert ".git no longer exists" in found["detail"]
    [*_, last] = run("snapshots", "--format", "json").json["snapshots"]
    assert (last["id"], last["unpromoted"]) == (found["snapshot"]["id"], True)


@pytest.mark.parametrize("words", [("--planner", "me"), ("now",)])
def test_wrong_usage(words: tuple[str, ...], begun: Path) -> None:
    assert run("rescue", *words).code == 2


def test_while_the_agent_lives_there_is_only_a_snapshot(begun: Path, tmp_path: Path) -> None:
    text = f"echo left > left.txt; touch {tmp_path}/there; exec sleep 600"
    guard = started("run", "--", script(tmp_path / "agent", text))
    with ending(guard):
        until((tmp_path / "there").exists, 90)
        before = state(begun)
        until(lambda: rescue("--dry-run", code=1)["reason"] == "alive", 90)
        found = rescue(code=1)
        assert (found["reason"], found["commits"], found["branch"]) == ("alive", [], None)
        assert found["detail"].endswith(" is at work")
        assert found["snapshot"] is not None
        assert state(begun) == before
        guard.terminate()
        guard.wait(90)


def test_killed_in_the_middle_nothing_is_half_done(begun: Path, tmp_path: Path) -> None:
    """While a planner is asked: the snapshot is made, the commits are not."""
    leave(begun)
    before = state(begun)
    asked = script(tmp_path / "planner", f"echo $$ > {tmp_path}/asked; exec sleep 600")
    words = ("rescue", "--planner", "agent", "--agent", "command")
    env = {"GUARD_COMPLETION_CHECK__PROBE_COMMAND": asked}
    with pytest.MonkeyPatch.context() as scene:
        for name, value in env.items():
            scene.setenv(name, value)
        guard = started(*words)
    with ending(guard):
        until((tmp_path / "asked").exists, 90)
        until(lambda: bool((tmp_path / "asked").read_text()), 90)
        guard.kill()
        guard.wait(90)
    os.kill(int((tmp_path / "asked").read_text()), signal.SIGKILL)
    after = state(begun)
    assert after[1] == before[1]
    objects = [name for name in after[0] if name not in before[0]]
    assert all(name.startswith("objects/") for name in objects)
    assert {name: after[0][name] for name in before[0]} == before[0]
    assert snapshots()[-1]["unpromoted"]
    assert rescue()["reason"] == "rescued"
    assert git(begun, "status", "--porcelain") == OWN
    subprocess.run(["git", "fsck", "--strict"], check=True, capture_output=True, timeout=90)
