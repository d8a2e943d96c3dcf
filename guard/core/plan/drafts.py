"""A plan as it was read, before it is known whether it holds together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from guard.core.base.text import shorten, visible

_MOST_PROBLEMS = 100
_MOST_QUOTED = 60
MOST_NAME = 128
_MOST_PRIORITY = 1_000_000


class PlanProblem(ValueError):
    """A plan that cannot be loaded; `problems` names everything that is wrong with it, each with its line."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class TaskDraft:
    """A task as it stands in the document, with names in place of ids."""

    line: int
    name: str
    title: str
    depends: tuple[str, ...] = ()
    priority: int = 0
    ticked: bool = False
    within: int | None = None
    """The line of the task that this one is a part of."""


@dataclass(frozen=True, slots=True)
class SupportDraft:
    """A supporting agent: the fields of its model, not validated yet."""

    line: int
    fields: Mapping[str, Any]


@dataclass(slots=True)
class PlanDraft:
    """A plan that is being read, and the problems found in it."""

    tasks: list[TaskDraft] = field(default_factory=list)
    supporting: list[SupportDraft] = field(default_factory=list)
    _problems: list[tuple[int, str]] = field(default_factory=list)

    def complain(self, line: int, problem: str) -> None:
        # Line 0 stands for the whole document.
        self._problems.append((line, problem))

    def check_priority(self, line: int, value: object) -> int:
        """The value if it is a priority; otherwise 0, and the problem is noted."""
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _MOST_PRIORITY:
            return value
        bounds = f"a whole number from -{_MOST_PRIORITY} to {_MOST_PRIORITY}"
        self.complain(line, f"the priority {quote_name(str(value)[:100])} is not {bounds}")
        return 0

    @property
    def has_problems(self) -> bool:
        return bool(self._problems)

    def raise_problems(self) -> None:
        """Raise PlanProblem with the problems in the order of their lines; of very many, the first ones."""
        if not self._problems:
            return
        found = sorted(self._problems, key=lambda problem: problem[0])
        lines = [f"line {line}: {problem}" if line else problem for line, problem in found]
        more = len(lines) - _MOST_PROBLEMS
        rest = (f"and {more} more",) if more > 0 else ()
        raise PlanProblem((*lines[:_MOST_PROBLEMS], *rest))


def quote_name(name: str) -> str:
    return f'"{visible(shorten(name, _MOST_QUOTED))}"'
