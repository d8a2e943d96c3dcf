"""Budgets: at which iteration a loop ends, what one agent may still use, and what is said of it."""

import pytest

from guard.core.cost.budget import (
    Allowance,
    BudgetEnd,
    CostBudget,
    Spending,
    budget_report,
    describe_spending,
    spend,
)
from guard.core.cost.usage import ModelUsage, Usage, sum_models
from guard.core.run.command import goes_on_with_session, limit_cost


def used(cost: float | None, tokens: int = 1000) -> Usage:
    model = ModelUsage(model="opus", input_tokens=tokens, cost_usd=cost)
    return sum_models((model,), "billed" if cost is not None else "unknown")


def last_iteration(
    budget: CostBudget, iterations: list[tuple[Usage, bool]]
) -> tuple[int, BudgetEnd | None]:
    """After how many iterations the loop ends, and by which limit."""
    spending = Spending()
    for number, (usage, has_progress) in enumerate(iterations, 1):
        spending = spending.plus(usage, has_progress)
        if (end := budget.find_end(spending)) is not None:
            return number, end
    return len(iterations), None


WORK, IDLE = (used(0.1), True), (used(0.1), False)
THIRTY: dict[str, tuple[CostBudget, list[tuple[Usage, bool]], tuple[int, BudgetEnd | None]]] = {
    "no budget": (CostBudget(), [WORK] * 30, (30, None)),
    "zeros are no budget": (CostBudget(0, 0, 0), [WORK] * 30, (30, None)),
    "a cost that is reached exactly": (CostBudget(max_cost=1.0), [WORK] * 30, (10, "max_cost")),
    "a cost that is passed": (CostBudget(max_cost=0.95), [WORK] * 30, (10, "max_cost")),
    "a cost that is never reached": (CostBudget(max_cost=3.01), [WORK] * 30, (30, None)),
    "the last of thirty reaches it": (CostBudget(max_cost=3.0), [WORK] * 30, (30, "max_cost")),
    "tokens": (CostBudget(max_tokens=12_500), [WORK] * 30, (13, "max_tokens")),
    "cost is looked at before tokens": (
        CostBudget(max_cost=0.5, max_tokens=5000),
        [WORK] * 30,
        (5, "max_cost"),
    ),
    "nothing new": (
        CostBudget(max_cost_without_progress=0.3),
        [WORK] * 10 + [IDLE] * 20,
        (13, "max_cost_without_progress"),
    ),
    "new work sets it back": (
        CostBudget(max_cost_without_progress=0.3),
        [IDLE, IDLE, WORK] * 10,
        (30, None),
    ),
    "the whole cost counts beside it": (
        CostBudget(max_cost=2.0, max_cost_without_progress=0.3),
        [IDLE, IDLE, WORK] * 10,
        (20, "max_cost"),
    ),
    "an unknown cost counts as none, its tokens count": (
        CostBudget(max_cost=1.0, max_tokens=25_000),
        [(used(None), True)] * 30,
        (25, "max_tokens"),
    ),
}


@pytest.mark.parametrize(("budget", "iterations", "expected"), THIRTY.values(), ids=THIRTY)
def test_a_loop_of_thirty_iterations_ends_at_the_right_one(
    budget: CostBudget,
    iterations: list[tuple[Usage, bool]],
    expected: tuple[int, BudgetEnd | None],
) -> None:
    assert last_iteration(budget, iterations) == expected


def test_the_next_agent_may_use_what_is_left_of_the_nearest_limit() -> None:
    quarter = used(0.25)
    spent = spend([(quarter, True), (quarter, False), (quarter, False)])
    assert CostBudget(max_cost=1.0).allow(spent) == Allowance(0.25, None)
    both = CostBudget(max_cost=2.0, max_cost_without_progress=1.0, max_tokens=5000)
    assert both.allow(spent) == Allowance(0.5, 2000)
    assert CostBudget(max_cost=0.1, max_tokens=1).allow(spent) == Allowance(0.0, 0)
    assert CostBudget().allow(spent) == Allowance()


@pytest.mark.parametrize(
    ("allowance", "usage", "is_used_up"),
    [
        (Allowance(0.1), used(0.09), False),
        (Allowance(0.1), used(0.1), True),
        (Allowance(0.1), used(None), False),
        (Allowance(None, 1000), used(None), True),
        (Allowance(None, 1001), used(None), False),
        (Allowance(0.1, 10), Usage(), False),
    ],
)
def test_an_allowance_is_used_up_by_what_is_known(
    allowance: Allowance, usage: Usage, is_used_up: bool
) -> None:
    assert allowance.is_used_up(usage) is is_used_up


def test_a_cost_that_no_iteration_told_is_not_said_to_be_nothing() -> None:
    used = Usage(input_tokens=30, output_tokens=15)
    report = budget_report(CostBudget(max_tokens=80), spend([(used, True), (used, False)]))
    assert report is not None
    assert report.detail == (
        "90 of 80 tokens; 1 iteration with new work, 1 iteration without, 2 iterations of unknown cost"
    )


def test_the_report_says_what_was_spent_on_what() -> None:
    budget = CostBudget(max_cost=0.4, max_cost_without_progress=0.25)
    spent = spend([WORK, WORK, IDLE, IDLE, (used(None), False)])
    assert describe_spending(budget, spent) == (
        "0.40 USD of 0.40 USD (billed); 2 iterations with new work: 0.20 USD, 3 iterations without: 0.20 USD, "
        "since the last new work: 0.20 USD of 0.25 USD, 1 iteration of unknown cost"
    )
    report = budget_report(budget, spent)
    assert report is not None
    assert report.cost_usd == pytest.approx(0.4)
    assert (report.cost_basis, report.tokens, report.untold) == ("billed", 5000, 1)
    assert budget_report(CostBudget(), spent) is None


COMMANDS = {
    "without a terminal": (
        ("/usr/bin/claude", "-p", "x"),
        ("/usr/bin/claude", "--max-budget-usd", "0.500000", "-p", "x"),
    ),
    "on a terminal the flag does nothing": (("claude", "x"), ("claude", "x")),
    "the user's own limit stays": (
        ("claude", "--print", "--max-budget-usd=9"),
        ("claude", "--print", "--max-budget-usd=9"),
    ),
    "other programs have no such flag": (("codex", "exec", "x"), ("codex", "exec", "x")),
}


@pytest.mark.parametrize(("argv", "expected"), COMMANDS.values(), ids=COMMANDS)
def test_claude_is_told_what_is_left_of_the_budget(
    argv: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    assert limit_cost(argv, 0.5) == expected
    assert limit_cost(argv, None) == argv


RESUMED = {
    ("codex", "exec", "resume", "--last", "go on"): True,
    ("/opt/codex", "exec", "--json", "fix the resume page"): False,
    ("claude", "-p", "--resume=s1", "x"): True,
    ("claude", "-c", "-p", "x"): True,
    ("claude", "-p", "continue"): False,
    ("bash", "-c", "codex exec resume t1 'go on'"): True,
    ("bash", "-c", "codex exec 'go on'; ./resume"): False,
    ("sh", "-c", "cat p | claude -p --continue"): True,
    ("./agent.sh", "-r"): False,
    (): False,
}


@pytest.mark.parametrize(("argv", "is_resumed"), RESUMED.items())
def test_a_command_tells_whether_its_session_may_be_older(
    argv: tuple[str, ...], is_resumed: bool
) -> None:
    assert goes_on_with_session(argv) is is_resumed
