"""How many findings a message claims to have recorded, and the changed files that may hold them instead."""

import re
from collections.abc import Iterable

from guard.core.claims.numbers import NUMBER, number
from guard.core.claims.statements import statements
from guard.core.claims.vocabulary import word_set

_RECORDED = r"(?:documented|recorded|reported|logged|filed|noted|raised|submitted|captured)"
_TOLD = rf"(?:{_RECORDED}|found|identified|made|listed|produced|delivered)"
_AMOUNT = r"(?:a total of |about |over |exactly |more than |all |the |these )?"
_OTHERS = r"(?:issues?|problems?|bugs?|vulnerabilit(?:y|ies)|defects?|weaknesses)"
_WAS = r"(?:(?:were|was|have been|are|is|now|all) ){0,3}"
_CLAIMED = re.compile(
    rf"(?<![\w-]){_TOLD} {_AMOUNT}{NUMBER} (?:[a-z-]{{1,20}} ){{0,2}}findings?(?![\w-])"
    rf"|(?<![\w-]){_RECORDED} {_AMOUNT}{NUMBER} (?:[a-z-]{{1,20}} ){{0,2}}{_OTHERS}(?![\w-])"
    rf"|(?<![\w./-]){NUMBER} (?:[a-z-]{{1,20}} ){{0,2}}(?:findings?|{_OTHERS}) {_WAS}{_RECORDED}(?![\w-])"
    rf"|(?<![\w./-]){NUMBER} (?:[a-z-]{{1,20}} )?findings?(?=[.:,;!)]|$)"
    rf"|(?<![\w-])findings(?: {_RECORDED})?: {NUMBER}(?![\w./-])"
)
_NOT = re.compile(
    r"(?:\b(?:no|not|never|without|cannot|unable|should|will|would|could|can|may|might|must|if|once|until|before|previous"
    r"|previously|earlier|last|existing|older|prior|addressed|addresses|fixed|fixes|resolved|resolves|closed|closes|handled"
    r"|their|his|her|users?|customers?|sonar|scanner|linter)\b|n't\b)(?:[^\w,.;]{1,3}\w[\w'-]{0,30}){0,4}[^\w.;]{0,3}$"
)
_REPORTS = word_set("md mdx rst txt adoc html pdf csv ipynb")


def findings_claimed(message: str) -> int:
    """The largest number of findings that a message claims; 0 if it claims none."""
    texts = (one.text.lower() for one in statements(message))
    return max((count for text in texts for count in _counts(text)), default=0)


def _counts(text: str) -> list[int]:
    hits = (hit for hit in _CLAIMED.finditer(text) if not _is_denied(text, hit))
    return [number(hit) for hit in hits]


def _is_denied(text: str, hit: re.Match[str]) -> bool:
    return _NOT.search(text[max(0, hit.start() - 60) : hit.start()]) is not None


def reports(files: Iterable[str]) -> tuple[str, ...]:
    """Of changed files, those in which findings can be written down."""
    return tuple(sorted(path for path in files if path.rpartition(".")[2].casefold() in _REPORTS))
