"""Words of evidence in a message, and phrases that a claim of completion should not have."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from guard.core.claims.phrase_table import EVIDENCE, SUSPICIOUS, Sort
from guard.core.claims.statements import statements

_DENIAL = re.compile(
    r"(?:\b(?:no|not|never|without|zero|nor|neither|removed?|removing|replaced?|replacing|resolved?|resolving|cleared|eliminated"
    r"|fixed|addressed|deleted|implemented|free of|instead of|rather than|found|finds?|contains?|contained|grep|searched|any"
    r"|flag|flags|flagged|reports?|reported|has|about)\b|n't\b)(?:[^\w,.;]{1,3}\w[\w'-]{0,30}){0,4}[^\w,.;]{0,3}$"
)
_REACH = 60
_NOT_BEFORE = re.compile(
    r"(?:\b(?:no|not|never|without|nothing|none|cannot|nor|neither|un)\b|n't\b)(?:[^\w,.;]{1,3}\w[\w'-]{0,30}){0,2}[^\w,.;]{0,3}$"
)


class Phrase(NamedTuple):
    """A phrase that was found, as it is called, and what sort it is of."""

    name: str
    sort: Sort


def _compiled(sort: Sort) -> Iterator[tuple[Phrase, re.Pattern[str]]]:
    for name, pattern in SUSPICIOUS[sort].items():
        edge = "" if "🎉" in pattern else r"(?<![\w/-])"
        yield Phrase(name, sort), re.compile(f"{edge}(?:{pattern})(?![a-z])" if edge else pattern)


_PHRASES = tuple(pair for sort in SUSPICIOUS for pair in _compiled(sort))
_OWN_DENIAL = frozenset(
    (
        *("not implemented", "not tested", "does not work yet", "did not finish"),
        *("in theory", "guaranteed", "fully functional"),
    )
)
"""Phrases that have a denial in themselves."""
_EVIDENCE = re.compile(rf"(?<![\w-])(?:{'|'.join(sorted(EVIDENCE))})(?![\w-])")


def judged(message: str) -> list[str]:
    """The statements whose wording counts, in lower case: what stands in code blocks does not."""
    return [one.text.lower() for one in statements(message) if one.form != "code"]


def evidence_words(texts: Sequence[str], more: Sequence[str]) -> tuple[str, ...]:
    """The words of evidence, each once, in the order of the message; those that are denied do not count."""
    pattern = _EVIDENCE if not more else re.compile(f"{_EVIDENCE.pattern}|{_literal(more)}")
    found = (
        hit
        for text in texts
        for hit in pattern.finditer(text)
        if not _is_denied(text, hit, _NOT_BEFORE)
    )
    return tuple(dict.fromkeys(hit[0] for hit in found))


def suspicious(texts: Sequence[str], more: Sequence[str]) -> tuple[Phrase, ...]:
    """The suspicious phrases, each once; those that are denied (`no TODOs left`) do not count."""
    own = [(Phrase(phrase, "hedge"), re.compile(_literal([phrase]))) for phrase in more]
    found = (phrase for phrase, pattern in (*_PHRASES, *own) if _occurs(phrase, pattern, texts))
    return tuple({phrase.name: phrase for phrase in found}.values())


def _occurs(phrase: Phrase, pattern: re.Pattern[str], texts: Sequence[str]) -> bool:
    hits = ((text, hit) for text in texts for hit in pattern.finditer(text))
    return any(
        phrase.name in _OWN_DENIAL or not _is_denied(text, hit, _DENIAL) for text, hit in hits
    )


def _is_denied(text: str, hit: re.Match[str], denial: re.Pattern[str]) -> bool:
    return denial.search(text[max(0, hit.start() - _REACH) : hit.start()]) is not None


def _literal(phrases: Sequence[str]) -> str:
    return "|".join(rf"(?<!\w){re.escape(phrase.lower())}(?!\w)" for phrase in phrases)
