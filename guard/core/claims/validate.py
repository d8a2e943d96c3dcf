"""Validate a claim of completion in four layers; the confidence is the sum of explained deductions."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from guard.core.base.text import plural
from guard.core.claims.compare import (
    compare_counts,
    compare_files,
    compare_tests,
    judge_needs,
    judge_proof,
    judge_substance,
    unsupported_files,
)
from guard.core.claims.completion_validation import (
    CompletionValidation,
    EvidenceSummary,
    MessageValidation,
    ProgressPattern,
    Speed,
    TypeSpecific,
    WorkspaceEvidence,
)
from guard.core.claims.deduction import (
    FAILED,
    Deduction,
    blocking_issue,
    score_lines,
    short_name,
    short_names,
    warning,
)
from guard.core.claims.evidence import ClaimEvidence
from guard.core.claims.files import NamedFiles, claimed_files, named_paths
from guard.core.claims.needs import needs_of
from guard.core.claims.numbers import ClaimedNumbers, claimed_counts, report_files
from guard.core.claims.phrases import Phrase, Sort, evidence_words, judged_texts, suspicious_phrases
from guard.core.claims.settings import ClaimsSettings, Requirement, split_phrases
from guard.core.claims.tests import RunClaim, claimed_tests

BELIEVED = 0.7
"""A claim is believed from this confidence on, unless it has a blocking issue."""
_UNMEASURED, _NOTHING = -0.05, -0.15
_CEILING = 0.45
"""A claim without any evidence gets no more."""
_IN_A_FILE = -0.1
_SILENT, _SHORT, _NO_EVIDENCE, _VAGUE = -0.25, -0.2, -0.15, -0.2
_LONG = 240
"""A message of this length is not vague, even if it names nothing."""
_COSTS: dict[Sort, float] = {"unfinished": -0.35, "open": -0.2, "hedge": -0.15, "boast": -0.2}
_TITLES = {
    "workspace_evidence": "workspace evidence",
    "type_specific": "agent type",
    "message_validation": "message",
    "progress_pattern": "progress pattern",
}
_SUSPICIONS: dict[Sort, str] = {
    "unfinished": "says that work is left",
    "open": "says that something is open",
    "hedge": "is not sure",
    "boast": "boasts",
}
_IMPLAUSIBLE_SECONDS = 5
_FAST, _FEW, _NEVER_WORKING = -0.15, -0.15, -0.05


def validate(evidence: ClaimEvidence, settings: ClaimsSettings) -> CompletionValidation:
    specific, of_type = type_layer(evidence, settings)
    message, of_message = message_layer(evidence, settings)
    progress, of_progress = progress_layer(evidence, settings)
    others = sum(deduction.points for deduction in (*of_type, *of_message, *of_progress))
    workspace, of_workspace = workspace_layer(evidence, others)
    deductions = [*of_workspace, *of_type, *of_message, *of_progress]
    return CompletionValidation(
        confidence=_confidence(deductions),
        warnings=tuple(deduction.why for deduction in deductions if not deduction.blocking),
        blocking_issues=tuple(deduction.why for deduction in deductions if deduction.blocking),
        evidence_summary=EvidenceSummary(
            workspace_evidence=workspace,
            type_specific=specific,
            message_validation=message,
            progress_pattern=progress,
        ),
        validated_at=evidence.at,
    )


def _confidence(deductions: list[Deduction]) -> float:
    return round(min(1.0, max(0.0, 1 + sum(deduction.points for deduction in deductions))), 2)


def needs_person(evidence: ClaimEvidence) -> bool:
    """Tell whether the agent claims completion, while it asks or says that it could not, and has done nothing."""
    if evidence.silent or evidence.has_work:
        return False
    return needs_of(evidence) is not None


def is_believed(validation: CompletionValidation) -> bool:
    return validation.confidence >= BELIEVED and not validation.blocking_issues


def explain_score(validation: CompletionValidation) -> list[str]:
    """Return the score line by line: the start, each deduction with its layer, the rest."""
    lines = [
        f"{line.points:+.2f}  {_TITLES[name]}: {line.why}"
        for name, layer in validation.evidence_summary
        for line in layer.score
    ]
    total = 1 + sum(line.points for line in validation.score())
    left = f"{validation.confidence:5.2f}  confidence"
    return [" 1.00  start", *lines, left if total >= 0 else f"{left} (the sum is {total:.2f})"]


def workspace_layer(
    evidence: ClaimEvidence, others: float = 0.0
) -> tuple[WorkspaceEvidence, list[Deduction]]:
    """Return layer 1: what git and the log have of the work; `others` are the points of the other layers."""
    deductions = list(_of_workspace(evidence))
    if not evidence.has_work and not evidence.tests:
        left = 1 + others + sum(deduction.points for deduction in deductions)
        points = round(min(_NOTHING, _CEILING - left), 2)
        deductions.append(warning(max(points, -1.0), _nothing_recorded(evidence)))
    changes, tests = evidence.changes, evidence.tests
    layer = WorkspaceEvidence(
        score=score_lines(deductions),
        modified_files_count=None if changes is None else len(changes.files),
        commits_count=None if changes is None else changes.commits,
        progress_entries_count=evidence.updates,
        findings_count=evidence.findings,
        test_runs_count=None if tests is None else len(tests),
        modified_files=short_names(sorted(changes.files)) if changes else (),
        unmeasured=None if changes is not None else short_name(_unmeasured_reason(evidence)),
    )
    return layer, deductions


def _of_workspace(evidence: ClaimEvidence) -> Iterator[Deduction]:
    yield from judge_proof(evidence)
    changes = evidence.changes
    if changes is None:
        why = short_name(_unmeasured_reason(evidence))
        yield warning(_UNMEASURED, f"Changes could not be measured: {why}")
        return
    yield from judge_substance(changes.substance, evidence)


def _nothing_recorded(evidence: ClaimEvidence) -> str:
    missing = ("no changed file", "no commit") if evidence.changes is not None else ()
    tests = ("no test run",) if evidence.tests is not None else ()
    why = f"Nothing is recorded: {', '.join((*missing, 'no finding', *tests))}"
    uncounted = evidence.changes.uncounted if evidence.changes else ()
    return f"{why} ({', '.join(uncounted)}: not counted)" if uncounted else why


def _unmeasured_reason(evidence: ClaimEvidence) -> str:
    return evidence.unmeasured or "guard does not know where the agent began"


def type_layer(
    evidence: ClaimEvidence, settings: ClaimsSettings
) -> tuple[TypeSpecific, list[Deduction]]:
    """Return layer 2: whether the agent has what its type requires; None where nothing is required or known."""
    required = settings.requirement(evidence.agent_type)
    files = None if evidence.changes is None else len(evidence.changes.files)
    tests = None if evidence.tests is None else len(evidence.tests)
    deductions = list(_of_type(evidence, required, files, tests))
    layer = TypeSpecific(
        score=score_lines(deductions),
        agent_type=short_name(evidence.agent_type),
        files_ok=_is_enough(files, required.files),
        findings_ok=_is_enough(evidence.findings, required.findings),
        tests_ok=_is_enough(tests, required.tests),
    )
    return layer, deductions


def _is_enough(count: int | None, required: int) -> bool | None:
    return None if not required or count is None else count >= required


def _of_type(
    evidence: ClaimEvidence, required: Requirement, files: int | None, tests: int | None
) -> Iterator[Deduction]:
    def explain_shortage(count: int, what: str, least: int) -> str:
        kind = short_name(evidence.agent_type)
        return f"Only {plural(count, what)} - expected of type {kind}: at least {least}"

    if _is_enough(files, required.files) is False:
        why = explain_shortage(files or 0, "modified file", required.files)
        yield warning(FAILED, why) if files else blocking_issue(why)
    if _is_enough(evidence.findings, required.findings) is False:
        why = explain_shortage(evidence.findings, "recorded finding", required.findings)
        written = report_files(evidence.changes.files) if evidence.changes else ()
        found = f"{why}; {short_name(written[0])} may hold some" if written else why
        yield warning(_IN_A_FILE if written else FAILED, found)
    if _is_enough(tests, required.tests) is False:
        yield warning(FAILED, explain_shortage(tests or 0, "recorded test run", required.tests))


class MessageFacts(NamedTuple):
    evidence: tuple[str, ...] = ()
    phrases: tuple[Phrase, ...] = ()
    files: NamedFiles = NamedFiles((), (), ())
    counts: ClaimedNumbers = ClaimedNumbers(0, 0)
    tests: RunClaim = RunClaim(run=False, passed=False)


def message_layer(
    evidence: ClaimEvidence, settings: ClaimsSettings
) -> tuple[MessageValidation, list[Deduction]]:
    """Return layer 3: the wording of the message, and its claims that the evidence contradicts or does not support."""
    facts = MessageFacts() if evidence.silent else _read_message(evidence.message, settings)
    missing = unsupported_files(facts.files.changed, evidence)
    deductions = list(_of_message(facts, missing, evidence, settings))
    known = facts.tests.run and evidence.tests is not None
    layer = MessageValidation(
        score=score_lines(deductions),
        length=len(evidence.message),
        evidence_keywords_found=short_names(facts.evidence),
        suspicious_phrases_found=short_names(phrase.name for phrase in facts.phrases),
        claimed_files=short_names(facts.files.changed),
        unsupported_files=short_names(missing),
        claimed_tests=facts.tests.run,
        tests_recorded=bool(evidence.tests) if known else None,
    )
    return layer, deductions


def _read_message(message: str, settings: ClaimsSettings) -> MessageFacts:
    texts = judged_texts(message)
    return MessageFacts(
        evidence_words(texts, split_phrases(settings.evidence_words)),
        suspicious_phrases(texts, split_phrases(settings.suspicious_phrases)),
        claimed_files(message),
        claimed_counts(message),
        claimed_tests(message),
    )


def _of_message(
    facts: MessageFacts, missing: Sequence[str], evidence: ClaimEvidence, settings: ClaimsSettings
) -> Iterator[Deduction]:
    if evidence.silent:
        yield warning(_SILENT, "The agent ended without a claim that its work is complete")
        return
    yield from judge_needs(needs_of(evidence), evidence)
    length = len(evidence.message.strip())
    if length < settings.min_message_length:
        least = f"expected at least {settings.min_message_length}"
        yield warning(_SHORT, f"The message has only {plural(length, 'character')} - {least}")
    if not facts.evidence:
        yield warning(
            _NO_EVIDENCE, "No word of evidence in the message, such as created, fixed or verified"
        )
    if _is_vague(evidence.message):
        yield warning(_VAGUE, "The message names nothing: no file, no number, no command")
    for phrase in facts.phrases:
        why = f"The message {_SUSPICIONS[phrase.sort]}: {phrase.name}"
        yield warning(_COSTS[phrase.sort], why)
    yield from compare_files(missing, facts.files.named, evidence)
    yield from compare_counts(facts.counts, evidence)
    yield from compare_tests(facts.tests, evidence)


def _is_vague(message: str) -> bool:
    concrete = set("`0123456789") & set(message[:_LONG]) or named_paths(message[:_LONG])
    return len(message) < _LONG and not concrete


def progress_layer(
    evidence: ClaimEvidence, settings: ClaimsSettings
) -> tuple[ProgressPattern, list[Deduction]]:
    """Return layer 4: how long the agent took, and how often it reported."""
    elapsed = (evidence.at - evidence.spawned_at).total_seconds()
    speed = _judge_speed(elapsed, evidence, settings)
    deductions = [*_of_time(speed, elapsed, settings), *_of_updates(evidence, settings)]
    layer = ProgressPattern(
        score=score_lines(deductions),
        speed=speed,
        elapsed_seconds=max(0.0, elapsed),
        updates_count=evidence.updates,
        working_updates_count=evidence.working_updates,
    )
    return layer, deductions


def _judge_speed(elapsed: float, evidence: ClaimEvidence, settings: ClaimsSettings) -> Speed:
    files = len(evidence.changes.files) if evidence.changes else 0
    # A negative time comes from a clock that was set back and proves nothing.
    if elapsed < 0 or elapsed >= settings.min_seconds:
        return "reasonable"
    return "implausible" if elapsed < max(_IMPLAUSIBLE_SECONDS, files) else "fast"


def _of_time(speed: Speed, elapsed: float, settings: ClaimsSettings) -> Iterator[Deduction]:
    if speed != "reasonable":
        least = f"expected at least {settings.min_seconds:g} s"
        yield warning(
            FAILED if speed == "implausible" else _FAST, f"Took only {elapsed:.1f} s - {least}"
        )


def _of_updates(evidence: ClaimEvidence, settings: ClaimsSettings) -> Iterator[Deduction]:
    # Tool calls that guard sees show the progress better than reports do.
    if (evidence.calls or 0) >= max(1, settings.min_updates):
        return
    if evidence.updates < settings.min_updates:
        updates = plural(evidence.updates, "progress update")
        yield warning(_FEW, f"Only {updates} - expected at least {settings.min_updates}")
    if evidence.updates and not evidence.working_updates and settings.min_updates:
        yield warning(_NEVER_WORKING, "No update said that it was at work")
