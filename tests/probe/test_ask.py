"""Asking: the limits that hold whatever the program does, what it inherits, and when it is asked again."""

import os
import subprocess
import sys
from pathlib import Path
from time import monotonic

import pytest

from guard.core.probe.answer import ProbeResult
from guard.errors import Refused, WrongUsage
from guard.probe import _retry_overloaded, ask, scratch
from guard.probe.base import ProbeQuestion
from guard.system.process_identity import is_alive
from guard.system.processes import run
from tests.probe.standin import NOW, SESSION, asked, stand_in
from tests.support import ROOT, TIME_LIMIT, write
from tests.support.sessions import until

ANSWER = """line(type="result", session_id="x", subtype="success", is_error=False, structured_output=document())"""
OVERLOADED = """
line(type="result", session_id="x", subtype="success", is_error=True, api_error_status=529, result="529 Overloaded")
sys.exit(1)
"""

MISBEHAVED: dict[str, tuple[str, str, str]] = {
    "a gigabyte": (
        "for _ in range(16384): sys.stdout.buffer.write(b'{' * 65536)",
        "unreadable",
        "it printed more than 1048576 bytes",
    ),
    "a gigabyte without an end, on one line": (
        ("print(answer(message='m')[:-2], end='', flush=True)\n"
        "for _ in range(16384): sys.stdout.buffer.write(b'm' * 65536)"),
        "unreadable",
        "it printed more than 1048576 bytes",
    ),
    "an answer, then a gigabyte": (
        "print(answer(), flush=True)\nfor _ in range(16384): sys.stdout.buffer.write(b'\\n' * 65536)",
        "unreadable",
        "it printed more than 1048576 bytes",
    ),
    "a quarter of a gigabyte of errors": (
        "for _ in range(4096): sys.stderr.buffer.write(b'e' * 65535 + b'\\n')\nsys.exit(7)",
        "crashed",
        "exit code 7: eee",
    ),
    "never ends": ("time.sleep(300)", "timeout", "no answer within 2 s"),
    "never ends, and ignores to be told": (
        ("import signal\nfor one in (1, 2, 15): signal.signal(one, signal.SIG_IGN)\n"
        "while True: time.sleep(300)"),
        "timeout",
        "no answer within 2 s",
    ),
    "never ends, busily": ("while True: print('working', flush=True); time.sleep(0.01)", "timeout", "no answer"),
    "answers, and never ends": ("print(answer(), flush=True); time.sleep(300)", "timeout", "no answer within 2 s"),
    "never ends, with a grandchild in a session of its own": (
        "import subprocess\nsubprocess.Popen(['sleep', '200'], start_new_session=True)\ntime.sleep(300)",
        "timeout",
        "no answer within 2 s",
    ),
    "closes its output, and never ends": (
        "os.close(1); os.close(2); time.sleep(300)",
        "timeout",
        "no answer within 2 s",
    ),
    "prose": ("print('I am done with everything!')", "unreadable", "no JSON object"),
    "two objects that contradict each other": (
        "print(answer('working')); print(answer('complete'))",
        "unreadable",
        "2 objects claim to be the answer",
    ),
    "nested 100,000 deep": (
        "print('[' * 100000 + answer() + ']' * 100000)",
        "unreadable",
        "brackets",
    ),
    "an old answer": (
        "nonce = '0' * 16\nprint(answer())",
        "unreadable",
        "the answer does not carry the nonce of this probe",
    ),
    "bytes that are no text": (
        "sys.stdout.buffer.write(b'\\xff' + answer().encode())",
        "unreadable",
        "not UTF-8",
    ),
    "an answer, and a bad end": ("print(answer()); sys.exit(3)", "crashed", "exit code 3"),
    "an answer, and a death": (
        "print(answer(), flush=True); os.kill(os.getpid(), 9)",
        "crashed",
        "exit code -9",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "failure", "said"), MISBEHAVED.values(), ids=MISBEHAVED)
