"""Run other programs as argv lists in a process group of their own, and end the group at their limits.

A program is looked up, and its environment cleaned, as `guard.system.programs` says, unless the user has chosen it. One
that ends while something of its own still holds its output is not waited for: what it printed by then counts.
"""

import errno
import fcntl
import os
import selectors
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from time import monotonic

from guard.core.base.first_use import dataclass
from guard.core.base.text import escape
from guard.system.programs import own_environment, search_program
from guard.system.signals import defer_signals

_LOOK_SECONDS = 0.05
_GRACE_SECONDS = 0.5
_DEATH_SECONDS = 5.0
_PIECE = 65536
_MOST_PIECES = 256
_PIPE_BYTES = 1024**2
"""Two programs that hand on much work take turns less often."""
_TOOL_SECONDS = 5.0


@dataclass(frozen=True)
class Finished:
    """How a program ended; `code` is None if it had to be killed, at its time limit or for all that it printed."""

    code: int | None
    stdout: bytes
    stderr: bytes
    overflowed: bool = False
    """Whether it printed more than was allowed."""

    @property
    def message(self) -> str:
        """What it printed on stderr, in one line and safe for a terminal."""
        return escape("; ".join(self.stderr.decode(errors="replace").strip().splitlines()))


def start(
    argv: Sequence[str],
    environ: Mapping[str, str],
    cwd: str | os.PathLike[str] | None = None,
    *,
    stdin: int = subprocess.PIPE,
    stdout: int = subprocess.PIPE,
    stderr: int | None = subprocess.PIPE,
    buffer: int = 0,
    lends: Sequence[int] = (),
    chosen: bool = False,
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own; the caller ends it with `end_group`.

    One that the user has `chosen` gets the user's environment as it is, and its name is looked up as a shell does.
    """
    # The caller calls it under `defer_signals`: a signal that came before the caller has the process would leave it running.
    variables = dict(environ) if chosen else own_environment(environ)
    return subprocess.Popen(  # noqa: S603
        list(argv),
        executable=None if chosen else _find_program(argv[0], environ),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        bufsize=buffer,
        env=variables,
        cwd=cwd,
        start_new_session=True,
        pass_fds=lends,
    )


class ForkedProcess:
    """A copy of this process that does one thing, in a session of its own; nothing has to be loaded again for it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return its exit code, negative for a signal; None while it lives."""
        if self.returncode is None:
            with suppress(ChildProcessError):
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


def may_fork() -> bool:
    """Tell whether a copy of this process can go on: on Linux, and with no other thread that it would lack."""
    return sys.platform == "linux" and threading.active_count() == 1


def fork(
    action: Callable[[], object],
    environ: Mapping[str, str],
    cwd: str | os.PathLike[str],
    *,
    stdout: int,
    stderr: int,
    lends: Sequence[int] = (),
) -> ForkedProcess:
    """Do something in a copy of this process, which ends with it: its exit code is that of the action's SystemExit.

    The copy has only these descriptors, and handles no signal as this process does.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    pid = os.fork()
    if pid:
        return ForkedProcess(pid)
    code: object = 3
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGWINCH):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        nothing = os.open(os.devnull, os.O_RDWR)
        for source, stream_number in ((nothing, 0), (stdout, 1), (stderr, 2)):
            os.dup2(source, stream_number)
        _reopen_streams()
        _close_all_but((0, 1, 2, *lends))
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(environ)
        action()
        code = 0
    except SystemExit as error:
        code = error.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def _reopen_streams() -> None:
    # The program that calls guard may have put something else in their place.
    for name, mode, number in (("stdin", "r", 0), ("stdout", "w", 1), ("stderr", "w", 2)):
        first = getattr(sys, f"__{name}__")
        encoding, errors = getattr(first, "encoding", None), getattr(first, "errors", None)
        own = open(number, mode, encoding=encoding, errors=errors, closefd=False)  # noqa: SIM115
        setattr(sys, name, own)


def _close_all_but(kept: Sequence[int]) -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            with suppress(OSError):
                os.close(int(name))


