"""Hold a plan as it was read, before it is checked."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from guard.core.base.text import escape, shorten

_MOST_PROBLEMS = 100
_MOST_QUOTED = 60
MOST_NAME = 128
_MOST_PRIORITY = 1_000_000
_MOST_GLOB, _MOST_GLOBS = 512, 100
MAY_CHANGE = "may change"


class PlanProblem(ValueError):
    """Raised for a plan that cannot be loaded; `problems` lists all its errors, each with its line."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class TaskDraft:
    """A task as the document has it, with names instead of ids."""

    line: int
    name: str
    title: str
    depends: tuple[str, ...] = ()
    priority: int = 0
    ticked: bool = False
    touches: tuple[str, ...] = ()
    may_change_tests: bool = False
    within: int | None = None
    """The line of the task that this one is a part of."""


@dataclass(frozen=True, slots=True)
class SupportDraft:
    """The fields of a supporting agent, not validated yet."""

    line: int
    fields: Mapping[str, Any]


@dataclass(slots=True)
class PlanDraft:
    tasks: list[TaskDraft] = field(default_factory=list)
    supporting: list[SupportDraft] = field(default_factory=list)
    _problems: list[tuple[int, str]] = field(default_factory=list)

    def complain(self, line: int, problem: str) -> None:
        # Line 0 stands for the whole document.
        self._problems.append((line, problem))

    def check_priority(self, line: int, value: object) -> int:
        """Return the value if it is a valid priority; otherwise record a problem and return 0."""
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _MOST_PRIORITY:
            return value
        bounds = f"a whole number from -{_MOST_PRIORITY} to {_MOST_PRIORITY}"
        self.complain(line, f"the priority {quote_name(str(value)[:100])} is not {bounds}")
        return 0

    def check_touches(self, line: int, globs: Iterable[str]) -> tuple[str, ...]:
        """Return the globs, without empty ones; record a problem for each that leads out of the repository."""
        found = tuple(dict.fromkeys(glob.strip() for glob in globs if glob.strip()))
        for glob in found:
            if ".." in glob.split("/") or len(glob) > _MOST_GLOB:
                self.complain(line, f"{quote_name(glob)} is no path in the repository")
        if len(found) > _MOST_GLOBS:
            self.complain(line, f"a task touches more than {_MOST_GLOBS} paths")
        return found

    def check_tests(self, line: int, value: object) -> bool:
        """Tell whether a task may change tests; the only word for it is `may change`."""
        if isinstance(value, str) and " ".join(value.casefold().split()) == MAY_CHANGE:
            return True
        self.complain(line, f'tests: {quote_name(str(value)[:100])} is not "{MAY_CHANGE}"')
        return False

    @property
    def has_problems(self) -> bool:
        return bool(self._problems)

    def raise_problems(self) -> None:
        """Raise PlanProblem if there are problems, in the order of their lines and at most the first 100."""
        if not self._problems:
            return
        found = sorted(self._problems, key=lambda problem: problem[0])
        lines = [f"line {line}: {problem}" if line else problem for line, problem in found]
        more = len(lines) - _MOST_PROBLEMS
        rest = (f"and {more} more",) if more > 0 else ()
        raise PlanProblem((*lines[:_MOST_PROBLEMS], *rest))


def quote_name(name: str) -> str:
    return f'"{escape(shorten(name, _MOST_QUOTED))}"'
