"""What to run: one command in one checkout."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Order:
    """One command to run in one checkout."""

    command: str
    folder: Path
    """The root of the checkout."""
    project: Path
    """The user's own work tree, from which no code may be loaded."""
    environ: Mapping[str, str]
    scratch: Path
    """A private folder outside the checkout, for reports and temporary files."""
    timeout_seconds: float
    slot: str
    select: frozenset[str] | None = None
    """The test files to run, from the root of the checkout; None for all. A runner that cannot select runs all of them."""
    junit: str | None = None
    """A glob in the checkout: where the command itself writes JUnit files."""
    up: str = ""
    """The command that starts the services for it; they end with the run."""
    kind: str = "tests"
    """`tests`, or `exit` for a command whose exit code is all that counts."""
    lends: tuple[int, ...] = ()
    """Descriptors that stay open until the last process of the command has ended, also when guard is killed."""
