"""Waiting for news: files that are appended to, replaced and made, processes that end, and systems that ring no bell."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from guard.agents.liveness import locate, watched_processes
from guard.system import file_events as bells
from guard.system.file_events import News
from guard.system.host import read_host
from guard.system.process_identity import start_time
from tests.support.sessions import ending, until
from tests.support.tmux_server import PAUSE, needs_tmux, tmux_server

LONG, NO_TIME = 90.0, 0.0
FAR = 3600.0
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")


@pytest.fixture(params=["bell", "clock"])
def any_bell(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With what the system has, and with nothing but the clock."""
    if request.param == "clock":
        monkeypatch.setattr("guard.system.file_events.make_bell", lambda *_: bells.PollingBell())
    return str(request.param)


@pytest.fixture
def only_bell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks until it rings."""
    monkeypatch.setattr(bells.Inotify, "patience", FAR)


def known(pid: int) -> tuple[int, str]:
    start = start_time(pid)
    assert start is not None
    return pid, start


def append(file: Path, text: str = "x\n") -> None:
    with file.open("a") as opened:
        opened.write(text)


@contextmanager
def later(change: Callable[[], object]) -> Iterator[None]:
    """Something that happens soon after the block began."""
    timer = threading.Timer(0.1, change)
    timer.start()
    try:
        yield
    finally:
        timer.join()


def replace(file: Path) -> None:
    append(file.with_suffix(".tmp"), "a new one\n")
    os.replace(file.with_suffix(".tmp"), file)


def rotate(file: Path) -> None:
    os.rename(file, file.with_suffix(".1"))
    append(file)


CHANGES: list[Callable[[Path], None]] = [append, replace, rotate, Path.unlink]
each_change = pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)


@each_change
@pytest.mark.usefixtures("any_bell")
def test_a_change_before_the_wait_is_told_once(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    log = tmp_path / "events.jsonl"
    append(log)
    with News([log]) as news:
        assert not news.wait(NO_TIME)
        change(log)
        assert news.wait(NO_TIME)
        assert not news.wait(NO_TIME)


def is_heard(log: Path, change: Callable[[Path], None]) -> None:
    append(log)
    with News([log]) as news, later(lambda: change(log)):
        assert news.wait(LONG)


@each_change
@pytest.mark.usefixtures("any_bell")
def test_a_change_during_the_wait_ends_it(tmp_path: Path, change: Callable[[Path], None]) -> None:
    is_heard(tmp_path / "events.jsonl", change)


@each_change
@on_linux
@pytest.mark.usefixtures("only_bell")
def test_the_bell_alone_tells_every_change(tmp_path: Path, change: Callable[[Path], None]) -> None:
    is_heard(tmp_path / "events.jsonl", change)


@on_linux
@pytest.mark.usefixtures("only_bell")
def test_a_replaced_file_is_still_heard(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    with News([log]) as news:
        for change in (append, rotate, append, replace, append):
            with later(partial(change, log)):
                assert news.wait(LONG)


@on_linux
@pytest.mark.usefixtures("only_bell")
def test_a_file_that_is_moved_in_from_elsewhere_is_heard(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "log"
    elsewhere.parent.mkdir()
    append(elsewhere)
    log = tmp_path / "events.jsonl"
    with News([log]) as news, later(lambda: os.replace(elsewhere, log)):
        assert news.wait(LONG)


@on_linux
def test_a_bell_that_rang_is_silent_again(tmp_path: Path) -> None:
    with ending(subprocess.Popen(PAUSE)) as process:
        bell = bells.Inotify([tmp_path / "log"], [process.pid])
        try:
            append(tmp_path / "log")
            process.kill()
            process.wait()
            for seconds in (LONG, 0.0, 0.0):
                bell.wait(seconds)
            began = time.monotonic()
            bell.wait(0.5)
            assert time.monotonic() - began > 0.4
        finally:
            bell.close()


@on_linux
@pytest.mark.usefixtures("only_bell")
def test_other_files_in_the_folder_are_no_news(tmp_path: Path) -> None:
    with News([tmp_path / "events.jsonl"]) as news, later(lambda: append(tmp_path / "other")):
        assert not news.wait(0.5)


@pytest.mark.usefixtures("any_bell")
def test_the_end_of_a_process_is_news_once() -> None:
    with ending(subprocess.Popen(PAUSE)) as process, News([], [known(process.pid)]) as news:
        assert not news.wait(NO_TIME)
        with later(process.kill):
            assert news.wait(LONG)
        assert not news.wait(NO_TIME)


@on_linux
@pytest.mark.usefixtures("only_bell")
def test_the_bell_alone_tells_the_end_of_each_process() -> None:
    with (
        ending(subprocess.Popen(PAUSE)) as one,
        ending(subprocess.Popen(PAUSE)) as other,
        News([], [known(one.pid), known(other.pid)]) as news,
    ):
        for process in (one, other):
            with later(process.kill):
                assert news.wait(LONG)
        assert not news.wait(NO_TIME)


@pytest.mark.usefixtures("any_bell")
def test_a_process_that_has_ended_before_is_news_at_once() -> None:
    with ending(subprocess.Popen(PAUSE)) as process:
        ended = known(process.pid)
    reused = (os.getpid(), "1@" + ended[1].partition("@")[2])
    for one in (ended, reused):
        with News([], [one]) as news:
            assert news.wait(NO_TIME)
            assert not news.wait(NO_TIME)


def test_a_folder_that_does_not_exist_yet_is_looked_for(tmp_path: Path) -> None:
    log = tmp_path / "later" / "events.jsonl"

    def make() -> None:
        log.parent.mkdir()
        append(log)

    with News([log]) as news, later(make):
        assert news.wait(LONG)


@pytest.mark.parametrize(
    "error", [errno.EMFILE, errno.ENOSPC, errno.ENOSYS], ids=errno.errorcode.get
)
def test_where_the_system_has_no_bell_left_the_clock_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(error, "no more")

    monkeypatch.setattr(bells.Inotify, "_watch_folders", refuse)
    assert isinstance(bells.make_bell([tmp_path / "x"], []), bells.PollingBell)


@on_linux
def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))
    with ending(subprocess.Popen(PAUSE)) as process:
        for folder in (tmp_path, tmp_path / "missing"):
            News([folder / "log"], [known(process.pid)]).close()
    assert set(os.listdir("/proc/self/fd")) == before


def test_descriptors_that_run_out_leave_the_clock(tmp_path: Path) -> None:
    code = """
