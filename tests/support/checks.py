"""A checkout with a check to run in it."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from guard.core.prove.outcome import CellRun
from guard.prove.execute import Order, execute
from tests.support import write

PYTEST = f"{sys.executable} -m pytest -p no:randomly"


@dataclass
class Checkout:
    """A folder in which commands are run as `guard prove` runs them."""

    folder: Path
    scratch: Path
    project: Path

    def run(
        self,
        command: str,
        files: Mapping[str, str] | None = None,
        *,
        select: frozenset[str] | None = None,
        junit: str | None = None,
        kind: str = "tests",
        seconds: float = 300,
        environ: Mapping[str, str] | None = None,
        progress: Callable[[str], None] = lambda _: None,
    ) -> CellRun:
        for name, text in (files or {}).items():
            write(self.folder / name, text)
        order = Order(
            command,
            self.folder,
            self.project,
            {**_own_environment(command), **(environ or {})},
            self.scratch,
            seconds,
            "0",
            select,
            junit,
            kind=kind,
        )
        return execute(order, progress)


def make_checkout(folder: Path) -> Checkout:
    found = Checkout(folder / "checkout", folder / "scratch", folder / "work")
    for path in (found.folder, found.scratch, found.project):
        path.mkdir(parents=True)
    return found


def _own_environment(command: str) -> dict[str, str]:
    # The test run's own options for pytest and coverage are not the command's. Only one with workers needs a plugin, xdist.
    kept = (name for name in os.environ if not name.startswith(("PYTEST_", "COV_")))
    environ = {name: os.environ[name] for name in kept if name != "COVERAGE_PROCESS_START"}
    return environ if " -n " in command else {**environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
