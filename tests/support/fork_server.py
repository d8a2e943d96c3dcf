"""`python -m tests.support.fork_server FD [--measured]`: forks a guard for each call that comes over a socket.

It tells how each ended. It has imported all of guard and has one thread, so it may fork. What it says and is told is in
`tests.support.fork_client`.
"""

import gc
import itertools
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from coverage import Coverage
from pydantic import BaseModel

from tests.support.fork_client import NUMBER, number, received

_MEASURED_EVERY = 10
"""A call that is measured takes twice its time, so one in ten is: what they cover is a lower bound of what all do."""
_ROOT = Path(__file__).resolve().parents[2]


def _serve(control: socket.socket) -> tuple[int, str | None]:
    """Fork a child for each call, and tell how it ended; in the child, return the number and the script of its call."""
    calls = itertools.count()
    signal.signal(signal.SIGCHLD, lambda *_: None)
    woken, waking = socket.socketpair()
    waking.setblocking(False)
    signal.set_wakeup_fd(waking.fileno())
    running: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        selector.register(woken, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is woken:
                    woken.recv(4096)
                    _tell_ends(running)
                    continue
                asked, given, _, _ = socket.recv_fds(control, 1, 5)
                if not asked:
                    os._exit(0)
                call = next(calls)
                if pid := os.fork():
                    for one in given[1:]:
                        os.close(one)
                    running[pid] = socket.socket(fileno=given[0])
                    continue
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for other in (control, woken, waking, *running.values()):
                    other.close()
                return call, _become(given)


def _tell_ends(running: dict[int, socket.socket]) -> None:
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            pid, status = ended
            with running.pop(pid) as channel, suppress(BrokenPipeError):
                channel.sendall(NUMBER.pack(status))


def _become(given: list[int]) -> str | None:
    """Take on the streams, the folder, the words and the environment of a call; the script to run instead of guard."""
    with socket.socket(fileno=given[0]) as channel:
        channel.sendall(NUMBER.pack(os.getpid()))
        request = json.loads(received(channel, number(channel)))
    for stream, one in enumerate(given[1:4]):
        os.dup2(one, stream)
    os.fchdir(given[4])
    for one in given[1:]:
        os.close(one)
    os.environ.clear()
    os.environ.update(request["environ"])
    time.tzset()
    sys.argv[1:] = request["words"]
    sys.path[0] = os.getcwd()
    script: str | None = request["script"]
    return script


def _main() -> None:
    is_measured = "--measured" in sys.argv
    imports, of_call = _coverage(), _coverage()
    of_call.set_option("run:patch", ["_exit"])
    if is_measured:
        imports.start()
    import guard

    for module in pkgutil.walk_packages(guard.__path__, "guard."):
        # The reporters run in the Python of a project's tests, beside a file of settings.
        if not module.name.endswith("__main__") and ".reporters." not in module.name:
            import_module(module.name)
    _build_models()
    if is_measured:
        imports.stop()
        imports.save()
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as control:
        call, script = _serve(control)
    if is_measured and call % _MEASURED_EVERY == 0:
        of_call.start()
    _run(script)


def _build_models() -> None:
    """Build now what guard builds when it first needs it: else every child would do so, in up to half of its time."""
    for model in _below(BaseModel):
        if not model.__pydantic_complete__:
            model.model_rebuild()


def _below(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for one in model.__subclasses__():
        if one.__module__.startswith("guard."):
            yield one
        yield from _below(one)


def _coverage() -> Coverage:
    # Its file is found from the folder of any call; what it warns of would stand in what guard prints.
    return Coverage(data_file=_ROOT / ".coverage", data_suffix=True, messages=False)


def _run(script: str | None) -> None:
    """Run guard as `python -m guard` does, and end at once: to take all that was imported to pieces is half of the time."""
    code: str | int | None = None
    try:
        if script is None:
            runpy.run_module("guard", run_name="__main__", alter_sys=True)
        else:
            exec(script, {"__name__": "__main__"})
    except SystemExit as end:
        code = end.code
    if not isinstance(code, int | None) or threading.active_count() > 1:
        sys.exit(code)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


if __name__ == "__main__":
    _main()
