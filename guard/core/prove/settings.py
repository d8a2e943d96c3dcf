"""The settings of proof."""

import json
from contextlib import suppress
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from guard.core.base.fields import USERS, Id, Section

_Command = Annotated[str, StringConstraints(max_length=4096)]


def _split(value: Any) -> Any:
    # A file has a list, a variable has a text with commas.
    if isinstance(value, str):
        return tuple(part for part in (part.strip() for part in value.split(",")) if part)
    return tuple(value) if isinstance(value, list) else value


Globs = Annotated[
    tuple[Annotated[str, StringConstraints(min_length=1, max_length=1024)], ...],
    BeforeValidator(_split),
]


Moment = Literal["iteration", "end"]
LOCK_FILES = (
    "*requirements*.txt",
    "uv.lock",
    "poetry.lock",
    "pdm.lock",
    "Pipfile.lock",
    "pylock*.toml",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "bun.lock",
    "go.sum",
    "Cargo.lock",
    "Gemfile.lock",
    "composer.lock",
)
"""Which files decide that what is installed has to be installed again, unless the user says so."""
MAIN_CHECK = "command"
"""The name of the check that `prove.command` stands for."""


class ProveCheck(Section):
    """One check that committed work must pass."""

    name: Id
    command: Annotated[str, StringConstraints(min_length=1, max_length=4096)]
    paths: Annotated[Globs, Field(max_length=200)] = ()
    """It is run only if the change touches one of these globs; empty for always."""
    when: Moment = "iteration"
    """Whether it is run after each iteration, or only at the end of a loop and before work lands."""
    kind: Literal["tests", "exit"] = "tests"
    """`exit` for linters, types and builds: only their exit code counts, on the baseline and on HEAD."""


def _read_checks(value: Any) -> Any:
    # A file has tables, a variable has them as JSON.
    if isinstance(value, str):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    return tuple(value) if isinstance(value, list) else value


def _refuse_same_names(checks: tuple[ProveCheck, ...]) -> tuple[ProveCheck, ...]:
    names = [check.name for check in checks]
    for name in names:
        if name == MAIN_CHECK or names.count(name) > 1:
            raise ValueError(f"each check needs a name of its own, and {name!r} is taken")
    return checks


_Checks = Annotated[
    tuple[ProveCheck, ...], BeforeValidator(_read_checks), AfterValidator(_refuse_same_names)
]


class ProveSettings(Section):
    """How guard proves that committed work passes the project's own checks."""

    command: Annotated[_Command, Field(json_schema_extra=USERS)] = ""
    """The command that must succeed, run by `sh -c` on a clean checkout of what was committed: `pytest -q`."""
    check: Annotated[_Checks, Field(max_length=20, json_schema_extra=USERS)] = ()
    """More checks, as tables `[[prove.check]]` with `name`, `command`, `paths`, `when` and `kind`."""
    tests: Annotated[Globs, Field(max_length=200, json_schema_extra=USERS)] = ()
    """Which files are tests, as globs; empty for what is so by custom (`guard prove --explain` shows it)."""
    junit: Annotated[str, Field(max_length=1024, json_schema_extra=USERS)] = ""
    """Where the command writes JUnit XML, as a glob in the checkout; pytest, unittest and others need none."""
    setup: Annotated[_Command, Field(json_schema_extra=USERS)] = ""
    """The command that prepares a fresh checkout, such as `npm ci`; run again when `setup_inputs` change."""
    setup_inputs: Annotated[Globs, Field(max_length=200, json_schema_extra=USERS)] = ()
    """Which files decide that a checkout has to be prepared again, as globs; empty for the lock files."""
    up: Annotated[_Command, Field(json_schema_extra=USERS)] = ""
    """The command that starts the services that the checks need, run in the checkout before each run."""
    down: Annotated[_Command, Field(json_schema_extra=USERS)] = ""
    """The command that stops them, run after each run, however that ended."""
    share: Annotated[Globs, Field(max_length=50, json_schema_extra=USERS)] = ()
    """Folders of the work tree that a checkout gets as links, such as `.venv` and `node_modules`."""
    reruns: Annotated[int, Field(ge=0, le=50, json_schema_extra=USERS)] = 3
    """How often a test that differs is run again on both trees before it refutes anything."""
    timeout_seconds: Annotated[float, Field(gt=0, le=604800, json_schema_extra=USERS)] = 900
    """How long one run of the command may take."""
    total_seconds: Annotated[float, Field(gt=0, le=604800, json_schema_extra=USERS)] = 3600
    """How long all runs of one proof may take."""
    required: Annotated[bool, Field(json_schema_extra=USERS)] = False
    """Whether work that cannot be proven is an error instead of complete with a warning."""
    on_review: Annotated[Literal["accept", "refute"], Field(json_schema_extra=USERS)] = "accept"
    """Whether rewritten tests leave the work complete, to be looked at, or refute it."""
    allow_test_changes: Annotated[
        bool | Globs, Field(union_mode="left_to_right", json_schema_extra=USERS)
    ] = False
    """Whether rewritten tests need no review: true, false, or the globs of test files that may be rewritten."""

    def checks_at(self, moment: Moment) -> tuple[ProveCheck, ...]:
        """Return the checks that are run at a moment; at the end all of them are."""
        main = (ProveCheck(name=MAIN_CHECK, command=self.command),) if self.command.strip() else ()
        return tuple(
            check for check in (*main, *self.check) if moment == "end" or check.when == "iteration"
        )
