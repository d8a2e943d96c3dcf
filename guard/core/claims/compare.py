"""Compare the claims of a message with the evidence: files, numbers, findings and test runs."""

import re
from collections.abc import Iterator, Sequence

from guard.core.base.text import plural
from guard.core.claims.deduction import FAILED, Deduction, blocking_issue, short_name, warning
from guard.core.claims.evidence import ClaimEvidence
from guard.core.claims.file_names import PathIndex, is_absolute, path_tails
from guard.core.claims.needs import Need
from guard.core.claims.numbers import ClaimedNumbers, report_files
from guard.core.claims.substance import Substance
from guard.core.claims.tests import RunClaim

_NAMED = 3
_FEWER, _MISSING, _ELSEWHERE = -0.2, -0.2, -0.15
_NEEDS: dict[Need, str] = {
    "question": "asks a person",
    "unable": "says that the agent could not do it",
}


def unsupported_files(claimed: Sequence[str], evidence: ClaimEvidence) -> tuple[str, ...]:
    """Return the claimed files that no diff has: none if git was not asked; files that git would not show are left out."""
    if evidence.changes is None:
        return ()
    index = PathIndex(evidence.changes.files)
    return tuple(
        path for path in claimed if _is_visible_to_git(path, evidence) and not index.has(path)
    )


def _is_visible_to_git(path: str, evidence: ClaimEvidence) -> bool:
    # Git shows no change to a file that is ignored or outside the work tree.
    ends = path_tails(path)
    if not evidence.ignored.isdisjoint((path, *ends)):
        return False
    if not evidence.root or not is_absolute(path) or path.startswith(f"{evidence.root}/"):
        return True
    return not evidence.existing.isdisjoint(ends)


def compare_files(
    missing: Sequence[str], named: Sequence[str], evidence: ClaimEvidence
) -> Iterator[Deduction]:
    for path in missing[:_NAMED]:
        yield blocking_issue(f"Claims to have changed {short_name(path)}, which no diff has")
    if len(missing) > _NAMED:
        yield blocking_issue(
            f"Claims to have changed {len(missing) - _NAMED} more files that no diff has"
        )
    absent = _absent_files(named, evidence)
    if absent:
        first = ", ".join(short_name(path) for path in absent[:2])
        more = f" and {len(absent) - 2} more" if len(absent) > 2 else ""
        yield warning(
            FAILED if len(absent) > 1 else _MISSING, f"Names what does not exist: {first}{more}"
        )


def _absent_files(named: Sequence[str], evidence: ClaimEvidence) -> list[str]:
    if evidence.changes is None:
        return []
    index = PathIndex(evidence.changes.files)
    # Only a path with a folder says where the file should be; a bare name may lie anywhere.
    placed = (
        path
        for path in named
        if "/" in path.strip("/") and not is_absolute(path) and "*" not in path
    )
    return [path for path in placed if path not in evidence.existing and not index.has(path)]


def compare_counts(counts: ClaimedNumbers, evidence: ClaimEvidence) -> Iterator[Deduction]:
    """Yield a deduction for each number above what git has; a lower one is harmless, because others may work there too."""
    if evidence.changes is None:
        return
    files, commits = len(evidence.changes.files), evidence.changes.commits
    if counts.files > files:
        why = f"Claims {plural(counts.files, 'changed file')}, and git has {files}"
        far = files == 0 or counts.files >= 2 * files
        yield blocking_issue(why) if far else warning(_FEWER, why)
    if counts.commits > commits:
        claim = "a commit" if counts.commits == 1 else f"{counts.commits} commits"
        why = f"Claims {claim}, and git has {commits or 'none'} since it began"
        far = counts.commits >= 2 * commits
        yield warning(FAILED if far else _FEWER, why) if commits else blocking_issue(why)


def compare_findings(claimed: int, evidence: ClaimEvidence, required: bool) -> Iterator[Deduction]:
    if claimed <= evidence.findings:
        return
    recorded = f"{evidence.findings} of them are" if evidence.findings else "none is"
    why = f"Claims {plural(claimed, 'finding')}, and {recorded} recorded"
    # Where none have to be recorded, or a report file was changed, the findings may be written elsewhere.
    if not required or evidence.changes is None or report_files(evidence.changes.files):
        yield warning(_ELSEWHERE, why)
    elif evidence.findings:
        yield warning(FAILED if claimed >= 2 * evidence.findings else _FEWER, why)
    else:
        yield blocking_issue(why)


def compare_tests(claim: RunClaim, evidence: ClaimEvidence) -> Iterator[Deduction]:
    if not claim.run or evidence.tests is None:
        return
    if not evidence.tests:
        why = "Claims a run of tests, and none is recorded"
        # A run that leaves no trace escapes guard, unless it sees the agent's tool calls.
        yield blocking_issue(why) if evidence.calls is not None else warning(FAILED, why)
    elif claim.passed and max(evidence.tests, key=lambda run: run.at).passed is False:
        yield blocking_issue("Claims that tests pass, and the last recorded run failed")


_ABOUT_BLANKS = re.compile(
    r"\b(?:re)?format|\bwhite-?space|\bindent|\bblank|\bstyle|\blint|\bprettier|\bline (?:ends|endings|breaks)|\btabs?\b",
    re.IGNORECASE,
)
_ABOUT_TESTS = re.compile(
    r"(?:remov|delet|dropp?|skip|disabl|xfail|replac|merg|mov|consolidat|parametri|rewr[io]t|ignor|obsolete)[^.!?\n]{0,60}"
    r"\b(?:tests?|specs?|suites?)\b|\b(?:tests?|specs?|suites?)\b[^.!?\n]{0,40}"
    r"(?:remov|delet|dropp|skipp|disabl|xfail|replac|merg|mov|consolidat|parametri|rewr[io]t|ignor|obsolete)",
    re.IGNORECASE,
)


def judge_substance(found: Substance, message: str) -> Iterator[Deduction]:
    """Yield what speaks against changes that are there; what the message says openly costs less."""
    if found.only_blanks and not _ABOUT_BLANKS.search(message):
        yield blocking_issue("Only blanks were changed, or empty files made")
    gone = [
        f"{plural(count, 'test')} {what}"
        for count, what in ((found.tests_removed, "removed"), (found.tests_skipped, "skipped"))
        if count
    ]
    if gone:
        why = f"The changes have {' and '.join(gone)}"
        is_told = _ABOUT_TESTS.search(message) is not None
        yield (
            warning(_FEWER, why) if is_told else blocking_issue(f"{why}, and the message is silent")
        )
    if found.stubs:
        why = f"New functions without a body: {found.stubs} of {found.functions}"
        yield blocking_issue(why) if 2 * found.stubs >= found.functions else warning(_FEWER, why)


def judge_needs(need: Need | None, evidence: ClaimEvidence) -> Iterator[Deduction]:
    if need is None:
        return
    if evidence.has_work:
        # Beside work that is done, what could not be done may be a small part of it.
        yield warning(FAILED if need == "question" else _FEWER, f"The message {_NEEDS[need]}")
    else:
        yield blocking_issue(f"The message {_NEEDS[need]}, and nothing is done")
