"""What `guard status` says of runs."""

from datetime import UTC, datetime

import pytest

from guard.core.activity.status_report import RunLine, run_lines, run_text

AT = datetime(2026, 11, 16, 2, tzinfo=UTC)
RUN = RunLine(
    run="98dc813631bdfee0",
    worktree="w1",
    agent="claude",
    iteration=12,
    since=AT,
    last_seen=AT,
    waits_for=None,
    until=None,
    breaker="closed",
    streak=0,
    open_tasks=3,
    cost_usd=0.84,
)


@pytest.mark.parametrize("columns", [80, 120, 300])
def test_a_terminal_of_any_width_shows_all_that_is_known_of_a_run(columns: int) -> None:
    lines = run_lines(RUN, columns)
    assert all(len(line) <= columns for line in lines)
    assert "; ".join(line.strip() for line in lines) == run_text(RUN)
    assert lines[-1].endswith("0.84 USD so far")
