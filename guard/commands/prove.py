"""`guard prove`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from guard.context.invocation import Invocation
from guard.context.output import colour, prints_report
from guard.core.base.text import escape, plural
from guard.core.prove.receipt import ReceiptReport
from guard.core.prove.report import (
    EXIT_OF_PROOF,
    AcceptReport,
    CheckProof,
    Proof,
    ProofPlan,
    ProofReport,
)
from guard.core.prove.text import cell_lines, command_to_repeat, named_tests
from guard.errors import Interrupted, WrongUsage

if TYPE_CHECKING:
    from guard.prove.work import ProveTerms

_MOST_LINES = 10
_COLOURS = {"proven": "ok", "review": "warning", "refuted": "problem", "unverifiable": "warning"}


@click.command("prove")
@click.option(
    "--baseline",
    metavar="REV",
    help="Compare with this revision, not with the newest proven one and where the run began.",
)
@click.option("--head", metavar="REV", help="Prove this revision instead of HEAD.")
@click.option(
    "--command",
    "prove_command",
    metavar="CMD",
    help="The command that must succeed, such as 'pytest -q', instead of the configured checks.",
)
@click.option(
    "--check",
    "only",
    metavar="NAME",
    multiple=True,
    help="Run only this check; prove.command is the check `command`. May be repeated.",
)
@click.option("--no-cache", is_flag=True, help="Run every cell, also one that was run before.")
@click.option(
    "--explain",
    is_flag=True,
    help="Print which files are tests, which steer them and what guard would run, and run nothing.",
)
@click.option(
    "--accept",
    metavar="REV",
    help="Accept the changes of tests up to this revision, which you have reviewed, and run nothing.",
)
@click.option(
    "--receipt",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also write what is proven of which tree to this file, as an in-toto Statement without a signature.",
)
@click.option(
    "--check-receipt",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Tell whether this receipt is about the tree that is there, and run nothing: exit code 0 or 1.",
)
@click.option(
    "--calibrate",
    type=click.IntRange(min=1, max=10_000),
    metavar="N",
    help="Replay the last N commits, each against its first parent, and print what the proof would have said.",
)
@click.option(
    "--held",
    is_flag=True,
    help="Take back each part of the change on its own, and print which lines no test would miss.",
)
@click.option(
    "--max-time",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="End --calibrate or --held after this time, with the part that is done, instead of prove.total_seconds.",
)
@prints_report
def command(guard: Invocation, /, form: str, prove_command: str | None, **given: Any) -> int:
    """Prove that committed work passes the project's own checks, and those that were there before.

    Guard runs the command on a clean checkout of HEAD, outside the work tree. If tests changed, it also runs the
    tests of the baseline on the new code; if something fails, it looks whether that failed before. Nothing of the
    project changes: neither work tree, nor index, refs, stash or config.

    The command runs the agent's code with your rights, as it does when you run the tests yourself. Proven means: by
    your checks, and by those that were there before; no more.

    `--calibrate` judges the repository's own history instead, and records nothing: it tells how many honest commits the
    proof would have refuted, sent to a review, or could not judge, what it costs, and which settings would suit better.
    Its exit code is 0, whatever it finds; Ctrl-C prints the part that is done.

    `--held` tells how many of the changed lines of code a test holds: guard takes back each hunk on its own, and what
    was only added block by block, and runs the tests that came with it or name its file, then the others. Its exit code
    is 0, whatever it finds, and 1 if the tests are not green to begin with.

    Exit code 0 if the work is proven, or needs a person's review because tests were rewritten; 17 if it is refuted; 1
    if it can be neither proven nor refuted.
    """
    from guard.prove.prove import accept, count_uncommitted, explain, prove
    from guard.prove.work import ProveTerms
    from guard.snapshots.last_resort import save_before_abort

    explains, accepted = given.pop("explain"), given.pop("accept")
    receipt, checked = given.pop("receipt"), given.pop("check_receipt")
    calibrated, held, max_time = given.pop("calibrate"), given.pop("held"), given.pop("max_time")
    named = {} if prove_command is None else {"prove.command": prove_command, "prove.check": ()}
    terms = ProveTerms(**given, flags=named)
    if calibrated is not None or held:
        _refuse_beside(held, calibrated, terms, explains or accepted or receipt or checked)
        return _calibrate(guard, form, terms, calibrated, max_time)
    if max_time is not None:
        raise WrongUsage("--max-time is for --calibrate and --held", "leave it out")
    if accepted is not None:
        _refuse_together("--accept", explains or named or receipt or checked or any(given.values()))
        guard.output.verdict(accept(guard, accepted), form, _accept_text)
        return 0
    if checked is not None:
        from guard.prove.receipt import check_receipt

        _refuse_together("--check-receipt", explains or named or receipt or any(given.values()))
        found = check_receipt(guard, checked)
        guard.output.verdict(found, form, _receipt_text)
        return 0 if found.holds else 1
    if explains:
        guard.output.document(explain(guard, terms), form, _explain_text)
        return 0
    if receipt is not None:
        from guard.prove.receipt import refuse_unwritable, write_receipt

        refuse_unwritable(receipt)
    if terms.head is None:
        left = count_uncommitted(guard)
        if left:
            guard.output.warn(f"not part of the proof: {plural(left, 'uncommitted file')}")
    with save_before_abort(guard):
        report = prove(guard, terms)
    if receipt is not None:
        write_receipt(report, receipt)
    guard.output.verdict(report, form, _text)
    return EXIT_OF_PROOF[report.result]


def _calibrate(
    guard: Invocation, form: str, terms: "ProveTerms", commits: int | None, max_time: float | None
) -> int:
    if commits is None:
        return _hold(guard, form, terms, max_time)
    from guard.core.prove.calibration import calibration_lines
    from guard.prove.calibrate import calibrate

    report = calibrate(guard, terms, commits, max_time)
    guard.output.verdict(report, form, lambda one: "\n".join(calibration_lines(one)))
    return Interrupted.exit_code if report.ended == "interrupted" else 0


def _hold(guard: Invocation, form: str, terms: "ProveTerms", max_time: float | None) -> int:
    from guard.core.prove.hunks import held_lines
    from guard.prove.take_back import find_held

    report = find_held(guard, terms, max_time)
    guard.output.verdict(report, form, lambda one: "\n".join(held_lines(one)))
    return {"interrupted": Interrupted.exit_code, "unverifiable": 1}.get(report.ended, 0)


def _refuse_beside(held: bool, calibrated: int | None, terms: "ProveTerms", others: object) -> None:
    option, base = ("--held", "--baseline, ") if held else ("--calibrate", "")
    if others or (calibrated is not None and (held or terms.baseline)):
        raise WrongUsage(
            f"{option} takes only {base}--command, --check, --head, --no-cache and --max-time beside it",
            f"`guard prove {option}` needs nothing else",
        )


def _refuse_together(option: str, others: object) -> None:
    if others:
        raise WrongUsage(f"{option} takes no other options", f"call `guard prove {option}` alone")


def _text(report: ProofReport) -> str:
    word = colour(report.result, _COLOURS[report.result])
    lines = [f"{word}: {report.reason}", f"  {report.detail}"]
    lines += _names(report)
    if len(report.checks) > 1:
        lines += [f"  {_check_line(check)}" for check in report.checks]
    lines += [f"  {line}" for line in cell_lines(report)]
    lines += [f"  note: {note}" for note in report.notes]
    if report.check is not None:
        lines.append(f"  show it again: {command_to_repeat(report)}")
    if report.result != "refuted" and any(each.result == "review" for each in report.checks):
        lines.append(f"  if these changes are right: guard prove --accept {report.head[:12]}")
    if report.tail and report.result != "proven":
        lines += [
            "  last lines of what failed:",
            *(f"    {line}" for line in report.tail.splitlines()[-20:]),
        ]
    return "\n".join(lines)


def _check_line(check: CheckProof) -> str:
    if check.result is None:
        return f"{check.name}: not run, {check.detail}"
    word = colour(check.result, _COLOURS[check.result])
    return f"{check.name}: {word}, {check.detail} ({check.seconds:.1f} s)"


def _names(report: Proof) -> Iterator[str]:
    for said, names in named_tests(report):
        for name in names[:_MOST_LINES]:
            yield f"  {said}: {name}"
        if len(names) > _MOST_LINES:
            yield f"  {said}: and {plural(len(names) - _MOST_LINES, 'more test')}"


def _accept_text(report: AcceptReport) -> str:
    lines = [f"accepted: the changes of tests up to {report.head[:12]}"]
    lines += [f"  removed or skipped: {name}" for name in report.weakened]
    lines += [f"  rewritten: {name}" for name in report.rewritten]
    if report.result is None:
        lines.append("  no proof of this commit is known, so it is not known what that is")
    lines.append("  guard prove: prove the work again, without raising them")
    return "\n".join(lines)


def _receipt_text(report: ReceiptReport) -> str:
    word = colour("holds", "ok") if report.holds else colour("does not hold", "problem")
    return f"{word}: {report.detail}"


def _explain_text(report: ProofPlan) -> str:
    lines = [f"head: {report.head}"]
    for check in report.checks:
        lines += [
            f"check {check.name}: {escape(check.command)}",
            f"  failures are held against: {check.baseline or 'nothing, it is the first commit'}",
        ]
        if check.kind == "tests":
            lines.append(f"  tests are held against: {check.tests_baseline or 'nothing'}")
        for title, names in (
            ("tests changed", check.changed_tests),
            ("tests added", check.new_tests),
            ("data and helpers of tests", check.other_tests),
            ("steers the tests", check.steering),
            ("dependencies", check.dependencies),
            ("code", check.code),
        ):
            lines += (
                [f"  {title}:", *(f"    {escape(name)}" for name in names[:50])] if names else []
            )
            if len(names) > 50:
                lines.append(f"    and {plural(len(names) - 50, 'more file')}")
        if check.is_concerned:
            lines += ["  would run:", *(f"    {escape(line)}" for line in check.would_run)]
        else:
            lines.append("  would not run: the change touches none of its paths")
    return "\n".join(lines)
