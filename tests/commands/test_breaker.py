"""`guard breaker`: its exit codes, its claims under the lock, the commits that it notices, and damage that never closes it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from guard import breaker
from guard.breaker import BreakerKey, Outcome
from guard.context.invocation import Invocation
from guard.core.breaker.settings import BreakerSettings
from guard.core.iteration.events import IterationEnded
from guard.git.locate import Repository
from guard.schemas.validate import validator
from guard.store.file_store import FileStore
from guard.system.clock import Clock, make_clock
from tests.support import Result, commit, git, run, write
from tests.support.events import iteration_ended
from tests.support.sessions import until

NOON = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def chosen(repository: Path, kept_in: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workspace in the environment."""
    monkeypatch.setenv("GUARD_WORKSPACE", kept_in)


def after(minutes: float) -> dict[str, str]:
    """A clock that stands so many minutes after noon."""
    return {"GUARD_NOW": (NOON + timedelta(minutes=minutes)).isoformat()}


def report(
    *words: str, code: int = 0, env: dict[str, str] | None = None, fresh: bool = False
) -> Any:
    result = run("breaker", *words, "--format", "json", env=env, fresh=fresh)
    assert (result.code, result.err) == (code, "")
    assert list(validator("breaker-report").iter_errors(result.json)) == []
    return result.json


def stalled(times: int = 3, env: dict[str, str] | None = None) -> Any:
    """So many stalls, recorded as the command does it, without starting a process for each."""
    guard = Invocation(clock=make_clock(env or {}), environ={**os.environ, **(env or {})})
    key = guard.worktree_key
    assert key
    policy = guard.config.settings.breaker
    place = BreakerKey(key, guard.repository, policy, guard.clock, guard.environ)
    for _ in range(times):
        with guard.writable_store.change() as change:
            outcome = Outcome("timeout", "no_commits", head=place.head())
            state = breaker.record(change, place, outcome)
    found = breaker.report(place, state, breaker.permission_now(guard.store, place, state))
    return found.model_dump(mode="json")


def view(workspace: Path) -> Path:
    (path,) = workspace.glob("worktrees.d/*/breaker.json")
    return path


