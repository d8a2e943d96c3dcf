"""`guard check`."""

from typing import Any

import click

from guard.check.text import verdict_text
from guard.commands.options import check_options, check_terms, settles_rollbacks
from guard.context.invocation import Invocation
from guard.context.output import format_option
from guard.core.check.report import EXIT_OF


@click.command("check")
@check_options
@format_option
@click.pass_obj
@settles_rollbacks
def command(guard: Invocation, /, form: str, **told: Any) -> int:
    """Find out what became of the iteration: complete, waiting, working, stalled, or something else.

    Commits that are the agent's own decide first. Without them the agent's session is asked, work that was forgotten is
    committed, and what is alive is waited for. The exit code is the verdict: 0 complete, 10 timeout (a genuine stall),
    11 waiting, 12 working, 13 limited, 14 blocked, 15 the probe failed for good, 16 interrupted; 4 without a baseline.
    """
    from guard.check.verdict import check

    report = check(guard, check_terms(told))
    guard.output.verdict(report, form, verdict_text)
    return EXIT_OF[report.status]
