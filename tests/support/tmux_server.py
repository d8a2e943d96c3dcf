"""A real tmux server on a socket of its own, that ends with the test."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from guard.system import tmux
from guard.system.process_identity import process_state, start_time
from tests.support.sessions import until

TMUX = shutil.which("tmux") or "tmux"
"""Found once: a test may take PATH away, and its server has to end all the same."""
needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
PAUSE = ("sleep", "600")


class TmuxServer:
    """Where it listens, and what a person would type to it."""

    def __init__(self, folder: Path) -> None:
        self.socket = str(folder / "s")
        self._started: set[tuple[int, str | None]] = set()

    def tell(self, *words: str) -> str:
        """What tmux prints; its failure fails the test."""
        argv = [TMUX, "-u", "-f", "/dev/null", "-S", self.socket, *words]
        done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=90)
        return done.stdout.strip()

    def new(self, name: str, *argv: str) -> None:
        """A session that runs this program; one that sleeps, if none is given."""
        self.tell("new-session", "-d", "-s", name, "--", *(argv or PAUSE))
        pid = int(self.tell("display-message", "-p", "#{pid}"))
        self._started.add((pid, start_time(pid)))

    def close(self, name: str) -> None:
        """End one session, and wait until nobody doubts it."""
        self.tell("kill-session", "-t", f"={name}")
        until(lambda: self.find(name) is None)

    def end(self) -> None:
        """End the server, and wait until its socket is dead; nothing if there is none."""
        argv = [TMUX, "-S", self.socket, "kill-server"]
        subprocess.run(argv, check=False, capture_output=True, timeout=90)
        until(self._is_silent)

    def kill(self) -> None:
        """End whatever it started, also what lost its socket."""
        argv = [TMUX, "-S", self.socket, "kill-server"]
        subprocess.run(argv, check=False, capture_output=True, timeout=90)
        for pid, start in self._started:
            if process_state(pid, start) == "runs":
                os.kill(pid, signal.SIGTERM)

    def find(self, name: str) -> tmux.Session | None:
        """What guard finds; a server that is just ending is asked again."""
        while True:
            try:
                return tmux.find_session(name, self.socket)
            except tmux.TmuxUnknown as unknown:
                assert "server" in str(unknown)  # noqa: PT017

    def get(self, name: str) -> tmux.Session:
        """A session that must be there."""
        found = self.find(name)
        assert found is not None
        return found

    def _is_silent(self) -> bool:
        try:
            return not tmux.read_server(self.socket).answered
        except tmux.TmuxUnknown:
            return False


@contextmanager
def tmux_server() -> Iterator[TmuxServer]:
    """A server that is started by its first session; its path is short, because that of a socket must be."""
    folder = Path(tempfile.mkdtemp(prefix="gt", dir="/tmp"))
    os.chmod(folder, 0o755)
    made = TmuxServer(folder)
    try:
        yield made
    finally:
        made.kill()
        shutil.rmtree(folder)
