"""What people and scripts see: results on stdout, trouble and progress on stderr, nothing that could drive a terminal."""

import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any, TextIO, TypeVar

import click

from guard.core.base.text import harmless_json, visible
from guard.errors import ReaderGone, StoreUnavailable

F = TypeVar("F", bound=Callable[..., Any])
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


class Output:
    """Writes at the verbosity that was asked for: -1 quiet, 0 plain, 1 and more verbose."""

    def __init__(self, verbosity: int = 0) -> None:
        self.verbosity = verbosity

    def result(self, text: str) -> None:
        """What was asked for."""
        try:
            click.echo(text)
        except BrokenPipeError:
            raise ReaderGone from None
        except OSError as error:
            raise StoreUnavailable(
                f"guard could not print the result: {error.strerror}; what the command did stays done",
                "`guard log` shows what was recorded",
            ) from None

    def document(self, document: Any, form: str, text: Callable[[Any], str]) -> None:
        """A report in the format that was asked for; a reader that has gone does not change the exit code."""
        with suppress(ReaderGone):
            self.result(
                harmless_json(document.model_dump_json(indent=2))
                if form == "json"
                else text(document)
            )

    def verdict(self, document: Any, form: str, text: Callable[[Any], str]) -> None:
        """A report that the exit code tells too: it stands even if it cannot be printed."""
        try:
            self.document(document, form, text)
        except StoreUnavailable as error:
            self.failure(error.message, error.hint)

    def warn(self, message: str) -> None:
        """Trouble that does not stop the command."""
        if self.verbosity >= 0:
            say(f"guard: warning: {visible(message)}")

    def note(self, message: str) -> None:
        """What only those who asked for more want to know."""
        if self.verbosity > 0:
            say(f"guard: {visible(message)}")

    def live(self) -> "Live":
        """A line on stderr that says what is going on."""
        return Live(quiet=self.verbosity < 0)

    @property
    def is_drawn_on(self) -> bool:
        """Whether results go to a terminal that can be drawn on."""
        dumb = os.environ.get("TERM", "dumb") == "dumb"
        return sys.stdout is not None and sys.stdout.isatty() and not dumb

    def failure(self, message: str, hint: str | None) -> None:
        """Why the command stops here, and what to do next."""
        say(f"guard: {visible(message)}")
        if hint:
            say(f"hint: {visible(hint)}")


class Live:
    """One line that is written over on a terminal; elsewhere a plain line whenever something else is going on."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr is not None and sys.stderr.isatty()
        self._last = ""
        self._said_at = 0.0

    def say(self, message: str) -> None:
        """What is going on; what follows a semicolon is how far it is."""
        if self._quiet:
            return
        text = visible(message)
        if self._terminal:
            width = max(20, shutil.get_terminal_size().columns - 1)
            say(f"\r\x1b[K{f'guard: {text}'[:width]}", end="")
        elif text.partition(";")[0] != self._last.partition(";")[0]:
            say(f"guard: {text}")
        self._last = text

    def far(self, message: str) -> None:
        """The same for what changes all the time: only on a terminal, and only as often as it can be read."""
        if not self._terminal:
            return
        now = monotonic()
        other = message.partition(";")[0] != self._last.partition(";")[0]
        if other or now >= self._said_at + _PAUSE_SECONDS:
            self._said_at = now
            self.say(message)

    def clear(self) -> None:
        """Leave the terminal as it was."""
        if self._terminal and self._last:
            say("\r\x1b[K", end="")
        self._last = ""


def say(text: str, end: str = "\n") -> None:
    """Write to stderr; that nobody reads it is no reason to stop."""
    with suppress(OSError, ValueError):
        click.echo(f"{text}{end}", err=True, nl=False)


def discard_unprintable() -> None:
    """What could not be printed Python would try to print again when it ends, and change the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not _flushed(stream):
            with suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), stream.fileno())


def _flushed(stream: TextIO) -> bool:
    try:
        stream.flush()
    except (OSError, ValueError):
        return False
    return True


def colour(text: str, meaning: str) -> str:
    """The text in a colour where colours are wanted: on a terminal, without NO_COLOR."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    wanted = sys.stdout is not None and sys.stdout.isatty() and not plain
    return click.style(text, fg=_COLOURS[meaning], bold=meaning == "bold") if wanted else text
