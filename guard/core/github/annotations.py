"""Make the annotations of a step: at most ten per level, because GitHub drops the rest."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from guard.core.base.text import plural, shorten
from guard.core.check.warnings import describe_secret
from guard.core.check.words import verdict_line
from guard.core.github.escape import command
from guard.core.github.report import StepReport
from guard.core.prove.report import Proof
from guard.core.prove.text import FAILING, named_tests, place_of

Level = Literal["error", "warning", "notice"]
MOST_OF_A_LEVEL = 10
_MOST_IN_A_MESSAGE = 1000
_TITLE = "guard"


class Annotation(NamedTuple):
    """One annotation; its path is relative to the checkout."""

    level: Level
    message: str
    path: str | None = None
    line: int = 1


def annotations(report: StepReport, *, fails: bool, folder: str = "") -> list[Annotation]:
    """Return the verdict, then the files that a person should look at.

    `folder` is the path of the work tree in the checkout.
    """
    verdict = verdict_line(report.status, report.reason, report.detail)
    level: Level = "error" if fails else "notice" if report.complete else "warning"
    if report.status == "begun" and not fails:
        return []
    found = [Annotation(level, verdict)]
    check = report.check
    if check is not None and check.proof is not None:
        found += _tests(check.proof, "error" if fails else "warning", folder)
    if check is not None:
        found += [
            Annotation(
                "warning", describe_secret(secret), f"{folder}{secret.path}", secret.line or 1
            )
            for secret in check.secrets
        ]
    if check is not None and check.rescue is not None:
        found += [
            Annotation("warning", f"held back: {held.why}", f"{folder}{held.path}")
            for held in check.rescue.held_back
        ]
    if check is not None and not check.rescued:
        names = check.uncommitted.names
        found += [Annotation("notice", "left uncommitted", f"{folder}{name}") for name in names]
    return found


def _tests(proof: Proof, level: Level, folder: str) -> Iterator[Annotation]:
    """Return an annotation for each test because of which the work is not proven."""
    for said, names in named_tests(proof):
        if said not in FAILING:
            continue
        for name in names:
            place = place_of(name, proof)
            if place is None:
                yield Annotation(level, f"{said}: {name}")
            else:
                yield Annotation(level, f"{said}: {name}", f"{folder}{place[0]}", place[1])


def lines(found: list[Annotation]) -> list[str]:
    """Return the annotations as workflow commands; the last one of a level with too many counts the rest."""
    shown: list[str] = []
    for level in ("error", "warning", "notice"):
        these = [annotation for annotation in found if annotation.level == level]
        more = len(these) - MOST_OF_A_LEVEL
        if more > 0:
            these = these[: MOST_OF_A_LEVEL - 1]
            these.append(Annotation(level, f"and {plural(more + 1, 'more line')} of this kind"))
        shown += map(_line, these)
    return shown


def _line(annotation: Annotation) -> str:
    level, message, path, line = annotation
    place: dict[str, str | int] = {"file": path, "line": line} if path else {}
    return command(level, shorten(message, _MOST_IN_A_MESSAGE), **place, title=_TITLE)
