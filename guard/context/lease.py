"""Tell whether a recorded process still runs, wherever it does, and show other machines that this one does.

On this machine the process table answers. Of a process on another machine, or in another container, only a lease tells
that it lives.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256

from guard.core.iteration.facts import Process
from guard.errors import GuardError
from guard.store import Store
from guard.system.host import compare_hosts, read_host
from guard.system.process_identity import is_alive, start_time


def find_process(pid: int) -> Process | None:
    """Return the process that has this pid now; None if its start time cannot be read."""
    start = start_time(pid)
    return None if start is None else Process(pid=pid, start=start, host=read_host())


def is_here(process: Process) -> bool:
    """Tell whether the process table of this machine can answer for the process."""
    # Records of older guards name no host: they knew one machine only.
    return process.host is None or compare_hosts(process.host, read_host()) != "elsewhere"


def is_running(process: Process, store: Store) -> bool:
    if is_here(process):
        return is_alive(process.pid, process.start)
    return store.has_lease(lease_name(process))


def lease_name(process: Process) -> str:
    host = process.host
    place = (host.machine or host.name, host.pid_namespace) if host is not None else ()
    words = "\n".join(map(str, (*place, process.pid, process.start)))
    return sha256(words.encode()).hexdigest()[:32]


class Lease:
    """The lease of this process, renewed by the caller of `renew`, who calls it often enough."""

    def __init__(self, store: Store, seconds: float) -> None:
        own = find_process(os.getpid())
        self._name = lease_name(own) if own is not None else None
        self._store = store
        self._seconds = seconds
        self._due = 0.0

    @property
    def pause(self) -> float:
        return self._seconds / 3

    def renew(self) -> None:
        """Renew the lease if a third of it is over; one that cannot be renewed is tried again at the next call."""
        if self._name is None or time.monotonic() < self._due:
            return
        try:
            self._store.hold_lease(self._name, self._seconds)
        except (GuardError, OSError):
            return
        self._due = time.monotonic() + self.pause

    def end(self) -> None:
        if self._name is not None:
            try:
                self._store.end_lease(self._name)
            except (GuardError, OSError):
                return


@contextmanager
def keep_lease(store: Store, seconds: float) -> Iterator[None]:
    """Hold the lease of this process while the block runs, in a thread of its own."""
    lease, over = Lease(store, seconds), threading.Event()
    lease.renew()

    def renew_often() -> None:
        while not over.wait(lease.pause):
            lease.renew()

    keeper = threading.Thread(target=renew_often, name="lease", daemon=True)
    keeper.start()
    try:
        yield
    finally:
        over.set()
        keeper.join()
        lease.end()
