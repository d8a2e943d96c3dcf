"""Hold what was used against the user's budget, before each iteration and while one runs."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from guard.core.base.fields import Count, Frozen
from guard.core.base.text import plural
from guard.core.cost.text import count_of, dollars
from guard.core.cost.usage import CostBasis, Dollars, Usage, total_usage

BudgetEnd = Literal["max_cost", "max_tokens", "max_cost_without_progress"]


@dataclass(frozen=True, slots=True)
class Allowance:
    """What one agent may still use."""

    cost_usd: float | None = None
    tokens: int | None = None

    def is_used_up(self, usage: Usage) -> bool:
        cost, tokens = usage.cost_usd, usage.tokens
        return (self.cost_usd is not None and cost is not None and cost >= self.cost_usd) or (
            self.tokens is not None and tokens is not None and tokens >= self.tokens
        )


@dataclass(frozen=True, slots=True)
class Spending:
    """What was used so far; an immutable value that grows by `plus`."""

    usages: tuple[Usage, ...] = ()
    cost: float = 0.0
    tokens: int = 0
    cost_with_progress: float = 0.0
    with_progress: int = 0
    """How many iterations brought new work."""
    cost_without_progress: float = 0.0
    """Since the last new work."""
    untold: int = 0
    """How many iterations did not tell their cost."""

    def plus(self, usage: Usage, has_progress: bool) -> "Spending":
        """Add an iteration; new work sets back what was spent without any."""
        cost = usage.cost_usd or 0.0
        return replace(
            self,
            usages=(*self.usages, usage),
            cost=self.cost + cost,
            tokens=self.tokens + (usage.tokens or 0),
            cost_with_progress=self.cost_with_progress + (cost if has_progress else 0.0),
            with_progress=self.with_progress + has_progress,
            cost_without_progress=0.0 if has_progress else self.cost_without_progress + cost,
            untold=self.untold + (usage.cost_usd is None),
        )

    @property
    def usage(self) -> Usage:
        return total_usage(self.usages)


def spend(used: Iterable[tuple[Usage, bool]]) -> Spending:
    """Add up iterations in their order, each with whether it brought new work."""
    spending = Spending()
    for usage, has_progress in used:
        spending = spending.plus(usage, has_progress)
    return spending


@dataclass(frozen=True, slots=True)
class CostBudget:
    """The user's limits; None and 0 are none."""

    max_cost: float | None = None
    max_tokens: int | None = None
    max_cost_without_progress: float | None = None

    @property
    def limits_cost(self) -> bool:
        return bool(self.max_cost or self.max_cost_without_progress)

    @property
    def is_set(self) -> bool:
        return self.limits_cost or bool(self.max_tokens)

    def find_end(self, spending: Spending) -> BudgetEnd | None:
        """Return which limit is reached; None if the agent may go on."""
        reached: tuple[tuple[BudgetEnd, float | None, float], ...] = (
            ("max_cost", self.max_cost, spending.cost),
            ("max_tokens", self.max_tokens, spending.tokens),
            (
                "max_cost_without_progress",
                self.max_cost_without_progress,
                spending.cost_without_progress,
            ),
        )
        return next((name for name, most, used in reached if most and used >= most - 1e-9), None)

    def allow(self, spending: Spending) -> Allowance:
        """Return what the next iteration may use."""
        costs = [
            most - used
            for most, used in (
                (self.max_cost, spending.cost),
                (self.max_cost_without_progress, spending.cost_without_progress),
            )
            if most
        ]
        tokens = self.max_tokens - spending.tokens if self.max_tokens else None
        return Allowance(
            max(0.0, min(costs)) if costs else None, None if tokens is None else max(0, tokens)
        )


NO_BUDGET = CostBudget()


class BudgetReport(Frozen):
    """The user's limits, and what was spent of them."""

    max_cost: Dollars | None
    max_tokens: Count | None
    max_cost_without_progress: Dollars | None
    cost_usd: Dollars
    cost_basis: CostBasis
    tokens: Count
    cost_without_progress_usd: Dollars
    """Since the last new work."""
    untold: Count
    """How many iterations did not tell their cost."""
    detail: str
    """What was spent on what."""

    @property
    def nearly_used_up(self) -> tuple[str, ...]:
        """Return the limits of which 80 % and more are spent."""
        limits = (
            ("max_cost", self.cost_usd, self.max_cost),
            ("max_tokens", self.tokens, self.max_tokens),
            (
                "max_cost_without_progress",
                self.cost_without_progress_usd,
                self.max_cost_without_progress,
            ),
        )
        return tuple(name for name, spent, most in limits if most and spent >= 0.8 * most)


def budget_report(budget: CostBudget, spending: Spending) -> BudgetReport | None:
    """Return the report; None without a budget."""
    if not budget.is_set:
        return None
    return BudgetReport(
        max_cost=budget.max_cost or None,
        max_tokens=budget.max_tokens or None,
        max_cost_without_progress=budget.max_cost_without_progress or None,
        cost_usd=round(spending.cost, 12),
        cost_basis=spending.usage.cost_basis,
        tokens=spending.tokens,
        cost_without_progress_usd=round(spending.cost_without_progress, 12),
        untold=spending.untold,
        detail=describe_spending(budget, spending),
    )


def describe_spending(budget: CostBudget, spending: Spending) -> str:
    """Return a sentence about what was spent on what."""
    parts = []
    if budget.limits_cost or spending.cost:
        most = f" of {dollars(budget.max_cost)}" if budget.max_cost else ""
        parts.append(f"{dollars(spending.cost)}{most} ({spending.usage.cost_basis})")
    if budget.max_tokens:
        parts.append(f"{count_of(spending.tokens)} of {count_of(budget.max_tokens)} tokens")
    idle = len(spending.usages) - spending.with_progress
    rest = max(0.0, spending.cost - spending.cost_with_progress)
    is_told = spending.untold < len(spending.usages)
    on = [
        f"{plural(count, 'iteration')} {what}" + (f": {dollars(cost)}" if is_told else "")
        for count, what, cost in (
            (spending.with_progress, "with new work", spending.cost_with_progress),
            (idle, "without", rest),
        )
        if count
    ]
    if budget.max_cost_without_progress:
        most = dollars(budget.max_cost_without_progress)
        on.append(f"since the last new work: {dollars(spending.cost_without_progress)} of {most}")
    if spending.untold:
        on.append(f"{plural(spending.untold, 'iteration')} of unknown cost")
    return f"{', '.join(parts)}; {', '.join(on)}" if on else ", ".join(parts)
