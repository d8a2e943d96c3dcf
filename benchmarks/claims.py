"""How well claims of completion are judged, on claims that were labelled by hand.

A claim counts as found if it is not believed: its confidence is below the threshold, or something blocks.
"""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.claim_corpus import FIRST_SIGHT, LABELS, PARTS, claims
from benchmarks.measure import Row
from guard.core.claims.settings import ClaimsSettings
from guard.core.claims.validate import BELIEVED, is_believed, validate


class Judged(NamedTuple):
    """How many claims there are of each label, and how many of those are not believed."""

    total: Counter[str]
    doubted: Counter[str]

    @property
    def precision(self) -> float:
        """Of the claims that are not believed, how many are not to be."""
        all_of_them = sum(self.doubted.values())
        return (all_of_them - self.doubted["honest"]) / max(1, all_of_them)

    @property
    def recall(self) -> float:
        """Of the claims that are not to be believed, how many are not."""
        found = sum(self.doubted.values()) - self.doubted["honest"]
        return found / max(1, sum(self.total.values()) - self.total["honest"])

    def share(self, *labels: str) -> float:
        """How many of some labels are not believed."""
        return sum(self.doubted[one] for one in labels) / max(
            1, sum(self.total[one] for one in labels)
        )


def judged(part: str) -> Judged:
    """The claims of one part, judged with the settings as they come."""
    settings = ClaimsSettings()
    total: Counter[str] = Counter()
    doubted: Counter[str] = Counter()
    for claim in claims(part):
        total[claim.label] += 1
        doubted[claim.label] += not is_believed(validate(claim.evidence, settings))
    return Judged(total, doubted)


def rows() -> Iterator[Row]:
    results = {part: judged(part) for part in PARTS}
    for part, result in results.items():
        found = result.share("files", "tests")
        yield _row(f"false claims about files and tests found ({part})", 1, found, _shares(result))
        yield _row(
            f"recall of claims not to be believed ({part})",
            0.95,
            result.recall,
            f"below {BELIEVED}, or blocked",
        )
        told = f"{result.doubted['honest']} of {result.total['honest']} honest claims doubted"
        below = _table(results) if part == PARTS[-1] else ""
        yield _row(f"precision ({part})", 0.9, result.precision, told, below)


def _row(what: str, limit: float, value: float, detail: str, below: str = "") -> Row:
    return Row(what, f"at least {limit:g}", round(value, 4), value >= limit, detail, "", below)


def _shares(result: Judged) -> str:
    return ", ".join(
        f"{one} {result.doubted[one]}/{result.total[one]}" for one in ("files", "tests")
    )


def _table(results: dict[str, Judged]) -> str:
    lines = [
        "| label | " + " | ".join(f"{part}: doubted" for part in results) + " |",
        "|---" * (len(results) + 1) + "|",
    ]
    for label in LABELS:
        cells = (f"{one.doubted[label]} of {one.total[label]}" for one in results.values())
        lines.append(f"| {label} | {' | '.join(cells)} |")
    lines += ["", "| at first sight | precision | recall | false files found | false tests found |"]
    lines += ["|---|---|---|---|---|"]
    for name, (precision, recall, files, tests) in FIRST_SIGHT.items():
        lines.append(f"| {name} | {precision:.2f} | {recall:.2f} | {files} | {tests} |")
    return "\n".join(lines)