def _find_program(name: str, environ: Mapping[str, str]) -> str:
    if os.sep in name:
        return name
    program = search_program(name, environ).program
    if program is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return program


def run(
    argv: Sequence[str],
    *,
    environ: Mapping[str, str],
    time_limit: float,
    cwd: str | os.PathLike[str] | None = None,
    stdin: bytes | None = None,
    most_stdout: int | None = None,
    most_stderr: int | None = None,
    leaves_nothing: bool = False,
    lends: Sequence[int] = (),
    chosen: bool = False,
) -> Finished:
    """Run a program to its end; FileNotFoundError if there is none of that name.

    It is killed if it prints more than `most_stdout` bytes, and of its stderr the last `most_stderr` bytes are kept. With
    `leaves_nothing` whatever it left running in its group ends with it; else that is its own affair. Descriptors that it
    `lends` stay open as long as the program runs, so that a lock on one outlives a guard that is killed. What `chosen`
    means, `start` says.
    """
    deadline = monotonic() + time_limit
    process: subprocess.Popen[bytes] | None = None
    try:
        source = subprocess.DEVNULL if stdin is None else subprocess.PIPE
        with defer_signals():
            process = start(argv, environ, cwd, stdin=source, lends=lends, chosen=chosen)
        with _Pipes(process, stdin or b"", most_stdout, most_stderr) as pipes:
            ended = _listen(process, pipes, deadline)
            if not ended or pipes.held or leaves_nothing:
                end_group(process)
            code = process.returncode if ended else None
            return Finished(code, bytes(pipes.stdout), bytes(pipes.stderr), pipes.overflowed)
    except BaseException:
        if process is not None:
            end_group(process)
        raise


def run_tool(*argv: str) -> Finished:
    """Run a tool of the system, such as `ps`, with its times in UTC; its code is None if it cannot be run."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environ = {**kept, "LC_ALL": "C", "TZ": "UTC"}
    try:
        return run(argv, environ=environ, time_limit=_TOOL_SECONDS, cwd=os.sep)
    except OSError:
        return Finished(None, b"", b"")


def run_on_stderr(
    argv: Sequence[str], *, environ: Mapping[str, str], time_limit: float | None
) -> int | None:
    """Run a program that the user chose to its end, with its output on our stderr.

    Return its exit code, or None after its time limit.
    """
    process: subprocess.Popen[bytes] | None = None
    try:
        with defer_signals():
            process = start(
                argv, environ, stdin=subprocess.DEVNULL, stdout=2, stderr=None, chosen=True
            )
        return process.wait(time_limit)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process is not None:
            end_group(process)


def _listen(process: subprocess.Popen[bytes], pipes: "_Pipes", deadline: float) -> bool:
    """Whether the program ended by itself, in time and with no more output than it may have."""
    while pipes.open and not pipes.overflowed:
        left = deadline - monotonic()
        if process.poll() is not None:
            # Whatever it wrote is in the pipe already; only a child that it left behind can hold the pipe open.
            deadline = min(deadline, monotonic() + _GRACE_SECONDS)
        if left <= 0:
            if process.returncode is not None:
                pipes.empty()
                pipes.held = pipes.open
            return process.returncode is not None
        pipes.turn(min(left, _LOOK_SECONDS))
    if pipes.overflowed:
        return False
    try:
        process.wait(max(0.0, deadline - monotonic()))
    except subprocess.TimeoutExpired:
        return False
    return True


class _Pipes:
    """The three pipes of a program, served as they become ready; nothing blocks, and no more is kept than is wanted."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        stdin: bytes,
        most_stdout: int | None,
        most_stderr: int | None,
    ) -> None:
        self.stdout, self.stderr = bytearray(), bytearray()
        self.overflowed = self.held = False
        self._pipes = [pipe for pipe in (process.stdin, process.stdout, process.stderr) if pipe]
        self._unsent = memoryview(stdin)
        self._most_stdout, self._most_stderr = most_stdout, most_stderr
        self._selector = selectors.DefaultSelector()
        for pipe, events, serve in (
            (process.stdin, selectors.EVENT_WRITE, self._send),
            (process.stdout, selectors.EVENT_READ, self._hear_stdout),
            (process.stderr, selectors.EVENT_READ, self._hear_stderr),
        ):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self._selector.register(pipe, events, serve)

    @property
    def open(self) -> bool:
        return bool(self._selector.get_map())

    def turn(self, seconds: float) -> bool:
        """Serve the pipes that are ready within this time; return whether any was."""
        ready = self._selector.select(seconds)
        for key, _ in ready:
            with suppress(BlockingIOError):
                if not key.data(key.fd):
                    self._selector.unregister(key.fileobj)
                    key.fileobj.close()  # type: ignore[union-attr]
        return bool(ready)

    def empty(self) -> None:
        # Of a program that has ended: an answer that was cut would look like a whole one.
        for _ in range(_MOST_PIECES):
            if not self.open or not self.turn(0):
                return

    def _send(self, descriptor: int) -> bool:
        try:
            sent = os.write(descriptor, self._unsent[:_PIECE]) if self._unsent else 0
        except BrokenPipeError:
            return False
        self._unsent = self._unsent[sent:]
        return bool(self._unsent)

    def _hear_stdout(self, descriptor: int) -> bool:
        piece = os.read(descriptor, _PIECE)
        self.stdout += piece
        if self._most_stdout is not None and len(self.stdout) > self._most_stdout:
            self.overflowed = True
            del self.stdout[self._most_stdout :]
        return bool(piece)

    def _hear_stderr(self, descriptor: int) -> bool:
        piece = os.read(descriptor, _PIECE)
        self.stderr += piece
        if self._most_stderr is not None and len(self.stderr) > self._most_stderr:
            del self.stderr[: -self._most_stderr]
        return bool(piece)

    def __enter__(self) -> "_Pipes":
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()
        for pipe in self._pipes:
            pipe.close()


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a program with everything in its group, and close its pipes."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        # A process that hangs in the kernel does not die; it is left to the kernel.
        process.wait(_DEATH_SECONDS)
    # A grandchild in a session of its own may hold the other end; it is not waited for.
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


