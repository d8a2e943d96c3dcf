"""Machines on one kernel: each has a network, a name and an id of its own, and a folder at the same path as the others."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support import Result

_ENTER = """
hostname "$1"
for id in /etc/machine-id /var/lib/dbus/machine-id; do
    [ ! -e "$id" ] || mount --bind "$2/machine-id" "$id" || exit
done
mount --bind "$2" "$3" && cd "$4" && shift 4 && exec "$@"
"""
_SECONDS = 180
GUARD = (sys.executable, "-m", "guard")


def why_not() -> str | None:
    """Say why there can be no such machines here; None if there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [name for name in ("ip", "unshare", "mount") if shutil.which(name) is None]
    if missing:
        return f"{missing[0]} is not installed"
    made = _ip("netns", "add", _probe := f"guard-probe-{os.getpid()}", check=False)
    if made.returncode:
        return f"no network namespace can be made here: {made.stdout.strip()}"
    _ip("netns", "del", _probe)
    return None


def _ip(*words: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        ["ip", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=_SECONDS,
    )
    assert not check or done.returncode == 0, done.stdout
    return done


@dataclass(frozen=True)
class Machine:
    """A network namespace with one cable, which leads to the server; its folder is mounted at `at`."""

    name: str
    space: str
    cable: str
    server: str
    """The address of the server, seen from here."""
    folder: Path
    at: Path
    environ: Mapping[str, str]

    def start(self, *words: str | Path, **environ: str) -> "subprocess.Popen[str]":
        inside = ["unshare", "--uts", "sh", "-c", _ENTER, "sh", self.name]
        places = [str(self.folder), str(self.at), str(self.at / "project")]
        return subprocess.Popen(
            ["ip", "netns", "exec", self.space, *inside, *places, *map(str, words)],
            env={**os.environ, **self.environ, **environ},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def start_guard(self, *words: str | Path, **environ: str) -> "subprocess.Popen[str]":
        return self.start(*GUARD, *words, **environ)

    def run(self, *words: str | Path, **environ: str) -> Result:
        return finish(self.start_guard(*words, **environ))

    def cut_off(self) -> None:
        """Pull the cable: nothing that is sent arrives, and neither side is told."""
        _ip("link", "set", self.cable, "down")

    def connect(self) -> None:
        _ip("link", "set", self.cable, "up")


def finish(process: "subprocess.Popen[str]") -> Result:
    """Wait for the end of a process; one that takes too long is killed."""
    try:
        out, err = process.communicate(timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"it took more than {_SECONDS} s\n{out}\n{err}") from None
    return Result(process.returncode, out, err)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("", 0))
        port: int = found.getsockname()[1]
        return port


@contextmanager
def machines(base: Path, *names: str) -> Iterator[list[Machine]]:
    """Make machines; each has `base/NAME` at `base/here`, with a home of its own."""
    number = os.getpid() % 250
    at = base / "here"
    at.mkdir()
    with ExitStack() as made:
        found = []
        for index, name in enumerate(names):
            net = f"10.213.{number}.{4 * index}"
            ours, theirs = (f"{net.rpartition('.')[0]}.{4 * index + end}" for end in (1, 2))
            space, cable = f"guard-{os.getpid()}-{name}", f"gv{number}x{index}"
            made.enter_context(_network(space, cable, ours, theirs))
            folder = base / name
            for part in ("home", "project"):
                (folder / part).mkdir(parents=True)
            (folder / "machine-id").write_text(f"{name:0>32}\n", encoding="ascii")
            home = {"HOME": str(at / "home")}
            home |= {
                f"XDG_{part}_HOME": str(at / "home" / part.lower()) for part in ("STATE", "CONFIG")
            }
            found.append(Machine(name, space, cable, ours, folder, at, home))
        yield found


@contextmanager
def _network(space: str, cable: str, ours: str, theirs: str) -> Iterator[None]:
    _ip("netns", "add", space)
    try:
        _ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", space)
        _ip("addr", "add", f"{ours}/30", "dev", cable)
        _ip("link", "set", cable, "up")
        _ip("-n", space, "addr", "add", f"{theirs}/30", "dev", "eth0")
        _ip("-n", space, "link", "set", "eth0", "up")
        _ip("-n", space, "link", "set", "lo", "up")
        yield
    finally:
        for words in (("link", "del", cable), ("netns", "del", space)):
            with suppress(subprocess.TimeoutExpired):
                _ip(*words, check=False)