def test_whatever_it_does_it_is_a_failure_in_time(
    body: str, failure: str, said: str, tmp_path: Path
) -> None:
    stand_in(tmp_path, "program", body)
    limit = 2 if failure == "timeout" else 120
    begun = monotonic()
    result = asked(tmp_path, "command", command="program", time_limit=limit)
    assert monotonic() - begun < TIME_LIMIT
    assert (result.failure, result.answer, result.lasting) == (failure, None, False), result
    assert said in result.detail
    assert result.detail.isprintable()
    assert len(result.detail) <= 400


@pytest.mark.parametrize(
    "kind", ["a gigabyte", "an answer, then a gigabyte", "a quarter of a gigabyte of errors"]
)
def test_a_gigabyte_takes_no_memory(kind: str, tmp_path: Path) -> None:
    stand_in(tmp_path, "program", MISBEHAVED[kind][0])
    script = """if True:
        import resource, sys
        from pathlib import Path
        from tests.probe.standin import asked
        used = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        asked(Path(sys.argv[1]), "command", command="true")
        before = used()
        print(asked(Path(sys.argv[1]), "command", command="program").failure, used() - before)
    """
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
        check=True,
    )
    failure, grown = done.stdout.split()
    assert failure == MISBEHAVED[kind][1]
    assert int(grown) < 32 * 1024, "kibibytes"


def test_an_answer_counts_although_something_holds_the_pipe(tmp_path: Path) -> None:
    body = (
        f"import subprocess\nsubprocess.Popen(['sleep', '200'], start_new_session=True)\n{ANSWER}"
    )
    stand_in(tmp_path, "claude", body)
    begun = monotonic()
    assert asked(tmp_path, "claude").answer is not None
    assert monotonic() - begun < TIME_LIMIT


def test_what_it_left_running_after_its_answer_ends_too(tmp_path: Path) -> None:
    body = """
import subprocess
left = subprocess.Popen(["sleep", "300"], stdin=-3, stdout=-3, stderr=-3)
print(answer(), flush=True)
open(%r, "w").write(str(left.pid))
"""
    stand_in(tmp_path, "program", body % str(tmp_path / "pid"))
    assert asked(tmp_path, "command", command="program").answer is not None
    pid = int((tmp_path / "pid").read_text())
    until(lambda: not is_alive(pid, None) or state_of(pid) == "Z")


def state_of(pid: int) -> str:
    done = run(["ps", "-o", "stat=", "-p", str(pid)], environ=os.environ, time_limit=60)
    return done.stdout.decode()[:1]


def test_what_it_left_in_its_group_dies_with_it(tmp_path: Path) -> None:
    body = f"import subprocess\nprint(subprocess.Popen(['sleep', '300']).pid, file=open({str(tmp_path / 'pid')!r}, 'w'))"
    stand_in(tmp_path, "program", f"{body}\ntime.sleep(300)")
    for limit in (
        1,
        5,
        30,
        120,
    ):  # On a busy machine it may not get that far in the first of these.
        result = asked(tmp_path, "command", command="program", time_limit=limit)
        assert result.failure == "timeout"
        if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text():
            break
    pid = int((tmp_path / "pid").read_text())
    until(lambda: state_of(pid) in ("", "Z"))


def test_a_session_inside_another_knows_nothing_of_it(tmp_path: Path) -> None:
    program = stand_in(tmp_path, "claude", ANSWER)
    dropped = {
        "CLAUDECODE": "1",
        "CLAUDE_CODE_ENTRYPOINT": "cli",
        "CLAUDE_CODE_SESSION_ID": "x",
        "CLAUDE_PROJECT_DIR": "/x",
        "CLAUDE_PID": "1",
        "CODEX_SANDBOX": "seatbelt",
        "CODEX_THREAD_ID": "x",
        "GEMINI_CLI": "1",
        "QWEN_CODE": "1",
        "OPENCODE": "1",
        "COPILOT_CLI": "1",
        "COPILOT_ALLOW_ALL": "true",
        "GIT_DIR": "/x",
        "AI_AGENT": "x",
    }
    kept = {
        "ANTHROPIC_API_KEY": "k",
        "CLAUDE_CODE_OAUTH_TOKEN": "t",
        "CLAUDE_CONFIG_DIR": "/c",
        "CLAUDE_CODE_USE_BEDROCK": "1",
        "CODEX_HOME": "/h",
        "OPENAI_API_KEY": "k",
        "GEMINI_API_KEY": "k",
        "HTTPS_PROXY": "p",
        "COPILOT_GITHUB_TOKEN": "t",
    }
    asked(tmp_path, "claude", environ={**dropped, **kept})
    environ = program.called["environ"]
    assert [name for name in dropped if name in environ] == []
    assert {name: environ.get(name) for name in kept} == kept
    assert environ["GUARD_PROBE"] == "1"


