"""An observing hook as its agent's program calls it: nothing is lost, nothing is said, and nothing is held up."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guard.core.hooks.event_kinds import ANSWERED, KINDS
from guard.core.hooks.payload import HookCall
from guard.hooks.agent import payload
from guard.hooks.call import call
from tests.hooks.agent.documents import DOCUMENTS, data
from tests.support import Result, run

AT_ONCE = 50
OBSERVED = [
    (a, e) for a, events in KINDS.items() for e, kind in events.items() if kind not in ANSWERED
]
ENTER = "import sys; sys.argv = ['guard', *sys.argv[1:]]; from guard.entry import main; main()"


def started(*words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", ENTER, "hook", *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)


def hook(*words: str, stdin: bytes = b"{}") -> Result:
    with started(*words) as process:
        out, err = process.communicate(stdin, timeout=90)
    return Result(process.returncode, out.decode(), err.decode())


def spooled(home: Path) -> list[HookCall]:
    files = (home / "state/guard/spool.d").glob("*/*.json")
    return [HookCall.model_validate_json(one.read_bytes()) for one in files]


@contextmanager
def standard_input(stdin: bytes) -> Iterator[None]:
    kept = os.dup(0)
    with tempfile.TemporaryFile() as file:
        file.write(stdin)
        file.seek(0)
        os.dup2(file.fileno(), 0)
        try:
            yield
        finally:
            os.dup2(kept, 0)
            os.close(kept)


def test_every_observed_document_is_spooled_and_nothing_is_said(
    repository: Path, home: Path
) -> None:
    seen = [pair for pair in OBSERVED if pair[1] in DOCUMENTS.get(pair[0], {})]
    assert len(seen) == 38
    with_stdin = [(one, data(*one, cwd=str(repository))) for one in seen]
    results = [hook(*one, stdin=stdin) for one, stdin in with_stdin[::6]]
    assert set(results) == {Result(0, "", "")}
    for one, stdin in with_stdin:
        with standard_input(stdin):
            assert call(one, os.environ) == 0
    assert {(one.agent, one.event) for one in spooled(home)} == set(seen)


def test_fifty_at_once_lose_nothing(repository: Path, home: Path) -> None:
    processes = [started("claude", "SubagentStart") for _ in range(AT_ONCE)]
    for number, process in enumerate(processes):
        assert process.stdin is not None
        process.stdin.write(data("claude", "SubagentStart", agent_id=f"a{number}"))
        process.stdin.flush()
    # None ends before its stdin does: all of them are there now.
    results = [process.communicate(timeout=90) for process in processes]
    assert [process.returncode for process in processes] == [0] * AT_ONCE
    assert set(results) == {(b"", b"")}
    assert sorted(str(one.helper) for one in spooled(home)) == sorted(
        f"a{number}" for number in range(AT_ONCE)
    )


def test_it_loads_next_to_nothing(repository: Path) -> None:
    ours = {
        "guard",
        "guard.entry",
        "guard.core",
        "guard.core.hooks",
        "guard.core.hooks.event_kinds",
        "guard.hooks",
        *(f"guard.hooks.{name}" for name in ("call", "faults", "plain_json", "spool")),
        "guard.hooks.agent",
        "guard.hooks.agent.journal",
        "guard.hooks.agent.payload",
    }
    stdin = data("claude", "PostToolUse", cwd=str(repository))
    more = _loaded(ENTER, "hook", "claude", "PostToolUse", stdin=stdin) - _loaded("pass")
    assert more <= ours | {"_json", "select"}
    assert "guard.hooks.spool" in more


def _loaded(script: str, *words: str, stdin: bytes = b"") -> set[str]:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", script, *words], input=stdin, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    return {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}


@pytest.mark.parametrize(
    "words",
    [
        ["claude", "NotYetInvented"],
        ["nobody", "Stop"],
        ["claude", "\x1b[31m\nStop\udcff"],
        ["claude"],
        [],
        ["claude", "Stop", "and more"],
        ["--nonsense"],
        ["claude", "NotYetInvented", "--nonsense"],
    ],
    ids=repr,
)
def test_what_is_not_known_is_let_go_and_noted(
    words: list[str], repository: Path, home: Path
) -> None:
    result = run("hook", *words, stdin="{}")
    assert (result.code, result.out) == (0, "")
    assert result.err.startswith("guard: guard hook ")
    assert result.err.count("\n") == 1
    assert "\x1b" not in result.err
    assert len((home / "state/guard/hooks.log").read_text().splitlines()) == 1
    assert spooled(home) == []


def test_help_is_told_by_the_command_line(repository: Path) -> None:
    result = run("hook", "--help")
    assert result.code == 0
    assert all(f"\n  {agent}" in result.out for agent in KINDS)
    assert run("-q", "hook", "claude", "SubagentStart", stdin="{}") == Result(0, "", "")


def test_in_a_session_of_guards_own_it_does_nothing(
    repository: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_PROBE", "1")
    for event in ("SessionStart", "SubagentStart", "Stop", "Unknown"):
        assert hook("claude", event) == Result(0, "", "")
    assert not (home / "state").exists()


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
HOSTILE = [
    b"",
    b"\0" * 1000,
    b"[" * 1_000_000,
    b'{"a":' * 200_000,
    b'{"session_id":"' + b"x" * 9_000_000 + b'"}',
    b'{"agent_id":"\\ud800\\u0000\\u001b[31m","cwd":"/\\u0000"}',
    b'{"cwd":"' + b"/a" * 100_000 + b'"}',
    b'{"background_tasks":' + b"[" * 500 + b"]" * 500 + b"}",
    b'{"n":' + b"9" * 100_000 + b"}",
    b"\xff\xfe{}",
]


@pytest.mark.parametrize("stdin", HOSTILE, ids=lambda one: repr(one[:20]))
def test_a_hostile_document_is_heard_all_the_same(
    stdin: bytes, repository: Path, home: Path
) -> None:
    assert hook("claude", "SubagentStop", stdin=stdin) == Result(0, "", "")
    assert [one.event for one in spooled(home)] == ["SubagentStop"]


@settings(max_examples=60)
@given(st.sampled_from(OBSERVED), st.binary() | JSON.map(lambda one: json.dumps(one).encode()))
def test_any_document_is_heard(
    repository: Path, home: Path, which: tuple[str, str], stdin: bytes
) -> None:
    shutil.rmtree(home / "state", ignore_errors=True)
    with standard_input(stdin):
        assert call(which, os.environ) == 0
    heard = spooled(home)
    assert [(one.agent, one.event) for one in heard] == [which]


@pytest.mark.parametrize(
    "trouble", ["no stdin", "full stdout", "closed streams", "home is a file", "odd clock", "gone"]
)
def test_trouble_around_it_is_let_go(
    trouble: str, repository: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command: Sequence[str] = [sys.executable, "-m", "guard", "hook", "claude", "SubagentStart"]
    redirect = {"no stdin": "<&-", "full stdout": ">/dev/full", "closed streams": "<&- >&- 2>&-"}
    if trouble == "home is a file":
        (home / "state").write_text("")
    if trouble == "odd clock":
        monkeypatch.setenv("GUARD_NOW", "nonsense")
    if trouble == "gone":
        repository.rename(home / "moved")
        shutil.rmtree(home / "moved")
    script = f'exec "$@" {redirect.get(trouble, "</dev/null")}'
    done = subprocess.run(["sh", "-c", script, "sh", *command], capture_output=True, timeout=90)
    assert (done.returncode, done.stdout) == (0, b"")
    if trouble not in ("home is a file", "gone"):
        assert [one.kind for one in spooled(home)] == ["helper_started"]


def test_a_document_without_an_end_is_not_waited_for_for_ever(
    repository: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payload, "_STDIN_SECONDS", 0.2)
    reading, writing = os.pipe()
    kept = os.dup(0)
    try:
        os.dup2(reading, 0)
        os.write(writing, b'{"session_id": "s"')
        assert call(["claude", "SubagentStart"], os.environ) == 0
    finally:
        os.dup2(kept, 0)
        for descriptor in (reading, writing, kept):
            os.close(descriptor)
    assert [one.session for one in spooled(home)] == [None]


def test_whoever_writes_too_much_can_write_it_all(repository: Path, home: Path) -> None:
    process = started("claude", "SubagentStart")
    out, err = process.communicate(b'{"a":"' + b"x" * 30_000_000 + b'"}', timeout=90)
    assert (process.returncode, out, err) == (0, b"", b"")


BEFORE = {
    "a repository that is gone": ["--repo", "/gone"],
    "the same in one word": ["--repo=/gone", "--"],
    "a configuration": ["--config", "/gone/guard.toml"],
    "much": ["-v", "-qv", "--verbose", "--quiet", "--workspace=/gone/w", "--workspace", "/gone/x"],
}


def entered(*words: str, stdin: bytes = b"{}", env: dict[str, str] | None = None) -> Result:
    command = [sys.executable, "-c", ENTER, *words]
    environ = {**os.environ, **(env or {})}
    done = subprocess.run(command, input=stdin, capture_output=True, env=environ, timeout=90)
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


def test_options_before_the_command_do_not_change_the_exit_code(
    repository: Path, home: Path
) -> None:
    for options in BEFORE.values():
        stdin = data("claude", "SubagentStart", cwd=str(repository))
        result = entered(*options, "hook", "claude", "SubagentStart", stdin=stdin)
        assert result == Result(0, "", ""), options
    assert len(spooled(home)) == len(BEFORE)


@pytest.mark.parametrize(
    "words",
    [
        ["--nonsense", "hook", "claude", "SubagentStart"],
        ["--repo", "/gone", "-x", "hook", "claude", "SubagentStart"],
        ["hook", "claude", "SubagentStart", "--format"],
        ["--repo", "/gone", "hook"],
        ["--repo", "/gone", "hook", "--help"],
    ],
    ids=" ".join,
)
def test_words_that_no_command_would_take_are_noted(
    words: list[str], repository: Path, home: Path
) -> None:
    result = entered(*words, stdin=data("claude", "SubagentStart", cwd=str(repository)))
    assert (result.code, result.out) == (0, "")
    assert len((home / "state/guard/hooks.log").read_text().splitlines()) == 1
    assert spooled(home) == []


def test_variables_that_no_command_would_take_do_not_change_the_exit_code(
    repository: Path, home: Path
) -> None:
    environ = {"GUARD_REPO": "/gone", "GUARD_NOW": "never"}
    for words in (["claude", "SubagentStart"], ["claude", "Stop"], ["claude", "Stop", "--x"]):
        assert entered("hook", *words, env=environ).code == 0


def test_a_workspace_before_the_command_is_that_of_the_answer(
    repository: Path, tmp_path: Path
) -> None:
    workspace = tmp_path / "workspace"
    stdin = data("claude", "SessionStart", cwd=str(repository))
    options = ["--repo", "/gone", "--workspace", str(workspace)]
    assert entered(*options, "hook", "claude", "SessionStart", stdin=stdin).code == 0
    assert (workspace / "events.jsonl").exists()


@pytest.mark.parametrize(("value", "kept"), [("0", 1), ("false", 1), ("", 1), ("1", 0), ("x", 0)])
def test_only_a_probe_switches_hooks_off(
    value: str, kept: int, repository: Path, home: Path
) -> None:
    with standard_input(data("claude", "SubagentStart", cwd=str(repository))):
        assert call(["claude", "SubagentStart"], {**os.environ, "GUARD_PROBE": value}) == 0
    assert len(spooled(home)) == kept


def test_a_hook_that_answers_does_so_where_there_is_no_probe(
    repository: Path, home: Path, tmp_path: Path
) -> None:
    environ = {"GUARD_PROBE": "0", "GUARD_WORKSPACE": str(tmp_path / "workspace")}
    stdin = data("claude", "SessionStart", cwd=str(repository))
    assert entered("hook", "claude", "SessionStart", stdin=stdin, env=environ).code == 0
    assert (tmp_path / "workspace" / "events.jsonl").exists()


def test_a_folder_whose_name_is_not_utf_8_is_noted(
    repository: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = os.fsdecode(os.fsencode(repository.parent) + b"/odd\xff")
    repository.rename(odd)
    monkeypatch.chdir(odd)
    assert entered("hook", "claude", "Stop") == Result(0, "", "")
    assert "its name is not UTF-8" in (home / "state/guard/hooks.log").read_text()


def test_a_document_that_is_no_json_still_tells_of_the_call(repository: Path, home: Path) -> None:
    """In a process that never imports `json`, as the agents' programs start it."""
    for broken in ("{", "[1,", '{"a"', '"'):
        result = run("hook", "claude", "SubagentStart", stdin=broken)
        assert (result.code, result.out, result.err) == (0, "", "")
    assert len(list((home / "state/guard/spool.d").glob("*/*.json"))) == 4
