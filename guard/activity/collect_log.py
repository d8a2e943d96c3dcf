"""What the log of guard knows of an agent: its own reports, findings and test runs."""

from collections.abc import Iterator

from guard.activity.subject import AgentSubject, Sign


def reports(subject: AgentSubject) -> Iterator[Sign]:
    """What it reported; being spawned is no activity of its own, nor is what guard found out of it."""
    for report in subject.reports:
        yield subject.signal("TELEMETRY_EVENT", report.seconds, report.detail, report.message)
