"""Decide the outputs of a step, and whether it fails."""

from guard.core.base.text import escape, harmless_json
from guard.core.github.report import STATUSES, Push, StepReport

MOST_IN_JSON = 200_000
"""In characters. GitHub allows a job one mebibyte of outputs, counted in UTF-16."""
NONE = "none"


def statuses_to_fail_on(given: str) -> frozenset[str]:
    """Parse statuses separated by commas or blanks; raise ValueError for an unknown word."""
    words = set(given.replace(",", " ").split())
    for word in sorted(words - {NONE}):
        if word not in STATUSES:
            raise ValueError(
                f"{word!r} is not a status; the statuses are {', '.join(STATUSES)}, and {NONE}"
            )
    if NONE in words and len(words) > 1:
        raise ValueError(f"{NONE} cannot be combined with a status")
    return frozenset(words - {NONE})


def exit_code(report: StepReport, fail_on: frozenset[str]) -> int:
    return (report.exit_code or 1) if report.status in fail_on else 0


def outputs(report: StepReport, push: Push, report_path: str) -> dict[str, str]:
    check = report.check
    retry_at = check.retry_at if check else report.breaker and report.breaker.retry_at
    texts = {
        "json": _json(report),
        "report-path": report_path,
        "retry-at": f"{retry_at:%Y-%m-%dT%H:%M:%SZ}" if retry_at else "",
        "breaker": report.breaker.state if report.breaker else "",
        "proof": check.proof.result if check and check.proof else "",
        "cost-usd": _number(check.usage.cost_usd if check else None),
        "cost-basis": check.usage.cost_basis if check else "",
        "tokens": _number(check.usage.tokens if check else None),
        "rescue-ref": push.ref or "",
        "rescued": _bool(check is not None and check.rescued),
        "new-commits": str(check.new_commits if check else 0),
        "reason": report.reason,
        "status": report.status,
        "complete": _bool(report.complete),
    }
    return {name: escape(text) for name, text in texts.items()}


def _number(value: float | None) -> str:
    return "" if value is None else str(value)


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _json(report: StepReport) -> str:
    # One line; if it is too long, the check is left out and stands only in the report's file.
    whole = harmless_json(report.model_dump_json())
    if len(whole) <= MOST_IN_JSON:
        return whole
    short = {"check": None, "detail": "the check is in the file of the report: it is too long here"}
    return harmless_json(report.model_copy(update=short).model_dump_json())