import os, resource, sys
from pathlib import Path
from guard.system.file_events import News, PollingBell
log = Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
with News([log]) as news:
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
    print(isinstance(news._bell, PollingBell), news.wait(0))
"""
    argv = [sys.executable, "-c", code, str(tmp_path / "log")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=90, check=False)
    assert (done.stdout, done.stderr) == ("True False\n", "")


@needs_tmux
@on_linux
@pytest.mark.usefixtures("only_bell")
def test_the_end_of_a_tmux_server_is_heard_whose_panes_live_on(tmp_path: Path) -> None:
    ignores = ("sh", "-c", "trap '' HUP; sleep 600 & echo $! > $0; wait; wait", str(tmp_path / "p"))
    with tmux_server() as server:
        server.new("agent-1", *ignores)
        until((tmp_path / "p").exists, LONG)
        where, _ = locate("agent-1", server.socket, None)
        session = server.get("agent-1")
        left = [*session.panes.values(), int((tmp_path / "p").read_text())]
        try:
            with News([], watched_processes([where], here=read_host())) as news:
                assert not news.wait(NO_TIME)
                with later(lambda: os.kill(session.server_pid, signal.SIGKILL)):
                    assert news.wait(LONG)
            assert start_time(left[0]) is not None
        finally:
            for pid in left:
                os.kill(pid, signal.SIGKILL)