@contextmanager
def waiting() -> Iterator[subprocess.Popen[bytes]]:
    """A process that does nothing until it is ended."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_life_from_closed_over_open_and_half_open_to_closed() -> None:
    assert report("allow", env=after(0))["permission"] == "closed"
    assert stalled(2, env=after(0))["streak"] == 2
    assert report("show", env=after(0))["state"] == "closed"
    found = stalled(1, env=after(0))
    assert (found["state"], found["streak"], found["reason"]) == ("open", 3, "no_commits")
    assert (found["opened_at"], found["retry_at"]) == (
        "2026-01-31T12:00:00Z",
        "2026-01-31T12:30:00Z",
    )
    refused = report("allow", code=20, env=after(29))
    assert (refused["allowed"], refused["permission"]) == (False, "cooling_down")
    assert refused["retry_at"] == "2026-01-31T12:30:00Z"
    shown = report("show", env=after(31))
    assert (shown["state"], shown["allowed"]) == ("open", True)

    trial = report("allow", env=after(31), fresh=True)
    assert (trial["state"], trial["permission"]) == ("half_open", "cooldown_over")
    assert trial["trial"]["holder"]["pid"] == os.getpid()
    taken = report("allow", code=20, env=after(32))
    assert (taken["permission"], taken["retry_at"]) == ("trial_taken", "2026-01-31T16:31:00Z")

    done = report("record", "--status", "complete", "--reason", "commits", env=after(40))
    assert (done["state"], done["streak"], done["reason"], done["retry_at"]) == (
        "closed",
        0,
        None,
        None,
    )
    assert [one["what"] for one in done["history"]] == [
        *["recorded"] * 3,
        "opened",
        "trial_claimed",
        "recorded",
        "closed",
    ]
    assert report("allow", env=after(41))["state"] == "closed"


def test_a_failed_trial_doubles_the_cooldown_and_a_neutral_one_is_handed_back() -> None:
    stalled(env=after(0))
    report("allow", env=after(30))
    neutral = report("record", "--status", "limited", env=after(31))
    assert (neutral["state"], neutral["trial"], neutral["allowed"]) == ("half_open", None, True)
    assert report("allow", env=after(31))["permission"] == "trial_returned"
    failed = stalled(1, env=after(40))
    assert (failed["state"], failed["cooldown_seconds"]) == ("open", 3600)
    assert failed["retry_at"] == "2026-01-31T13:40:00Z"


def test_refuted_iterations_in_a_row_are_shown_with_their_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuted(*words: str) -> tuple[str, Any]:
        assert run("breaker", *words, env=after(0)).code == 0
        found = report("show", env=after(0))
        lines = run("breaker", "show", env=after(0)).out.splitlines()
        return lines[2], (found["refuted_streak"], found["refuted_limit"])

    end = "the breaker opens at 5 (breaker.refuted_limit)"
    record = ("record", "--status", "refuted", "--reason", "new_failures")
    assert refuted("allow") == (f"refuted: no iteration in a row; {end}", (0, 5))
    assert refuted(*record) == (f"refuted: 1 iteration in a row; {end}", (1, 5))
    assert refuted(*record) == (f"refuted: 2 iterations in a row; {end}", (2, 5))
    assert f"refuted: 2 iterations in a row; {end}" in run("breaker", "allow", env=after(0)).out
    assert "refuted" not in run("breaker", "reset", env=after(0)).out
    monkeypatch.setenv("GUARD_BREAKER__REFUTED_LIMIT", "0")
    line, counts = refuted(*record)
    assert line.endswith("; no number of them opens the breaker (breaker.refuted_limit = 0)")
    assert counts == (1, 0)


def test_sentences_for_people() -> None:
    assert run("breaker", "allow", env=after(0)).out == (
        "allowed: the breaker is closed\n"
        "closed\n"
        "counts: 0 without commits, 0 with nothing to do, 0 rescued, 0 denied\n"
    )
    stalled(env=after(0))
    refused = run("breaker", "allow", env=after(0))
    assert (refused.code, refused.err) == (20, "")
    assert refused.out.startswith(
        "not allowed: the cooldown is not over\n"
        "open: no_commits; since 2026-01-31T12:00:00Z; next trial at 2026-01-31T12:30:00Z; "
        "`guard breaker reset` closes it\n"
    )
    run("breaker", "record", "--status", "error", "--fingerprint", "E\x1b[31m", env=after(1))
    shown = run("breaker", "show", env=after(1)).out.splitlines()
    assert shown[1].endswith(", 1 times E\\x1b[31m")
    assert shown[-1] == "2026-01-31T12:01:00Z  recorded            error"
    assert shown[-2].split() == ["2026-01-31T12:00:00Z", "opened", "no_commits"]


RECORDS: dict[str, tuple[list[str], int, str | None]] = {
    "the same error": (["--status", "error", "--fingerprint", "E1"], 5, "same_error"),
    "denied permissions": (["--status", "blocked", "--reason", "denied"], 2, "denied"),
    "denied permissions by a flag": (["--status", "blocked", "--denied"], 2, "denied"),
    "rescues": (["--status", "complete", "--reason", "rescued"], 5, "always_rescued"),
    "rescues by a flag": (["--status", "error", "--rescued"], 5, "always_rescued"),
    "nothing to do": (["--status", "complete", "--reason", "nothing_to_do"], 4, "no_commits"),
    "limits": (["--status", "limited", "--fingerprint", "E1"], 5, None),
}


@pytest.mark.parametrize(("words", "times", "reason"), RECORDS.values(), ids=RECORDS)
def test_it_opens_with_its_own_reason_after(
    words: list[str], times: int, reason: str | None
) -> None:
    found = [report("record", *words) for _ in range(times)]
    assert [one["reason"] for one in found] == [None] * (times - 1) + [reason]


KNOBS: dict[str, tuple[str, str, list[str]]] = {
    "stall_limit": ("GUARD_BREAKER__STALL_LIMIT", "1", ["--status", "timeout"]),
    "same_error_limit": (
        "GUARD_BREAKER__SAME_ERROR_LIMIT",
        "1",
        ["--status", "error", "--fingerprint", "E"],
    ),
    "denied_limit": ("GUARD_BREAKER__DENIED_LIMIT", "1", ["--status", "blocked", "--denied"]),
    "rescue_limit": ("GUARD_BREAKER__RESCUE_LIMIT", "1", ["--status", "complete", "--rescued"]),
}


@pytest.mark.parametrize(("variable", "value", "words"), KNOBS.values(), ids=KNOBS)
def test_each_limit_is_read_from_the_settings(variable: str, value: str, words: list[str]) -> None:
    assert report("record", *words)["state"] == "closed"
    assert report("reset")["state"] == "closed"
    assert report("record", *words, env={variable: value})["state"] == "open"


def test_cooldowns_and_lease_are_read_from_the_settings() -> None:
    knobs = {"GUARD_BREAKER__COOLDOWN_SECONDS": "60", "GUARD_BREAKER__TRIAL_LEASE_SECONDS": "90"}
    assert report("trip", env={**after(0), **knobs})["retry_at"] == "2026-01-31T12:01:00Z"
    assert report("allow", env={**after(1), **knobs})["trial"]["lease_seconds"] == 90
    assert report("allow", env={**after(3), **knobs})["permission"] == "lease_over"
    low = {**after(3), "GUARD_BREAKER__COOLDOWN_MAX_SECONDS": "5"}
    assert stalled(1, env=low)["retry_at"] == "2026-01-31T12:03:05Z"


def test_the_projects_own_file_cannot_move_a_limit(repository: Path) -> None:
    write(repository / "guard.toml", "[breaker]\nstall_limit = 99\ncooldown_seconds = 0\n")
    for _ in range(3):
        result = run("breaker", "record", "--status", "timeout", "--format", "json")
        assert "breaker.stall_limit is ignored" in result.err
    assert result.json["state"] == "open"
    assert run("breaker", "allow").code == 20


def test_tripped_and_reset_by_hand_with_a_reason() -> None:
    assert report("trip")["reason"] == "tripped"
    assert report("trip", "--reason", "lunch")["reason"] == "lunch"
    assert run("breaker", "allow").code == 20
    assert report("reset", "--reason", "back")["state"] == "closed"
    assert run("breaker", "allow").code == 0
    history = report("show")["history"]
    assert [(one["what"], one["reason"]) for one in history][-2:] == [
        ("opened", "lunch"),
        ("closed", "back"),
    ]


COMMITS = {
    "a commit": lambda repository: commit(repository, "fix.txt"),
    "an amended commit": lambda repository: git(
        repository, "commit", "-q", "--amend", "-m", "Say it better"
    ),
    "a merge from a branch": lambda repository: (
        git(repository, "switch", "-q", "-c", "side"),
        commit(repository, "side.txt"),
        git(repository, "switch", "-q", "main"),
        git(repository, "merge", "-q", "--no-ff", "-m", "Merge", "side"),
    ),
}


@pytest.mark.parametrize("change", COMMITS.values(), ids=COMMITS)
def test_a_commit_from_outside_earns_one_trial_at_once(change: Any, repository: Path) -> None:
    commit(repository)
    stalled()
    assert run("breaker", "allow").code == 20
    change(repository)
    assert report("show")["permission"] == "commit_outside"
    assert report("allow")["permission"] == "commit_outside"
    assert run("breaker", "allow").code == 20
    again = stalled(1)
    assert (again["state"], again["cooldown_seconds"]) == ("open", 3600)
    assert run("breaker", "allow").code == 20


def test_the_first_commit_of_all_is_one_from_outside(repository: Path) -> None:
    stalled()
    assert run("breaker", "allow").code == 20
    commit(repository)
    assert run("breaker", "allow").code == 0


@pytest.mark.parametrize(
    "words",
    [["reset", "-q", "--hard", "HEAD~1"], ["checkout", "-q", "HEAD~1"], ["branch", "side"]],
    ids=["a reset", "a checkout of an old commit", "a branch"],
)
def test_no_commit_no_trial(words: list[str], repository: Path) -> None:
    commit(repository, "one.txt")
    commit(repository, "two.txt")
    stalled()
    git(repository, *words)
    assert report("allow", code=20)["permission"] == "cooling_down"


def test_commits_that_iterations_made_while_it_is_open_earn_none(repository: Path) -> None:
    commit(repository, "one.txt")
    stalled()
    commit(repository, "two.txt")
    report("record", "--status", "complete", "--reason", "commits")
    assert report("allow", code=20)["permission"] == "cooling_down"


def test_without_its_git_directory_it_still_answers_and_records(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GUARD_WORKSPACE")
    commit(repository)
    assert run("breaker", "record", "--status", "timeout").code == 0
    os.rename(repository / ".git", repository / ".moved")
    for _ in range(2):
        assert run("breaker", "record", "--status", "timeout").code == 0
    assert run("breaker", "allow").code == 20


def test_linked_work_trees_have_breakers_of_their_own(repository: Path, tmp_path: Path) -> None:
    commit(repository)
    git(repository, "worktree", "add", "-q", str(tmp_path / "other"))
    stalled()
    assert run("breaker", "allow").code == 20
    assert run("breaker", "allow", cwd=tmp_path / "other").code == 0


def test_a_repository_is_needed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for words in (["show"], ["allow"], ["trip"], ["record", "--status", "timeout"]):
        result = run("breaker", *words, cwd=elsewhere)
        assert (result.code, result.out) == (4, "")
        assert "is not in a git repository" in result.err


WRONG = {
    "no status": ["record"],
    "a status that is none": ["record", "--status", "stuck"],
    "a reason too long": ["record", "--status", "timeout", "--reason", "x" * 513],
    "a reason too long to trip by": ["trip", "--reason", "x" * 513],
    "a reason too long to reset by": ["reset", "--reason", "x" * 513],
    "a pid that is none": ["allow", "--pid", "0"],
}


@pytest.mark.parametrize("words", WRONG.values(), ids=WRONG)
def test_wrong_usage_is_exit_2_and_records_nothing(words: list[str], workspace: Path) -> None:
    result = run("breaker", *words)
    assert (result.code, result.out) == (2, "")
    assert [line.split(":")[0] for line in result.err.splitlines()] == ["guard", "hint"]
    assert not (workspace / "events.jsonl").exists()


@pytest.mark.parametrize(
    "text",
    ["E" * 100_000, "a  b\n\tc", "\udcff", "\x1b[31m"],
    ids=["long", "lines", "bytes", "escapes"],
)
def test_any_text_can_name_an_error(text: str) -> None:
    words = ["record", "--status", "error", "--fingerprint", text]
    report(*words)
    found = report(*words)
    assert found["fingerprint_count"] == 2
    assert len(found["fingerprint"]) <= 512


def test_long_errors_that_differ_at_their_end_are_two() -> None:
    report("record", "--status", "error", "--fingerprint", "x" * 1000 + "1")
    found = report("record", "--status", "error", "--fingerprint", "x" * 1000 + "2")
    assert found["fingerprint_count"] == 1


def test_looking_and_asking_a_closed_breaker_write_nothing(workspace: Path) -> None:
    assert run("breaker", "show").code == 0
    assert run("breaker", "allow").code == 0
    assert not workspace.exists()


DAMAGE = {
    "deleted": lambda path: path.unlink(),
    "emptied": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:100]),
    "closed by hand": lambda path: path.write_bytes(
        path.read_bytes().replace(b'"state": "open"', b'"state": "closed"')
    ),
    "of an older time": lambda path: path.write_bytes(OLDER[0]),
    "garbage": lambda path: path.write_bytes(os.urandom(500)),
}
OLDER: list[bytes] = []


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_breaker_is_never_reborn_closed(damage: Any, workspace: Path) -> None:
    stalled(2)
    OLDER[:] = [view(workspace).read_bytes()]
    stalled(1)
    damage(view(workspace))
    assert json.loads(run("breaker", "show", "--format", "json").out)["state"] == "open"
    assert run("breaker", "allow").code == 20
    assert run("breaker", "record", "--status", "limited").code == 0
    assert json.loads(view(workspace).read_bytes())["state"] == "open"
    assert run("verify").code == 0


def test_a_log_that_is_gone_is_an_error_and_not_a_closed_breaker(workspace: Path) -> None:
    stalled()
    (workspace / "events.jsonl").unlink()
    result = run("breaker", "allow")
    assert (result.code, result.out) == (5, "")


def waits_for_the_lock(pid: int) -> bool:
    folder = Path(f"/proc/{pid}/fd")
    try:
        return any(os.readlink(fd).endswith("/workspace.queue") for fd in folder.iterdir())
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc to see who waits")
def test_sixteen_processes_ask_at_once_and_one_gets_the_trial(store: FileStore) -> None:
    """All of them have seen that the cooldown is over before any of them gets the lock."""
    stalled(env=after(0))
    argv = [sys.executable, "-m", "guard", "breaker", "allow", "--format", "json"]
    env = {**os.environ, **after(31), "GUARD_STORE__LOCK_TIMEOUT_SECONDS": "240"}
    with store.change():
        asked = [subprocess.Popen(argv, env=env, stdout=subprocess.PIPE) for _ in range(16)]
        until(lambda: all(waits_for_the_lock(process.pid) for process in asked), 240)
    answers = [(process.communicate(timeout=240)[0], process.returncode) for process in asked]
    assert sorted(code for _, code in answers) == [0] + [20] * 15
    reasons = sorted(json.loads(out)["permission"] for out, _ in answers)
    assert reasons == ["cooldown_over"] + ["trial_taken"] * 15
    claims = run("log", "--type", "breaker_trial_claimed", "--format", "json").json["events"]
    assert len(claims) == 1


def test_a_trial_is_its_holders_until_that_process_ends() -> None:
    report("trip", env=after(0))
    with waiting() as holder:
        claimed = report("allow", "--pid", str(holder.pid), env=after(30))
        assert claimed["trial"]["holder"]["pid"] == holder.pid
        assert report("allow", code=20, env=after(31))["permission"] == "trial_taken"
    assert report("allow", env=after(32))["permission"] == "holder_gone"


def test_the_process_that_called_guard_holds_the_trial() -> None:
    report("trip", env=after(0))
    script = 'echo $$; "$0" -m guard breaker allow --format json; exit 0'
    done = subprocess.run(
        ["/bin/sh", "-c", script, sys.executable],
        env={**os.environ, **after(30)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    pid, document = done.stdout.split("\n", 1)
    assert json.loads(document)["trial"]["holder"]["pid"] == int(pid)
    assert report("allow", env=after(31))["permission"] == "holder_gone"


def test_a_script_that_was_allowed_a_trial_may_run_it_and_only_once() -> None:
    report("trip")
    script = """
        "$0" -m guard breaker allow --format json > /dev/null || exit 1
        "$0" -m guard breaker allow > /dev/null && exit 2
        "$0" -m guard run --no-probe -- sh -c 'exit 0'
        echo "run $?"
        "$0" -m guard run --no-probe -- true
        echo "again $?"
    """
    done = subprocess.run(
        ["/bin/sh", "-c", script, sys.executable],
        env={**os.environ, "GUARD_BREAKER__COOLDOWN_MAX_SECONDS": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout.splitlines()[-1] == "again 10", done.stderr
    assert "run 10" in done.stdout
    claims = run("log", "--type", "breaker_trial_claimed", "--format", "json").json["events"]
    assert [one["reason"] for one in claims][:2] == ["cooldown_over", "handed_over"]


def test_a_holder_that_cannot_be_known_has_its_lease_alone() -> None:
    report("trip", env=after(0))
    assert report("allow", "--pid", str(2**22 + 1), env=after(30))["trial"]["holder"] is None
    assert report("allow", code=20, env=after(31))["permission"] == "trial_taken"
    assert report("allow", env=after(30 + 241))["permission"] == "lease_over"


def test_a_clock_that_jumped_back_keeps_it_open_for_one_cooldown_more() -> None:
    """Opened in 2099 by a wrong clock; the clock is put right."""
    report("trip", env={"GUARD_NOW": "2099-01-01T00:00:00Z"})
    first = report("allow", code=20, env=after(0))
    assert first["retry_at"] == "2026-01-31T12:30:00Z"
    assert report("allow", code=20, env=after(29))["retry_at"] == "2026-01-31T12:30:00Z"
    assert report("allow", env=after(30))["permission"] == "cooldown_over"
    assert len(run("log", "--type", "breaker_cooldown_restarted").out.splitlines()) == 1


def _place(repository: Path, store: FileStore) -> BreakerKey:
    found = Repository(repository, repository / ".git", repository / ".git")
    return BreakerKey("w1", found, BreakerSettings(), Clock(NOON), os.environ)


def test_an_end_and_what_it_means_are_one_change(repository: Path, store: FileStore) -> None:
    place = _place(repository, store)
    for number in range(1, 4):
        with store.change() as change:
            outcome = Outcome("timeout", "no_commits", run="r1", iteration=number)
            events = breaker.decide_outcome(change, place, outcome)
            change.append(iteration_ended(number, status="timeout"), *events)
    entries = list(store.entries())[-3:]
    assert [(entry.event.type, entry.more) for entry in entries] == [
        ("iteration_ended", 2),
        ("breaker_recorded", 1),
        ("breaker_opened", 0),
    ]
    assert isinstance(entries[0].event, IterationEnded)
    assert {(entry.event.run, entry.event.iteration) for entry in entries} == {("r1", 3)}
    with store.change() as change:
        assert breaker.record(change, place, Outcome("limited")).state == "open"


def test_a_real_clock_decides_by_the_boot_clock(repository: Path, store: FileStore) -> None:
    guard = Invocation(repo=repository, workspace_option=str(store.path), clock=Clock())
    place = BreakerKey.of(guard)
    state = breaker.trip(guard, "test")
    moment = place.clock.moment()
    assert state.cooling_since
    assert state.cooling_since.boot_id == moment.boot_id
    assert 0 <= moment.boot_seconds - state.cooling_since.boot_seconds < 60
    assert breaker.allow(store, place, holder=None).reason == "cooling_down"


def test_help_names_the_exit_codes() -> None:
    result: Result = run("breaker", "allow", "--help")
    assert "Exit code 0 if it may, 20 if the breaker is open." in result.out
