"""The third layer: what the message says, and what of it is not so."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from guard.core.base.text import plural
from guard.core.claims.compare import of_counts, of_files, of_findings, of_tests, unsupported
from guard.core.claims.evidence import ClaimEvidence
from guard.core.claims.files import NamedFiles, files_in, named_paths
from guard.core.claims.findings import findings_claimed
from guard.core.claims.numbers import ClaimedNumbers, counts_claimed
from guard.core.claims.phrase_table import Sort
from guard.core.claims.phrases import Phrase, evidence_words, judged, suspicious
from guard.core.claims.policy import ClaimPolicy
from guard.core.claims.scoring import Deduction, names, score_lines, warned
from guard.core.claims.tests import RunClaim, tests_claimed
from guard.core.events.validation import MessageValidation

_SILENT, _SHORT, _NO_EVIDENCE, _VAGUE = -0.25, -0.2, -0.15, -0.2
_LONG = 240
"""So long a message has told something, even if it names nothing."""
_COSTS: dict[Sort, float] = {"unfinished": -0.35, "open": -0.2, "hedge": -0.15, "boast": -0.2}


class MessageFacts(NamedTuple):
    """What a message says."""

    evidence: tuple[str, ...] = ()
    phrases: tuple[Phrase, ...] = ()
    files: NamedFiles = NamedFiles((), (), ())
    counts: ClaimedNumbers = ClaimedNumbers(0, 0)
    tests: RunClaim = RunClaim(run=False, passed=False)
    findings: int = 0


def message_layer(
    evidence: ClaimEvidence, policy: ClaimPolicy
) -> tuple[MessageValidation, list[Deduction]]:
    """The wording of the message, and every claim in it that the evidence tells to be false or does not bear out."""
    said = MessageFacts() if evidence.silent else _said(evidence.message, policy)
    missing = unsupported(said.files.changed, evidence)
    deductions = list(
        _silence() if evidence.silent else _deductions(said, missing, evidence, policy)
    )
    known = said.tests.run and evidence.tests is not None
    layer = MessageValidation(
        score=score_lines(deductions),
        length=len(evidence.message),
        evidence_keywords_found=names(said.evidence),
        suspicious_phrases_found=names(phrase.name for phrase in said.phrases),
        claimed_files=names(said.files.changed),
        unsupported_files=names(missing),
        claimed_tests=said.tests.run,
        tests_recorded=bool(evidence.tests) if known else None,
    )
    return layer, deductions


def _said(message: str, policy: ClaimPolicy) -> MessageFacts:
    texts = judged(message)
    return MessageFacts(
        evidence_words(texts, policy.evidence_words),
        suspicious(texts, policy.suspicious_phrases),
        files_in(message),
        counts_claimed(message),
        tests_claimed(message),
        findings_claimed(message),
    )


def _silence() -> Iterator[Deduction]:
    yield warned(
        _SILENT, "Nobody claimed that the work is complete: the agent was found to have ended"
    )


def _deductions(
    said: MessageFacts, missing: Sequence[str], evidence: ClaimEvidence, policy: ClaimPolicy
) -> Iterator[Deduction]:
    length = len(evidence.message.strip())
    if length < policy.min_message_length:
        least = f"expected at least {policy.min_message_length}"
        yield warned(_SHORT, f"The message has only {plural(length, 'character')} - {least}")
    if not said.evidence:
        yield warned(
            _NO_EVIDENCE, "No word of evidence in the message, such as created, fixed or verified"
        )
    if _is_vague(evidence.message):
        yield warned(_VAGUE, "The message names nothing: no file, no number, no command")
    for phrase in said.phrases:
        yield warned(_COSTS[phrase.sort], _suspicion(phrase))
    yield from of_files(missing, said.files.named, evidence)
    yield from of_counts(said.counts, evidence)
    required = policy.required(evidence.agent_type)
    yield from of_tests(said.tests, evidence, required.tests > 0)
    yield from of_findings(said.findings, evidence, required.findings > 0)


def _is_vague(message: str) -> bool:
    concrete = set("`0123456789") & set(message[:_LONG]) or named_paths(message[:_LONG])
    return len(message) < _LONG and not concrete


def _suspicion(phrase: Phrase) -> str:
    told = {
        "unfinished": "says that work is left",
        "open": "says that something is open",
        "hedge": "is not sure",
        "boast": "boasts",
    }
    return f"The message {told[phrase.sort]}: {phrase.name}"
