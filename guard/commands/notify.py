"""`guard notify`."""

import click

from guard.context.invocation import Invocation
from guard.context.output import colour, prints_report
from guard.core.base.text import escape
from guard.core.notify.notice import NotifyReport
from guard.errors import WrongUsage


@click.command("notify")
@click.option("--test", "is_test", is_flag=True, help="Send a test notice on each way that is set.")
@prints_report
def command(guard: Invocation, is_test: bool, form: str) -> int:
    """Try the notices that runs, loops and plans send to a person.

    `guard run`, `guard loop` and `guard plan run` send a notice, once each, when a person is needed, the breaker opens, a
    loop or plan ends, a limit lasts long, a budget is nearly used up, or work is refuted twice. Set notify.command,
    notify.url or notify.services in your own configuration.

    Exit code 0 if the test notice went out on each way, 1 if it did not.
    """
    from guard.notify import send_test

    if not is_test:
        raise WrongUsage("say what to send", "`guard notify --test` sends a test notice")
    report = NotifyReport(deliveries=send_test(guard))
    guard.output.document(report, form, _text)
    return 0 if all(delivery.sent for delivery in report.deliveries) else 1


def _text(report: NotifyReport) -> str:
    lines = []
    for delivery in report.deliveries:
        word = colour("sent", "ok") if delivery.sent else colour("not sent", "problem")
        why = "" if delivery.sent else f" ({escape(delivery.detail)})"
        lines.append(f"notify.{delivery.way}: {word}{why}")
    return "\n".join(lines)
