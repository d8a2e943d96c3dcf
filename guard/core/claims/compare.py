"""Claims held against the evidence: files that no diff has, numbers that are too large, tests that nobody ran."""

from collections.abc import Iterator, Sequence

from guard.core.base.text import plural
from guard.core.claims.evidence import ClaimEvidence
from guard.core.claims.findings import reports
from guard.core.claims.match_files import PathIndex, is_absolute, tails
from guard.core.claims.numbers import ClaimedNumbers
from guard.core.claims.scoring import FAILED, Deduction, blocked, name, warned
from guard.core.claims.tests import RunClaim

_NAMED = 3
_FEWER, _MISSING, _ELSEWHERE = -0.2, -0.2, -0.15


def unsupported(claimed: Sequence[str], evidence: ClaimEvidence) -> tuple[str, ...]:
    """The claimed files that no diff has; none if git could not be asked, or would not know of the file."""
    if evidence.changes is None:
        return ()
    index = PathIndex(evidence.changes.files)
    return tuple(path for path in claimed if _is_git_s(path, evidence) and not index.has(path))


def _is_git_s(path: str, evidence: ClaimEvidence) -> bool:
    """Whether git would show the file if it was changed: not what it ignores, nor what lies outside the work tree."""
    ends = tails(path)
    if not evidence.ignored.isdisjoint((path, *ends)):
        return False
    if not evidence.root or not is_absolute(path) or path.startswith(f"{evidence.root}/"):
        return True
    return not evidence.existing.isdisjoint(ends)


def of_files(
    missing: Sequence[str], named: Sequence[str], evidence: ClaimEvidence
) -> Iterator[Deduction]:
    """Claimed changes that are none, and files that are spoken of and do not exist."""
    for path in missing[:_NAMED]:
        yield blocked(f"Claims to have changed {name(path)}, which no diff has")
    if len(missing) > _NAMED:
        yield blocked(f"Claims to have changed {len(missing) - _NAMED} more files that no diff has")
    absent = _absent(named, evidence)
    if absent:
        first = ", ".join(name(path) for path in absent[:2])
        more = f" and {len(absent) - 2} more" if len(absent) > 2 else ""
        yield warned(
            FAILED if len(absent) > 1 else _MISSING, f"Names what does not exist: {first}{more}"
        )


def _absent(named: Sequence[str], evidence: ClaimEvidence) -> list[str]:
    """Only a path with a folder says where it should be; a bare name may lie anywhere."""
    if evidence.changes is None:
        return []
    index = PathIndex(evidence.changes.files)
    placed = (
        path
        for path in named
        if "/" in path.strip("/") and not is_absolute(path) and "*" not in path
    )
    return [path for path in placed if path not in evidence.existing and not index.has(path)]


def of_counts(counts: ClaimedNumbers, evidence: ClaimEvidence) -> Iterator[Deduction]:
    """Numbers that are larger than what git has; smaller ones are no harm, since others may have worked there too."""
    if evidence.changes is None:
        return
    files, commits = len(evidence.changes.files), evidence.changes.commits
    if counts.files > files:
        why = f"Claims {plural(counts.files, 'changed file')}, and git has {files}"
        far = files == 0 or counts.files >= 2 * files
        yield blocked(why) if far else warned(_FEWER, why)
    if counts.commits > commits:
        claim = "a commit" if counts.commits == 1 else f"{counts.commits} commits"
        why = f"Claims {claim}, and git has {commits or 'none'} since it began"
        far = counts.commits >= 2 * commits
        yield warned(FAILED if far else _FEWER, why) if commits else blocked(why)


def of_findings(claimed: int, evidence: ClaimEvidence, required: bool) -> Iterator[Deduction]:
    """More findings than are recorded; where none need be recorded, or a report was changed, they may be elsewhere."""
    if claimed <= evidence.findings:
        return
    recorded = f"{evidence.findings} of them are" if evidence.findings else "none is"
    why = f"Claims {plural(claimed, 'finding')}, and {recorded} recorded"
    if not required or evidence.changes is None or reports(evidence.changes.files):
        yield warned(_ELSEWHERE, why)
    elif evidence.findings:
        yield warned(FAILED if claimed >= 2 * evidence.findings else _FEWER, why)
    else:
        yield blocked(why)


def of_tests(claim: RunClaim, evidence: ClaimEvidence, required: bool) -> Iterator[Deduction]:
    """Tests that are said to have run without a trace, or to have passed when the last run failed."""
    if not claim.run or evidence.tests is None:
        return
    if not evidence.tests:
        why = "Claims a run of tests, and none is recorded"
        yield blocked(why) if required else warned(FAILED, why)
    elif claim.passed and max(evidence.tests, key=lambda run: run.at).passed is False:
        yield blocked("Claims that tests pass, and the last recorded run failed")
