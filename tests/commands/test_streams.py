"""Standard streams that nobody reads, that are full, or that are closed: the verdict stands, and the agent runs on."""

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import commit, git, run, write
from tests.support.sessions import ending, script, until

WORK = "date +%s%N >> work.txt; git add work.txt; git commit -q -m 'feat: work'"
COMMIT = "echo done > done.txt && git add done.txt && git commit -q -m 'feat: done'"
TIME_LIMIT = 120


@pytest.fixture(autouse=True)
def begun(repository: Path) -> Path:
    """A repository with one commit."""
    commit(repository, "first.txt")
    return repository


@pytest.fixture(autouse=True)
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`guard` as a shell finds it."""
    script(tmp_path / "bin" / "guard", f'exec {shlex.quote(sys.executable)} -m guard "$@"')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash; its exit code is that of the first command of a pipeline."""
    return subprocess.run(
        ["bash", "-c", f"{line}; exit ${{PIPESTATUS[0]}}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIME_LIMIT,
    )


def statuses() -> list[str]:
    """The verdicts in the log."""
    events = run("log", "--type", "check_made", "--format", "json").json["events"]
    return [event["status"] for event in events]


def test_an_ignored_hangup_ends_neither_guard_nor_the_agent(begun: Path) -> None:
    agent = f"echo up > up; while [ ! -e hung-up ]; do sleep 0.1; done; sleep 1; {COMMIT}"
    words = [sys.executable, "-m", "guard", "run", "--no-probe", "--", "sh", "-c", agent]
    process = subprocess.Popen(
        ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    with ending(process) as guard:
        until((begun / "up").exists)
        guard.send_signal(signal.SIGHUP)
        write(begun / "hung-up", "")
        assert guard.wait(TIME_LIMIT) == 0
    assert git(begun, "log", "-1", "--format=%s") == "feat: done\n"


def test_without_room_for_its_output_the_agent_is_judged_all_the_same() -> None:
    agent = f"head -c 1000000 /dev/zero; sleep 1; echo more; {COMMIT}"
    done = shell(f"ulimit -f 200; guard run --no-probe -- sh -c {shlex.quote(agent)} | cat")
    assert done.returncode == 0, done.stderr
    assert statuses() == ["complete"]


VERDICTS = {
    "guard run --no-probe -- true": 10,
    "guard run --no-probe --format json -- true": 10,
    "guard loop --no-probe --max-iterations 1 -- true": 10,
    "guard check --no-probe --max-probes 1": 10,
    "guard probe --agent command --probe-command false": 15,
    "guard breaker allow": 20,
}
ANSWERS = {"guard validate wrong.json": 1, "guard validate --format json wrong.json": 1}


def prepare(line: str) -> None:
    """What the command needs to have a verdict."""
    first = {"check": ("baseline",), "breaker": ("breaker", "trip")}.get(line.split()[1])
    assert first is None or run(*first).code == 0


@pytest.mark.parametrize(("line", "code"), [*VERDICTS.items(), *ANSWERS.items()])
def test_an_answer_whose_reader_has_gone_is_the_exit_code_still(
    line: str, code: int, begun: Path
) -> None:
    write(begun / "wrong.json", '{"schema": "guard/evidence/1"}')
    prepare(line)
    done = shell(f"(sleep 1; {line}) | true")
    assert done.returncode == code, done.stderr
    assert "printed" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize(("line", "code"), VERDICTS.items())
def test_a_verdict_that_there_is_no_room_for_is_the_exit_code_still(line: str, code: int) -> None:
    prepare(line)
    done = shell(f"{line} > /dev/full")
    assert done.returncode == code, done.stderr
    assert "cannot print the result: No space left on device" in done.stderr


def test_a_loop_whose_reader_has_gone_goes_on(begun: Path) -> None:
    agent = f"{WORK}; sleep 1"
    words = ["--no-probe", "--max-iterations", "3", "--", "sh", "-c", agent]
    done = shell(f"guard loop {shlex.join(words)} | head -n 1")
    assert (done.returncode, done.stdout.splitlines()[0][:11]) == (0, "iteration 1")
    assert statuses() == ["complete"] * 3


@pytest.mark.parametrize("form", ["text", "json"])
def test_an_agent_whose_errors_nobody_reads_any_more_is_judged_at_its_limit(form: str) -> None:
    agent = ["sh", "-c", "echo first >&2; exec sleep 300"]
    for limit in ("3", "20", "60"):  # On a busy machine it may be ended before it says anything.
        words = ["--format", form, "--no-probe", "--max-time", limit, "--", *agent]
        done = shell(f"guard run {shlex.join(words)} 2>&1 | head -n 1")
        if done.stdout == "first\n":
            break
    assert (done.returncode, done.stdout) == (12, "first\n")
    assert statuses()[-1:] == ["working"]


def test_an_error_that_nobody_reads_is_the_exit_code_still() -> None:
    assert shell("(sleep 1; guard schema nope 2>&1) | true").returncode == 2
    assert shell("(sleep 1; guard agent 2>&1) | true").returncode == 2


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_what_goes_to_a_closed_stream_goes_nowhere(
    closed: str, workspace: Path, tmp_path: Path
) -> None:
    """Not into a file of guard's own, which would have got the stream's number."""
    agent = f"cat > {tmp_path}/got && printf 'sa%s\\n' id && printf 'sa%s\\n' id >&2; sleep 1"
    words = ["--workspace", str(workspace), "run", "--no-probe", "--", "sh", "-c", agent]
    done = shell(f"guard {shlex.join(words)} {closed}")
    assert done.returncode == 10
    heard = ("said\n" in done.stdout, "said\n" in done.stderr)
    assert heard == (">&-" not in closed.split(), "2>&-" not in closed)
    assert (tmp_path / "got").read_bytes() == b""
    assert run("--workspace", workspace, "verify").code == 0
    files = {path: path.read_bytes() for path in workspace.rglob("*") if path.is_file()}
    holding = {path.suffix: data for path, data in files.items() if b"said\n" in data}
    assert holding == {".stdout": b"said\n", ".stderr": b"said\n"}
