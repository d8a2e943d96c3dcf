"""`guard check`."""

from typing import Any

import click

from guard.check.verdict_text import verdict_text
from guard.commands.options import (
    check_options,
    check_terms,
    settles_rollbacks,
    tells_what_is_safe,
)
from guard.context.invocation import Invocation
from guard.context.output import prints_report
from guard.core.check.report import EXIT_OF


@click.command("check")
@check_options
@prints_report
@settles_rollbacks
def command(guard: Invocation, /, form: str, **given: Any) -> int:
    """Check how the iteration ended: complete, waiting, working, stalled or otherwise.

    The agent's own commits decide first. Without them, guard asks the agent's session, commits forgotten work, and
    waits for what is alive.

    The exit code is the verdict: 0 complete, 10 stalled (timeout), 11 waiting, 12 working, 13 limited, 14
    blocked, 15 the probe failed for good, 16 interrupted, 17 refuted. Exit code 4 without a baseline.
    """
    from guard.check.verdict import check
    from guard.iteration.current import describe_after_interrupt

    with tells_what_is_safe(lambda: describe_after_interrupt(guard)):
        report = check(guard, check_terms(given))
    guard.output.verdict(report, form, verdict_text)
    return EXIT_OF[report.status]
