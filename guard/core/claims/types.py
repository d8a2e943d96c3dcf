"""The second layer: what agents of a type must have to show for themselves."""

import re
from collections.abc import Iterator

from guard.core.claims.document import TypeSpecific
from guard.core.claims.evidence import ClaimEvidence
from guard.core.claims.files import named_paths
from guard.core.claims.policy import ClaimPolicy, Requirement
from guard.core.claims.scoring import FAILED, Deduction, blocked, name, score_lines, warned
from guard.core.text import plural

_ONLY_TOLD = -0.1
_FINDING = re.compile(
    r"\b(?:root cause|because|caused by|due to|vulnerab|bug|bugs|issue|issues|pattern|patterns|finding|findings|race|leak"
    r"|missing|deadlock|bottleneck|regression|line \d|defect|problem|problems|never|unused|duplicate|slow|incorrect|wrong)"
)


def type_layer(
    evidence: ClaimEvidence, policy: ClaimPolicy
) -> tuple[TypeSpecific, list[Deduction]]:
    """What is required of this type, and whether it is there; null where nothing is required or known."""
    required = policy.required(evidence.agent_type)
    files = None if evidence.changes is None else len(evidence.changes.files)
    tests = None if evidence.tests is None else len(evidence.tests)
    deductions = [
        *_of_files(evidence, required.files, files),
        *_of_findings(evidence, required),
        *_of_tests(evidence, required.tests, tests),
    ]
    layer = TypeSpecific(
        score=score_lines(deductions),
        agent_type=name(evidence.agent_type),
        files_ok=_enough(files, required.files),
        findings_ok=_enough(evidence.findings, required.findings),
        tests_ok=_enough(tests, required.tests),
    )
    return layer, deductions


def _enough(there: int | None, required: int) -> bool | None:
    return None if not required or there is None else there >= required


def _who(evidence: ClaimEvidence) -> str:
    return f"expected of type {name(evidence.agent_type)}"


def _of_files(evidence: ClaimEvidence, required: int, files: int | None) -> Iterator[Deduction]:
    if _enough(files, required) is False:
        why = f"{plural(files or 0, 'modified file')} - {_who(evidence)}: at least {required}"
        yield warned(FAILED, f"Only {why}") if files else blocked(f"Only {why}")


def _of_findings(evidence: ClaimEvidence, required: Requirement) -> Iterator[Deduction]:
    if _enough(evidence.findings, required.findings) is not False:
        return
    why = f"Only {plural(evidence.findings, 'recorded finding')} - {_who(evidence)}: at least {required.findings}"
    told = not evidence.silent and tells_findings(evidence.message)
    yield warned(
        _ONLY_TOLD if told else FAILED, f"{why}; the message tells of some" if told else why
    )


def _of_tests(evidence: ClaimEvidence, required: int, tests: int | None) -> Iterator[Deduction]:
    if _enough(tests, required) is False:
        why = f"Only {plural(tests or 0, 'recorded test run')} - {_who(evidence)}: at least {required}"
        yield warned(FAILED, why)


def tells_findings(message: str) -> bool:
    """Whether a message tells something concrete that was found: what it is, and where or how many."""
    found = _FINDING.search(message.lower()) is not None
    return found and (bool(named_paths(message)) or re.search(r"\d", message) is not None)
