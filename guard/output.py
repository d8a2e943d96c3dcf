"""What people and scripts see: results on stdout, trouble and progress on stderr, nothing that could drive a terminal."""

import os
import shutil
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from guard.core.text import harmless_json, visible
from guard.errors import ReaderGone, StoreUnavailable

F = TypeVar("F", bound=Callable[..., Any])
_COLOURS = {"ok": "green", "warning": "yellow", "problem": "red", "bold": None}

format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Text for people, or one JSON document for scripts.",
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
            _discard_rest()
            raise ReaderGone from None
        except OSError as error:
            _discard_rest()
            raise StoreUnavailable(
                f"the answer could not be printed: {error.strerror}; what the command did stands",
                "`guard log` shows what was recorded",
            ) from None

    def document(self, document: Any, form: str, text: Callable[[Any], str]) -> None:
        """A report in the format that was asked for."""
        self.result(
            harmless_json(document.model_dump_json(indent=2)) if form == "json" else text(document)
        )

    def warn(self, message: str) -> None:
        """Trouble that does not stop the command."""
        if self.verbosity >= 0:
            click.echo(f"guard: warning: {visible(message)}", err=True)

    def note(self, message: str) -> None:
        """What only those who asked for more want to know."""
        if self.verbosity > 0:
            click.echo(f"guard: {visible(message)}", err=True)

    def live(self) -> "Live":
        """A line on stderr that says what is going on."""
        return Live(quiet=self.verbosity < 0)

    def failure(self, message: str, hint: str | None) -> None:
        """Why the command stops here, and what to do next."""
        click.echo(f"guard: {visible(message)}", err=True)
        if hint:
            click.echo(f"hint: {visible(hint)}", err=True)


class Live:
    """One line that is written over on a terminal; elsewhere a plain line whenever something else is going on."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr is not None and sys.stderr.isatty()
        self._last = ""

    def say(self, message: str) -> None:
        """What is going on; what follows a semicolon is how far it is."""
        if self._quiet:
            return
        text = visible(message)
        if self._terminal:
            width = max(20, shutil.get_terminal_size().columns - 1)
            click.echo(f"\r\x1b[K{f'guard: {text}'[:width]}", err=True, nl=False)
        elif text.partition(";")[0] != self._last.partition(";")[0]:
            click.echo(f"guard: {text}", err=True)
        self._last = text

    def clear(self) -> None:
        """Leave the terminal as it was."""
        if self._terminal and self._last:
            click.echo("\r\x1b[K", err=True, nl=False)
        self._last = ""


def _discard_rest() -> None:
    """Or Python would try to print it again when it ends, and fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def coloured(text: str, meaning: str) -> str:
    """The text in a colour where colours are wanted: on a terminal, without NO_COLOR."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    wanted = sys.stdout is not None and sys.stdout.isatty() and not plain
    return click.style(text, fg=_COLOURS[meaning], bold=meaning == "bold") if wanted else text
