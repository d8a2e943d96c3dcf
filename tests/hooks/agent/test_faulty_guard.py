"""Whatever is wrong with guard or around it: the session goes on, or stops, and the fault is noted."""

import fcntl
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from guard.context.invocation import Invocation
from guard.core.hooks.event_kinds import ANSWERED, KINDS
from guard.hooks.agent.boundary import answer
from guard.system.process_identity import is_alive
from tests.support import ROOT, commit, run, write
from tests.support.hooks import decisions, document, events, faults, read, start, stop
from tests.support.sessions import until

HOOK = "from guard.entry import main; main()"
FULL_DISK = """\
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
"""
HANGING_GIT = """\
#!/bin/sh
echo $$ > "$HANG_PID.new" && mv "$HANG_PID.new" "$HANG_PID"
exec sleep 1000
"""
FIELDS = [
    "session_id",
    "sessionId",
    "prompt_id",
    "stop_hook_active",
    "source",
    "cwd",
    "background_tasks",
    "session_crons",
    "last_assistant_message",
    "agent_id",
]
LONG_SECONDS = 90.0
Arranged = dict[str, Any]


@pytest.fixture
def session(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A session that would be asked to go on, were guard not faulty."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    commit(repository, "first.txt")
    start()
    write(repository / "made.txt", "by the agent\n")
    return repository


@pytest.fixture
def held() -> Iterator[ExitStack]:
    """What has to be held while the hook runs."""
    with ExitStack() as stack:
        yield stack


def workspace() -> Path:
    return Invocation().workspace.path


def bad_config(_held: ExitStack) -> Arranged:
    write(Path(os.environ["XDG_CONFIG_HOME"], "guard", "config.toml"), "this is = = no TOML")
    return {}


def unreadable_view(_held: ExitStack) -> Arranged:
    """A state file of a newer guard."""
    (path,) = workspace().glob("worktrees.d/*/hooks.json")
    body, _, _ = path.read_bytes().rpartition(b',\n  "hash"')
    body = body.replace(b'"guard/hooks/2"', b'"guard/hooks/99"')
    path.write_bytes(b'%s,\n  "hash": "%s"\n}\n' % (body, sha256(body).hexdigest().encode()))
    return {}


def damaged_log(_held: ExitStack) -> Arranged:
    path = workspace() / "events.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = b"{]" + lines[1][2:]
    path.write_bytes(b"".join(lines))
    for view in workspace().glob("worktrees.d/*/*.json"):
        view.unlink()
    (workspace() / "workspace.lock").write_bytes(b"")
    return {}


def locked_store(held: ExitStack) -> Arranged:
    lock = os.open(workspace() / "workspace.lock", os.O_RDWR)
    held.callback(os.close, lock)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return {"GUARD_STORE__LOCK_TIMEOUT_SECONDS": "0.2"}


def unwritable_home(_held: ExitStack) -> Arranged:
    return {"XDG_STATE_HOME": "/proc/nowhere", "noted": False}


def no_home(_held: ExitStack) -> Arranged:
    return {"XDG_STATE_HOME": "", "HOME": "not/a/whole/path", "noted": False}


def full_disk(_held: ExitStack) -> Arranged:
    return {"prelude": FULL_DISK, "noted": False}


def no_git(_held: ExitStack) -> Arranged:
    return {"PATH": "/proc/nowhere"}


def hanging_git(_held: ExitStack) -> Arranged:
    program = write(Path.cwd().parent / "bin" / "git", HANGING_GIT)
    program.chmod(0o755)
    return {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "HANG_PID": str(program.parent / "pid"),
        "GUARD_HOOKS__TIME_LIMIT_SECONDS": "1.5",
        "GUARD_HOOKS__BASELINE_SECONDS": "1.5",
    }


def vanished_repository(_held: ExitStack) -> Arranged:
    shutil.rmtree(".git")
    return {}


def broken_repository(_held: ExitStack) -> Arranged:
    write(Path(".git", "HEAD"), b"\0\xff nothing")
    return {}


def failing_import(error: str) -> Callable[[ExitStack], Arranged]:
    """A module that guard needs, broken: whatever Python can raise is raised there."""

    def arrange(_held: ExitStack) -> Arranged:
        folder = write(Path.cwd().parent / "broken" / "pydantic.py", f"raise {error}").parent
        return {"PYTHONPATH": f"{folder}:{ROOT}"}

    return arrange


FAULTS = {
    "bad config": bad_config,
    "state of a newer guard": unreadable_view,
    "damaged log": damaged_log,
    "locked store": locked_store,
    "unwritable home": unwritable_home,
    "no home": no_home,
    "full disk": full_disk,
    "no git": no_git,
    "hanging git": hanging_git,
    "vanished repository": vanished_repository,
    "broken repository": broken_repository,
    "no memory": failing_import("MemoryError"),
    "too deep": failing_import("RecursionError('too deep')"),
    "interrupted": failing_import("KeyboardInterrupt"),
    "leaving": failing_import("SystemExit(3)"),
    "a bug": failing_import("ZeroDivisionError('\\x1b[31m')"),
}


def called(agent: str, event: str, told: bytes, arranged: Arranged) -> str:
    """What a hook in a process of its own prints; it always ends well."""
    prelude = arranged.get("prelude", "")
    more = {name: text for name, text in arranged.items() if name.isupper()}
    done = subprocess.run(
        [sys.executable, "-c", prelude + HOOK, "hook", agent, event],
        env={**os.environ, "PYTHONPATH": str(ROOT), **more},
        input=told,
        capture_output=True,
        timeout=LONG_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_session_is_let_go(session: Path, held: ExitStack, fault: str) -> None:
    told = document("claude", "Stop", background_tasks=[])
    beginning = document("claude", "SessionStart", "s2", source="startup")
    arranged = FAULTS[fault](held)
    found = read(called("claude", "Stop", told, arranged))
    assert list(found) == ["systemMessage"]
    assert found["systemMessage"].startswith("guard could not decide, and lets the session stop: ")
    assert found["systemMessage"].isprintable()
    assert called("claude", "SessionStart", beginning, arranged) == ""
    if arranged.get("noted", True):
        assert "claude Stop: " in faults()


def state_home_as_file(root: Path) -> None:
    home = Path(os.environ["HOME"]) / "state"
    home.rename(home.with_name("elsewhere"))
    write(home, "")


def workspace_as_link(root: Path) -> None:
    place = Invocation().workspace.path
    place.rename(root.parent / "elsewhere")
    place.symlink_to(root.parent / "elsewhere")


def pipe_as_head(root: Path) -> None:
    (root / ".git/HEAD").unlink()
    os.mkfifo(root / ".git/HEAD")


def file_as_git_directory(root: Path) -> None:
    shutil.rmtree(root / ".git")
    write(root / ".git", "")


BROKEN: dict[str, Callable[[Path], object]] = {
    "no log": lambda _: (Invocation().workspace.path / "events.jsonl").unlink(),
    "a link as workspace": workspace_as_link,
    "a file as state home": state_home_as_file,
    "no git directory": lambda root: shutil.rmtree(root / ".git"),
    "a pipe as HEAD": pipe_as_head,
    "a file as git directory": file_as_git_directory,
}


@pytest.mark.parametrize("breaks", BROKEN.values(), ids=BROKEN)
def test_the_work_is_saved_before_a_session_is_let_go(
    breaks: Callable[[Path], object], session: Path, tmp_path: Path
) -> None:
    work = {path.name: path.read_text() for path in session.glob("*.txt")}
    assert len(work) > 1
    breaks(session)
    found = read(called("claude", "Stop", document("claude", "Stop", background_tasks=[]), {}))
    told = re.search("the work tree is saved: (.*) DIR$", found["systemMessage"])
    assert told, found
    back, words = tmp_path / "back", shlex.split(told[1])
    if words[0] == "guard":
        assert run(*words[1:], back).code == 0
    else:
        back.mkdir()
        subprocess.run(["sh", "-c", f"{told[1]} {back}"], check=True)
    assert {path.name: path.read_text() for path in back.glob("*.txt")} == work


def test_a_broken_repository_that_guard_never_saw_is_not_copied(
    repository: Path, home: Path, tmp_path: Path
) -> None:
    shutil.rmtree(repository / ".git")
    write(repository / ".git", "")
    found = read(called("claude", "Stop", document("claude", "Stop", background_tasks=[]), {}))
    assert "saved" not in found["systemMessage"]
    assert not list(tmp_path.rglob("shadow.git"))


def test_the_same_session_is_held_without_a_fault(session: Path) -> None:
    found = read(called("claude", "Stop", document("claude", "Stop", background_tasks=[]), {}))
    assert found["decision"] == "block"
    assert decisions() == [("blocked", "uncommitted", 1)]


def test_a_block_that_cannot_be_recorded_is_none(session: Path, held: ExitStack) -> None:
    arranged = locked_store(held)
    for _ in range(3):
        assert "decision" not in read(
            called("claude", "Stop", document("claude", "Stop", background_tasks=[]), arranged)
        )


def gone(path: Path) -> bool:
    """Whether the program that wrote its pid there has ended, if it ever began."""
    return not path.exists() or not is_alive(int(path.read_text()), None)


def test_the_limit_of_a_stop_ends_git_too(session: Path, held: ExitStack) -> None:
    arranged = hanging_git(held)
    begun = time.monotonic()
    arranged["GUARD_COMPLETION_CHECK__GIT_TIMEOUT_SECONDS"] = "600"
    told = document("claude", "Stop", background_tasks=[])
    found = read(called("claude", "Stop", told, arranged))
    assert found["systemMessage"].endswith("guard took longer than 1.5 s")
    assert time.monotonic() - begun < LONG_SECONDS
    assert gone(Path(arranged["HANG_PID"]))


def test_the_limit_of_a_start_goes_on_without_a_baseline(repository: Path, held: ExitStack) -> None:
    commit(repository, "first.txt")
    arranged = hanging_git(held)
    arranged["GUARD_COMPLETION_CHECK__GIT_TIMEOUT_SECONDS"] = "600"
    told = document("claude", "SessionStart", source="startup")
    for limit in ("6", "40"):  # On a busy machine it may not get to git by the first of these.
        arranged["GUARD_HOOKS__BASELINE_SECONDS"] = limit
        assert called("claude", "SessionStart", told, arranged) == ""
        if Path(arranged["HANG_PID"]).exists():
            break
    assert gone(Path(arranged["HANG_PID"]))
    assert events("iteration_started") == []
    recorded: list[Any] = events("hook_session_started")
    said = f"guard took longer than {limit} s"
    assert (recorded[-1].began, recorded[-1].detail) == (False, said)
    assert f"claude SessionStart: {said}" in faults()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_hook_that_is_told_to_end_leaves_nothing_behind(
    session: Path, held: ExitStack, number: int
) -> None:
    arranged = hanging_git(held)
    pid = Path(arranged["HANG_PID"])
    process = subprocess.Popen(
        [sys.executable, "-m", "guard", "hook", "claude", "Stop"],
        env={
            **os.environ,
            **arranged,
            "PYTHONPATH": str(ROOT),
            "GUARD_HOOKS__TIME_LIMIT_SECONDS": "50",
            "GUARD_COMPLETION_CHECK__GIT_TIMEOUT_SECONDS": "600",
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(document("claude", "Stop", background_tasks=[]))
    process.stdin.close()
    until(lambda: pid.exists() or process.poll() is not None)
    process.send_signal(number)
    assert process.wait(LONG_SECONDS) == 0
    assert gone(pid)
    assert "claude Stop: guard was told to end" in faults()
    assert process.stdout is not None
    process.stdout.close()


def test_a_folder_that_is_gone(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below = session / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    told = document("claude", "Stop", background_tasks=[])
    below.rmdir()
    assert "decision" not in read(called("claude", "Stop", told, {}))


def test_no_document_holds_a_session_or_raises(
    session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is on stdin: an answer in one line, or none, and no bug of guard's."""
    random.seed(7)
    texts: list[bytes] = [
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"{",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b"{}" + b" " * 9_000_000,
        *(random.randbytes(200) for _ in range(5)),
    ]
    hostile: list[Any] = [
        None,
        1,
        -1e308,
        True,
        "",
        "\0",
        "\x1b[2J\n",
        "\ud800",
        "x" * 10_000,
        [],
        {},
    ]
    for name in FIELDS:
        texts += [json.dumps({"cwd": str(session), name: value}).encode() for value in hostile]
    for agent, kinds in KINDS.items():
        for event in (name for name, kind in kinds.items() if kind in ANSWERED):
            for text in texts if agent == "claude" else texts[:9]:
                read(answer(agent, event, text, os.environ))
    assert "a bug in guard" not in faults()


def test_unknown_agents_and_events_are_answered_with_nothing(session: Path) -> None:
    assert answer("nobody", "Stop", b"{}", os.environ) == ""
    assert answer("claude", "Nothing", b"{}", os.environ) == ""
    assert answer("claude", "PreToolUse", b"{}", os.environ) == ""


def test_a_timer_of_somebody_else_goes_on(session: Path, held: ExitStack) -> None:
    earlier = signal.setitimer(signal.ITIMER_REAL, 500)
    held.callback(signal.setitimer, signal.ITIMER_REAL, *earlier)
    handler = signal.getsignal(signal.SIGALRM)
    stop()
    assert signal.getsignal(signal.SIGALRM) == handler
    assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] < 500


def test_a_log_that_is_gone_traps_no_session_and_its_work_is_saved(
    session: Path, tmp_path: Path
) -> None:
    place = Invocation().workspace.path
    place.rename(tmp_path / "moved")
    said = stop()
    assert "decision" not in said
    assert "is gone" in said["systemMessage"]
    assert start(session="s2") == ""
    assert "is gone" in faults()
    identity = said["systemMessage"].partition(" restore ")[2].split()[0]
    back = run("restore", identity, "made.txt", "--to", tmp_path / "back")
    assert back.code == 0, back
    assert (tmp_path / "back/made.txt").read_text() == "by the agent\n"
    assert not place.exists()