def test_a_probe_does_not_probe(tmp_path: Path) -> None:
    program = stand_in(tmp_path, "claude", ANSWER)
    with pytest.raises(Refused, match="inside a probe"):
        asked(tmp_path, "claude", environ={"GUARD_PROBE": "1"})
    assert not program.log.exists()


@pytest.mark.parametrize(
    "session",
    ["--help", "-c", "latest", "../../etc/passwd", "a b", f"{SESSION}\n", f" {SESSION}", "", "*"],
    ids=repr,
)
@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "qwen", "copilot", "opencode"])
def test_what_is_no_session_id_becomes_no_argument(
    agent: str, session: str, tmp_path: Path
) -> None:
    program = stand_in(tmp_path, agent, ANSWER)
    result = asked(tmp_path, agent, session=session)
    assert (result.failure, result.lasting) == ("no_session", True)
    assert not program.log.exists()


def test_a_session_that_nobody_named(tmp_path: Path) -> None:
    result = asked(tmp_path, "claude", session=None)
    assert (result.failure, result.lasting, result.session) == ("no_session", True, None)


@pytest.mark.parametrize("model", ["--help", "-x", "a b", "a\n", "a" * 129])
def test_what_is_no_model_becomes_no_argument(model: str, tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match="not the name of a model"):
        asked(tmp_path, "claude", model=model)


def test_an_agent_that_nobody_knows(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match="cannot ask an agent"):
        asked(tmp_path, "../claude")


def test_a_program_in_the_work_tree_is_not_found(tmp_path: Path) -> None:
    """Neither by a relative entry of the search path, nor by a whole one, nor through a link."""
    work = tmp_path / "work"
    planted = write(work / "bin" / "claude", "#!/bin/sh\ntouch ../planted\n")
    planted.chmod(0o755)
    link = tmp_path / "link"
    link.symlink_to(planted.parent)
    path = os.pathsep.join(["bin", "", ".", str(planted.parent), str(link), "/usr/bin", "/bin"])
    result = asked(tmp_path, "claude", environ={"PATH": path})
    assert (result.failure, result.lasting) == ("no_cli", True)
    assert f"claude is only inside the repository ({planted}): guard does not run" in result.detail
    assert not (tmp_path / "planted").exists()


def test_what_it_runs_is_not_found_in_the_work_tree_either(tmp_path: Path) -> None:
    planted = write(tmp_path / "work" / "bin" / "helper", f"#!/bin/sh\ntouch {tmp_path}/planted\n")
    planted.chmod(0o755)
    stand_in(
        tmp_path, "claude", f"import subprocess\nsubprocess.run('helper', shell=True)\n{ANSWER}"
    )
    path = os.pathsep.join(["bin", str(tmp_path / "bin"), str(planted.parent), "/usr/bin", "/bin"])
    assert asked(tmp_path, "claude", environ={"PATH": path}).answer is not None
    assert not (tmp_path / "planted").exists()


def test_a_command_by_its_path(tmp_path: Path) -> None:
    program = stand_in(tmp_path, "program", "print(answer())").program
    assert asked(tmp_path, "command", command=str(program)).answer is not None
    assert asked(tmp_path, "command", command="../bin/program").answer is not None


