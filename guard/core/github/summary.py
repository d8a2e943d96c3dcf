"""Write the summary of a step and the comment on a pull request, in markdown."""

from collections.abc import Iterable, Iterator

from guard.core.base.text import plural
from guard.core.check.report import CheckReport
from guard.core.check.warnings import describe_secret
from guard.core.check.words import status_word
from guard.core.github.escape import block, fit_lines, piece
from guard.core.github.report import Push, StepReport

MOST_BYTES = 1024 * 1024
"""GitHub drops a larger summary as a whole."""
_MOST_LISTED = 25
_MORE = "\n_The rest is left out here; the report has all of it._"


def summary(report: StepReport, push: Push, most_bytes: int = MOST_BYTES) -> str:
    return fit_lines(list(_lines(report, push)), most_bytes, _MORE)


def _lines(report: StepReport, push: Push) -> Iterator[str]:
    yield f"### guard: {status_word(report.status)}"
    yield ""
    yield "| | |"
    yield "|---|---|"
    yield from (f"| {name} | {text} |" for name, text in _table(report) if text)
    yield ""
    if report.check is not None:
        yield from _secrets(report.check)
        yield from _evidence(report.check)
        yield from _commits(report.check)
        yield from _rescue_lines(report.check, push)


def _table(report: StepReport) -> list[tuple[str, str]]:
    check = report.check
    rows = [
        ("reason", piece(report.reason)),
        ("detail", piece(report.detail) if report.detail else ""),
        ("breaker", _breaker(report)),
    ]
    if report.baseline is not None:
        rows.append(("begins at", piece(report.baseline.head)))
    if check is None:
        return rows
    cost = report.probe_cost_usd
    return [
        *rows,
        ("new commits", str(check.new_commits)),
        ("rescued commits", str(check.rescued_commits)),
        ("probes", str(check.probes)),
        ("cost of the probes", f"{cost:.4f} USD" if cost is not None else ""),
        ("try again at", f"{check.retry_at:%Y-%m-%d %H:%M:%S} UTC" if check.retry_at else ""),
        ("iteration", f"{check.iteration} of run {piece(check.run)}"),
        ("agent's exit code", "" if check.exit_code is None else str(check.exit_code)),
        ("time", f"{check.elapsed_seconds:.0f} s"),
    ]


def _breaker(report: StepReport) -> str:
    line = report.breaker
    if line is None:
        return ""
    why = f", {piece(line.reason)}" if line.reason else ""
    until = f", a trial from {line.retry_at:%Y-%m-%d %H:%M:%S} UTC on" if line.retry_at else ""
    return f"{line.state}, streak {line.streak}{why}{until}"


def _section(title: str, items: Iterable[str], count: int) -> Iterator[str]:
    yield f"#### {title}"
    yield ""
    for item in items:
        yield f"- {item}"
    if count > _MOST_LISTED:
        yield f"- and {count - _MOST_LISTED} more"
    yield ""


def _secrets(check: CheckReport) -> Iterator[str]:
    if check.secrets:
        shown = (piece(describe_secret(secret)) for secret in check.secrets[:_MOST_LISTED])
        yield from _section("Secrets in the commits", shown, len(check.secrets))


def _evidence(check: CheckReport) -> Iterator[str]:
    shown = check.evidence[:_MOST_LISTED]
    facts = (f"{fact.source}: {piece(fact.fact)}" for fact in shown)
    yield from _section("Evidence", facts, len(check.evidence))


def _commits(check: CheckReport) -> Iterator[str]:
    commits = check.work.commits
    if commits:
        shown = (f"{piece(line.oid[:10])} {piece(line.subject)}" for line in commits[:_MOST_LISTED])
        yield from _section("Commits", shown, max(len(commits), check.new_commits))


def _rescue_lines(check: CheckReport, push: Push) -> Iterator[str]:
    rescue, names = check.rescue, check.uncommitted.names
    if names and not (rescue is not None and rescue.commits):
        title = f"Left uncommitted: {plural(len(names), 'file')}"
        yield from _section(title, map(piece, names[:_MOST_LISTED]), len(names))
    if rescue is not None and (rescue.commits or rescue.held_back):
        items = [
            f"{piece(planned.subject)} ({plural(planned.files, 'file')})"
            for planned in rescue.plan[:_MOST_LISTED]
        ]
        items += [
            f"held back: {piece(held.path)}: {piece(held.why)}"
            for held in rescue.held_back[:_MOST_LISTED]
        ]
        title = f"Rescued: {plural(len(rescue.commits), 'commit')}"
        yield from _section(title, items, max(len(rescue.plan), len(rescue.held_back)))
    if rescue is not None and rescue.commits:
        yield from _how_to_get(push)
    elif check.snapshot is not None:
        yield f"Safe in snapshot {piece(check.snapshot.id)} in guard's state on the runner:"
        yield ""
        yield block(f"guard restore {check.snapshot.id} --to DIR")
        skipped = () if check.snapshot.whole else check.snapshot.skipped
        if skipped:
            title = f"Not in the snapshot: {plural(len(skipped), 'path')}"
            yield from _section(title, map(piece, skipped[:_MOST_LISTED]), len(skipped))


def _how_to_get(push: Push) -> Iterator[str]:
    if push.pushed and push.ref:
        yield "How to get them:"
        yield ""
        yield block(f"git fetch origin {push.ref} && git switch --detach FETCH_HEAD")
        return
    place = f" on {piece(push.ref)}" if push.ref else ""
    yield (
        f"They are in the checkout of this job{place} and were not pushed: {piece(push.detail or push.why)}. "
        "A later step of the job can push them; the input `push-rescue` does it here."
    )