class FedProcess:
    """A program that is given its input piece by piece; its stdout is not wanted."""

    def __init__(self, process: subprocess.Popen[bytes], time_limit: float) -> None:
        self.pid = process.pid
        self._process = process
        self._expired = False
        self._timer = threading.Timer(time_limit, self._expire)
        self._timer.daemon = True
        self._timer.start()

    def write(self, data: bytes) -> None:
        """Hand over some input; BrokenPipeError once the program has ended."""
        assert self._process.stdin is not None
        self._process.stdin.write(data)

    def finish(self) -> Finished:
        """Close its input and wait for its end."""
        _, stderr = self._process.communicate()
        return Finished(None if self._expired else self._process.returncode, b"", stderr)

    def end(self) -> None:
        self._timer.cancel()
        if self._process.poll() is None:
            end_group(self._process)
        for pipe in (self._process.stdin, self._process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()

    def _expire(self) -> None:
        if self._process.poll() is None:
            self._expired = True
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)


@contextmanager
def feed(
    argv: Sequence[str], environ: Mapping[str, str], time_limit: float, lends: Sequence[int] = ()
) -> Iterator[FedProcess]:
    """Run a program in the root folder while it is given its input; it does not outlive the block."""
    process: subprocess.Popen[bytes] | None = None
    program: FedProcess | None = None
    output = subprocess.DEVNULL
    try:
        with defer_signals():
            process = start(argv, environ, os.sep, stdout=output, buffer=_PIPE_BYTES, lends=lends)
        assert process.stdin is not None
        with suppress(OSError, AttributeError):
            fcntl.fcntl(process.stdin, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        program = FedProcess(process, time_limit)
        yield program
    finally:
        if program is not None:
            program.end()
        elif process is not None:
            end_group(process)