COMMANDS: dict[str, tuple[str | None, str]] = {
    "none": (None, "needs a probe command"),
    "nothing but space": ("  ", "needs a probe command"),
    "a quote that is not closed": ("program 'x", "cannot be split into words"),
    "a program that is missing": ("no-such-program", "there is no program 'no-such-program'"),
    "a folder": ("/tmp/", "there is no program"),
    "a file that cannot be run": ("./script", "does not start"),
}


@pytest.mark.parametrize(("command", "said"), COMMANDS.values(), ids=COMMANDS)
def test_a_command_that_cannot_be_run(command: str | None, said: str, tmp_path: Path) -> None:
    write(tmp_path / "work" / "script", "#!/no/such/interpreter\n").chmod(0o755)
    result = asked(tmp_path, "command", command=command)
    assert (result.failure, result.lasting) == ("no_cli", True)
    assert said in result.detail


def test_a_work_tree_that_is_gone(tmp_path: Path) -> None:
    stand_in(tmp_path, "claude", ANSWER)
    environ = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    result = ask(ProbeQuestion("claude", tmp_path / "gone", 5, environ, NOW, session=SESSION))
    assert (result.failure, result.answer) == ("no_cli", None)


def test_an_overloaded_service_is_asked_again(tmp_path: Path) -> None:
    program = stand_in(
        tmp_path, "claude", f"if times == 1:{OVERLOADED.replace(chr(10), chr(10) + ' ')}\n{ANSWER}"
    )
    begun = monotonic()
    result = asked(tmp_path, "claude")
    assert 1 <= result.elapsed_seconds <= round(monotonic() - begun, 3)
    assert result.answer is not None
    first, second = program.calls
    assert first["argv"][1] != second["argv"][1], "each attempt has a nonce of its own"


def test_an_overloaded_service_is_asked_three_times_at_most(tmp_path: Path) -> None:
    program = stand_in(tmp_path, "claude", OVERLOADED)
    result = asked(tmp_path, "claude")
    assert (result.failure, result.lasting, len(program.calls)) == ("overloaded", False, 3)


def test_an_overloaded_service_is_not_asked_beyond_the_time_limit() -> None:
    """The second wait would end after the limit, so there is none; no process starts, which may take long."""
    refused = ProbeResult(
        answer=None,
        failure="overloaded",
        lasting=False,
        detail="529",
        retry_at=None,
        agent="claude",
        session=None,
        elapsed_seconds=0.0,
        cost_usd=None,
        tokens=None,
    )
    calls: list[float] = []

    def attempt() -> ProbeResult:
        calls.append(monotonic())
        return refused

    for _ in range(9):  # On a busy machine the first wait may end after the limit too.
        calls.clear()
        assert _retry_overloaded(attempt, 3) is refused
        if len(calls) != 1:
            break
    assert len(calls) == 2


@pytest.mark.parametrize(
    "body",
    [
        "print('prose')",
        "sys.exit('Not logged in')",
        "sys.exit('usage limit reached')",
        "sys.exit(3)",
    ],
    ids=["an answer that cannot be read", "no login", "a limit", "a crash"],
)
def test_nothing_else_is_asked_again(body: str, tmp_path: Path) -> None:
    program = stand_in(tmp_path, "claude", body)
    assert asked(tmp_path, "claude").answer is None
    assert len(program.calls) == 1


def test_a_session_that_is_too_large_is_not_copied(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scratch, "MOST_BYTES", 1000)
    write(home / ".copilot" / "session-state" / SESSION / "events.jsonl", "x" * 1001)
    program = stand_in(tmp_path, "copilot", "")
    result = asked(tmp_path, "copilot")
    assert (result.failure, program.log.exists()) == ("no_session", False)
    assert "too large" in result.detail


def test_what_a_probe_left_in_a_session_of_its_own_is_ended(tmp_path: Path) -> None:
    left = (
        "import subprocess\n"
        "child = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\n"
    )
    stand_in(tmp_path, "claude", left + ANSWER)
    assert asked(tmp_path, "claude").answer is not None
    pid = int((tmp_path / "pid").read_text())
    until(lambda: not is_alive(pid, None) or state_of(pid) == "Z")
