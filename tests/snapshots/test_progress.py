"""A snapshot that takes long says on a terminal what it is at, and leaves nothing of that behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from guard.context.output import Live
from guard.core.rescue.settings import SnapshotLimits
from tests.support import TIME_LIMIT, run, write
from tests.support.rescues import take_snapshot

CLEARED = "\r\x1b[K"


@pytest.fixture(autouse=True)
def many(repository: Path) -> None:
    for number in range(3000):
        write(repository / f"many/{number // 100}/{number}.txt", f"{number}\n")


def on_terminal(*words: str) -> tuple[str, str]:
    """What `guard` prints on stdout, and on stderr if that is a terminal."""
    terminal, end = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "guard", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=end,
        env={**os.environ, "COLUMNS": "200"},
    )
    os.close(end)
    said = b"".join(iter(lambda: heard(terminal), b""))
    os.close(terminal)
    out, _ = process.communicate(timeout=TIME_LIMIT)
    assert process.returncode == 0
    return out.decode(), said.decode()


def heard(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # So it is when the last one who had it open has gone.
        return b""


def test_a_terminal_shows_what_it_is_at_and_is_left_clean(repository: Path) -> None:
    os.truncate(write(repository / "large.bin", b""), 60_000_000)
    out, said = on_terminal("snapshot")
    shown = said.split(CLEARED)
    assert shown[0] == shown[-1] == ""
    assert shown[1] == "guard: saving the work tree"
    assert shown[-2] == "guard: reading the snapshot back"
    assert "saved: 3001 files" in out
    assert "\x1b" not in out


@pytest.mark.parametrize("words", ["-q snapshot", "snapshot --format json"])
def test_nobody_who_wants_it_quiet_is_told(words: str) -> None:
    assert on_terminal(*words.split())[1] == ""


def test_it_is_told_how_many_files_are_done(repository: Path, workspace: Path) -> None:
    said: list[str] = []
    take_snapshot(repository, workspace, limits=SnapshotLimits(progress=said.append))
    assert any(line.startswith("saving the work tree; ") and "files" in line for line in said)


def test_nothing_of_it_is_said_without_a_terminal() -> None:
    assert run("snapshot").err == ""


def test_how_far_it_is_is_said_as_often_as_it_can_be_read(
    capfd: pytest.CaptureFixture[str],
) -> None:
    live = Live(quiet=False)
    live._terminal = True
    for number in range(10_000):
        live.show_progress(f"saving; {number} files")
    live.show_progress("reading back")
    live.clear()
    shown = capfd.readouterr().err.split("\r")
    assert shown[1] == "guard: saving; 0 files"
    assert shown[-2:] == ["guard: reading back", ""]
    assert len(shown) < 1000
