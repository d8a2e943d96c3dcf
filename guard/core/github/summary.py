"""Write the summary of a step and the comment on a pull request, in markdown."""

from collections.abc import Iterable, Iterator

from guard.core.base.markdown_escape import block, fit_lines, piece
from guard.core.base.text import plural
from guard.core.check.report import CheckReport
from guard.core.check.warnings import describe_secret
from guard.core.check.words import status_word
from guard.core.cost.text import usage_line
from guard.core.github.report import Push, StepReport
from guard.core.prove.text import cell_lines, command_to_repeat, named_tests
from guard.core.report.document import NightReport
from guard.core.report.markdown import report_markdown

MOST_BYTES = 1024 * 1024
"""GitHub drops a larger summary as a whole."""
_MOST_OF_NIGHT, _LEAST_OF_NIGHT = 256 * 1024, 2000
_MOST_LISTED = 25
_MOST_TAIL_LINES = 40
_PROOF_WORDS = {
    "proven": "The committed work passes the project's own checks, and those that were there before",
    "refuted": "The committed work does not pass the project's own checks",
    "review": "The checks pass, but a person has to look at the tests that were rewritten",
    "unverifiable": "The checks neither prove nor refute the committed work",
}
_MORE = "\n_The rest is left out here; the report has all of it._"


def summary(
    report: StepReport,
    push: Push,
    most_bytes: int = MOST_BYTES,
    night: NightReport | None = None,
) -> str:
    """Return the page about a verdict; behind it the report of the run, if there is one and as far as it fits."""
    page = fit_lines(list(_lines(report, push)), most_bytes, _MORE)
    left = min(_MOST_OF_NIGHT, most_bytes - len(page.encode()) - 1)
    if night is None or left < _LEAST_OF_NIGHT:
        return page
    return f"{page}\n{report_markdown(night, level=3, most_bytes=left)}"


def _lines(report: StepReport, push: Push) -> Iterator[str]:
    yield f"### guard: {status_word(report.status)}"
    yield ""
    yield "| | |"
    yield "|---|---|"
    yield from (f"| {name} | {text} |" for name, text in _table(report) if text)
    yield ""
    if report.check is not None:
        yield from _proof(report.check)
        yield from _secrets(report.check)
        yield from _evidence(report.check)
        yield from _commits(report.check)
        yield from _rescue_lines(report.check, push)


def _table(report: StepReport) -> list[tuple[str, str]]:
    check, known = report.check, ("", report.reason, report.status)
    rows = [
        ("reason", piece(report.reason) if report.reason != report.status else ""),
        ("detail", piece(report.detail) if report.detail not in known else ""),
        ("breaker", _breaker(report)),
    ]
    if report.baseline is not None:
        rows.append(("begins at", piece(report.baseline.head)))
    if check is None:
        return rows
    cost, used = report.probe_cost_usd, usage_line(check.usage)
    return [
        *rows,
        ("new commits", str(check.new_commits)),
        ("rescued commits", str(check.rescued_commits)),
        ("probes", str(check.probes)),
        ("used", piece(used) if used else ""),
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


def _proof(check: CheckReport) -> Iterator[str]:
    proof = check.proof
    if proof is None:
        return
    yield f"#### Proof: {proof.result}"
    yield ""
    yield f"{_PROOF_WORDS[proof.result]}: {piece(proof.detail)}"
    yield ""
    for said, names in named_tests(proof):
        yield from (f"- {said}: {piece(name)}" for name in names[:_MOST_LISTED])
        if len(names) > _MOST_LISTED:
            yield f"- {said}: and {len(names) - _MOST_LISTED} more"
    yield from (f"- {piece(line)}" for line in cell_lines(proof))
    yield from (f"- note: {piece(note)}" for note in proof.notes[:_MOST_LISTED])
    yield ""
    yield "This shows it again, in a checkout that has both commits:"
    yield ""
    yield block(command_to_repeat(proof))
    yield ""
    if proof.tail and proof.result != "proven":
        yield "The last lines of what failed:"
        yield ""
        # One item, so that a page that is cut short has no open tag.
        yield block("\n".join(proof.tail.splitlines()[-_MOST_TAIL_LINES:]))
        yield ""


def _secrets(check: CheckReport) -> Iterator[str]:
    if check.secrets:
        shown = (piece(describe_secret(secret)) for secret in check.secrets[:_MOST_LISTED])
        yield from _section("Secrets in the commits", shown, len(check.secrets))


def _evidence(check: CheckReport) -> Iterator[str]:
    # The proof has a section of its own.
    evidence = [fact for fact in check.evidence if check.proof is None or fact.source != "proof"]
    facts = (f"{fact.source}: {piece(fact.fact)}" for fact in evidence[:_MOST_LISTED])
    yield from _section("Evidence", facts, len(evidence))


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
