"""Write results to stdout, and problems and progress to stderr, without control characters."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, TextIO

import click

from guard.core.base.text import escape, harmless_json
from guard.errors import ReaderGone, StoreUnavailable

if TYPE_CHECKING:
    from logging import Logger

_PAUSE_SECONDS = 0.1
_COLOURS = {"ok": "green", "warning": "yellow", "problem": "red", "bold": None}

format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="The output format: text for people, or one JSON document for scripts.",
)


def prints_report(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --format to a command that prints a report, and pass guard's invocation to it."""
    return format_option(click.pass_obj(function))


class Output:
    """Writes results, warnings and notes; verbosity -1 is quiet, 0 normal, 1 and more verbose."""

    def __init__(self, verbosity: int = 0) -> None:
        self.verbosity = verbosity
        self._printed: set[str] = set()

    def result(self, text: str) -> None:
        try:
            click.echo(text)
        except BrokenPipeError:
            raise ReaderGone from None
        except OSError as error:
            raise StoreUnavailable(
                f"cannot print the result: {error.strerror}; what the command did stays done",
                "`guard log` shows what was recorded",
            ) from None

    def raw(self, data: bytes) -> None:
        """Write bytes to stdout as they are."""
        try:
            sys.stdout.buffer.write(data)
        except BrokenPipeError:
            raise ReaderGone from None
        except OSError as error:
            raise StoreUnavailable(f"cannot print the result: {error.strerror}") from None

    def document(self, document: Any, form: str, text: Callable[[Any], str]) -> None:
        """Print a report as text or JSON; a closed pipe does not change the exit code."""
        with suppress(ReaderGone):
            self.result(
                harmless_json(document.model_dump_json(indent=2))
                if form == "json"
                else text(document)
            )

    def verdict(self, document: Any, form: str, text: Callable[[Any], str]) -> None:
        """Print a report whose verdict is also the exit code; a failure to print does not change that code."""
        try:
            self.document(document, form, text)
        except StoreUnavailable as error:
            self.failure(error.message, error.hint)

    def warn(self, message: str) -> None:
        """Print a warning, unless this output has printed the same one before."""
        if self.verbosity >= 0 and message not in self._printed:
            self._printed.add(message)
            say(f"guard: warning: {escape(message)}")

    def note(self, message: str) -> None:
        if self.verbosity > 0:
            say(f"guard: {escape(message)}")

    def live(self) -> "Live":
        return Live(quiet=self.verbosity < 0)

    @property
    def is_drawn_on(self) -> bool:
        dumb = os.environ.get("TERM", "dumb") == "dumb"
        return sys.stdout is not None and sys.stdout.isatty() and not dumb

    def failure(self, message: str, hint: str | None) -> None:
        say(f"guard: {escape(message)}")
        if hint:
            say(f"hint: {escape(hint)}")


class LoggedOutput(Output):
    """Writes warnings, notes and progress to the logger `guard`, for callers in Python."""

    def warn(self, message: str) -> None:
        if message not in self._printed:
            self._printed.add(message)
            _logger().warning("%s", escape(message))

    def note(self, message: str) -> None:
        _logger().info("%s", escape(message))

    def live(self) -> "Live":
        return LoggedLive(quiet=False)


def _logger() -> "Logger":
    from logging import getLogger

    return getLogger("guard")


class Live:
    """A progress line: redrawn on a terminal, otherwise printed again when the activity changes."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr is not None and sys.stderr.isatty()
        self._last = ""
        self._said_at = 0.0

    def say(self, message: str) -> None:
        """Show the current activity; the part after a semicolon is its progress."""
        if self._quiet:
            return
        text = escape(message)
        if self._terminal:
            import shutil

            width = max(20, shutil.get_terminal_size().columns - 1)
            say(f"\r\x1b[K{f'guard: {text}'[:width]}", end="")
        elif text.partition(";")[0] != self._last.partition(";")[0]:
            say(f"guard: {text}")
        self._last = text

    def show_progress(self, message: str) -> None:
        """Show progress that changes quickly: only on a terminal, and at most ten times a second for one activity."""
        if not self._terminal:
            return
        now = monotonic()
        other = message.partition(";")[0] != self._last.partition(";")[0]
        if other or now >= self._said_at + _PAUSE_SECONDS:
            self._said_at = now
            self.say(message)

    def clear(self) -> None:
        if self._terminal and self._last:
            say("\r\x1b[K", end="")
        self._last = ""


class LoggedLive(Live):
    """Logs what guard is doing when the activity changes."""

    def say(self, message: str) -> None:
        text = escape(message)
        if text.partition(";")[0] != self._last.partition(";")[0]:
            _logger().info("%s", text)
        self._last = text

    def show_progress(self, message: str) -> None:
        """Leave out progress that changes quickly."""

    def clear(self) -> None:
        self._last = ""


def say(text: str, end: str = "\n") -> None:
    """Write to stderr, and ignore a closed stderr."""
    with suppress(OSError, ValueError):
        click.echo(f"{text}{end}", err=True, nl=False)


def discard_unprintable() -> None:
    """Drop output that could not be printed: Python would retry at exit and change the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not _try_flush(stream):
            with suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), stream.fileno())


def _try_flush(stream: TextIO) -> bool:
    try:
        stream.flush()
    except (OSError, ValueError):
        return False
    return True


def colour(text: str, meaning: str) -> str:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    wanted = sys.stdout is not None and sys.stdout.isatty() and not plain
    return click.style(text, fg=_COLOURS[meaning], bold=meaning == "bold") if wanted else text


def write_document(path: Path, document: Any) -> None:
    """Write a report as JSON to a file that the user named, where an agent may have put a link meanwhile."""
    # Few commands write one, and all load this module.
    from guard.system.foreign_files import write_anew

    write_anew(path, document.model_dump_json(indent=2).encode() + b"\n")
