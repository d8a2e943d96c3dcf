"""What was read of a plan before it is known whether it holds together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from guard.core.base.text import shortened, visible

_MOST_PROBLEMS = 100
_MOST_QUOTED = 60


class PlanProblem(ValueError):
    """A plan that cannot be loaded. `problems` names all that is wrong with it, each with its line."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class TaskDraft:
    """One task as it stands in the document, with names in place of ids."""

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
    """One supporting agent, with the fields of its model, not yet validated."""

    line: int
    fields: Mapping[str, Any]


@dataclass(slots=True)
class PlanDraft:
    """A document that is being read, and what is wrong with it."""

    tasks: list[TaskDraft] = field(default_factory=list)
    supporting: list[SupportDraft] = field(default_factory=list)
    _problems: list[tuple[int, str]] = field(default_factory=list)

    def complain(self, line: int, problem: str) -> None:
        """Note a problem; line 0 stands for the whole document."""
        self._problems.append((line, problem))

    @property
    def has_problems(self) -> bool:
        return bool(self._problems)

    def raise_problems(self) -> None:
        """In the order of their lines; of very many the first ones and their number."""
        if not self._problems:
            return
        found = sorted(self._problems, key=lambda problem: problem[0])
        told = [f"line {line}: {problem}" if line else problem for line, problem in found]
        more = len(told) - _MOST_PROBLEMS
        rest = (f"and {more} more",) if more > 0 else ()
        raise PlanProblem((*told[:_MOST_PROBLEMS], *rest))


def quoted(name: str) -> str:
    """A name from outside, as it may stand in a message."""
    return f'"{visible(shortened(name, _MOST_QUOTED))}"'
