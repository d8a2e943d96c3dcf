"""The second layer: what agents of a type must have to show for themselves."""

from collections.abc import Iterator

from guard.core.base.text import plural
from guard.core.claims.evidence import ClaimEvidence
from guard.core.claims.findings import reports
from guard.core.claims.policy import ClaimPolicy, Requirement
from guard.core.claims.scoring import FAILED, Deduction, blocked, name, score_lines, warned
from guard.core.events.validation import TypeSpecific

_IN_A_FILE = -0.1


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
    written = reports(evidence.changes.files) if evidence.changes else ()
    if written:
        yield warned(_IN_A_FILE, f"{why}; {name(written[0])} may hold some")
    else:
        yield warned(FAILED, why)


def _of_tests(evidence: ClaimEvidence, required: int, tests: int | None) -> Iterator[Deduction]:
    if _enough(tests, required) is False:
        why = f"Only {plural(tests or 0, 'recorded test run')} - {_who(evidence)}: at least {required}"
        yield warned(FAILED, why)
