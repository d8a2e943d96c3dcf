"""Find words of evidence and suspicious phrases in a message."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from guard.core.claims.statements import is_denied, split_statements
from guard.core.claims.vocabulary import CHANGED, word_set

Sort = Literal["unfinished", "open", "hedge", "boast"]
_SAYS_NOTHING = word_set("completed finished resolved touched")
EVIDENCE_WORDS = {word for word in CHANGED - _SAYS_NOTHING if word.endswith("ed")} | word_set(
    """
    looked closed pulled plugged tidied untangled mocked counted collected tracked narrowed attached listed
    created added wrote updated modified changed fixed implemented removed deleted refactored renamed rewrote replaced
    moved extracted migrated tested verified confirmed validated checked documented analyzed analysed found identified
    measured reproduced ran passed committed reviewed traced compared benchmarked built configured resolved investigated
    patched introduced corrected split audited profiled ported edited formatted recorded bumped converted upgraded
    rewritten written simplified translated raised
    """
)
SUSPICIOUS_PHRASES: dict[Sort, dict[str, str]] = {
    "unfinished": {
        "mostly done": r"(?:mostly|almost|nearly|more or less) (?:done|complete|completed|finished|working|there|ready)",
        "partially": r"partial(?:ly)? (?:complete|completed|done|implemented|finished|working|works|fixed|migrated|addressed"
        r"|solved|resolved|implementation|fix|solution)",
        "not implemented": r"(?:not|[a-z]{2,6}n't)(?: yet| been| fully){0,3} (?:implemented|finished|completed|wired up)"
        r"|unimplemented|notimplementederror",
        "stub implementation": r"(?:stub|stubbed|mock|mocked|dummy|fake|hard-?coded)(?:-| )(?:implementation|implementations"
        r"|version|response|responses|results?|out)",
        "left as an exercise": r"left as an exercise|left (?:it |that |this |them )?(?:to|for) (?:the reader|you|someone else"
        r"|later|a follow-?up)",
        "will … later": r"(?:will|i'll|we'll|you'll|going to|can be|could be) (?:\S{1,40} ){0,8}"
        r"(?:later|in (?:a|the) (?:next|future|follow-?up)\b"
        r"|next (?:time|session|iteration)|another time)",
        "ran out of": r"(?:ran|running|run) out of (?:time|context|budget|tokens)",
        "as an AI": r"as an ai\b|as a (?:large )?language model",
        "still to do": r"still (?:open|missing|pending)|(?:still|yet) (?:to be|needs? to be|has to be|have to be|to do)\b"
        r"|remains? to be (?:done|fixed)"
        r"|work in progress|\bwip\b",
        "unfinished": r"incomplete|unfinished|to be continued|(?:still )?in progress|remaining (?:work|steps)",
        "does not work yet": r"(?:does|do)(?:n't| not) (?:work|compile|build|run) (?:yet|right now|currently|at the moment)"
        r"|(?:can|could)(?:n't|not| not) get (?:\S{1,40} ){1,6}to (?:work|pass|run|build|compile)",
        "failing tests skipped": r"(?:disabled|skipped|commented out|removed|deleted|xfailed) (?:\S{1,20} ){0,3}"
        r"(?:failing|broken|flaky) (?:tests?|assertions?|checks?)",
        "did not finish": r"(?:did|could|was|were|have|has)(?: not|n't)(?: yet| been able to| able to)? (?:finish|complete)",
    },
    "open": {
        "skeleton": r"(?:a|the|only|just) (?:bare |basic |rough )?(?:skeleton|draft|first pass|basic version|proof of concept)",
        "TODO": r"todos?(?! (?:apps?|lists?|items?|mvc))(?!\.\w)(?![\w/])|fixmes?(?![\w/])",
        "placeholder": r"placeholders?(?! (?:text|attribute|prop|color|image))",
        "not tested": r"(?:not|never|[a-z]{2,6}n't)(?: yet| been| fully| thoroughly){0,3} (?:tested|verified)|untested",
    },
    "hedge": {
        "should work": r"should (?:now |all |just |also |mostly )?(?:work|be (?:fine|ok|okay|good|working|fixed|correct|done)"
        r"|pass|run|resolve|fix|do (?:it|the trick))\b",
        "I think": r"i (?:think|believe|guess|assume|suppose|hope)\b",
        "probably": r"(?:probably|hopefully|presumably|maybe|perhaps)",
        "seems to work": r"(?:seems?|appears?) (?:to (?:work|be (?:working|fixed|fine|ok))|fine|ok|okay|good)\b",
        "in theory": r"in theory|theoretically|fingers crossed|not (?:entirely |completely |100% |quite )?sure",
        "might work": r"(?:might|may|could) (?:now )?(?:work|be (?:fixed|fine|ok))\b",
        "more or less": r"(?:more or less|kind of|sort of|somewhat|roughly) (?:works?|working|fixed|there|complete|ok)",
        "good enough": r"good enough|close enough|quick (?:and dirty )?hack",
    },
    "boast": {
        "perfect": r"perfect(?:ly|ion)?|flawless(?:ly)?|impeccabl[ey]",
        "100%": r"100 ?(?:%|percent)(?=\W*$|[!.,;]| (?:complete|done|fixed|working|correct|functional|perfect|right))",
        "production-ready": r"production[- ](?:ready|grade|quality)|ready for production|battle[- ]tested|bullet-?proof",
        "everything works": r"everything (?:(?:now|just|is) )?(?:works?|working|is (?:working|perfect|done|great|ready))",
        "enterprise-grade": r"enterprise[- ](?:grade|ready|level|class)|world[- ]class|state[- ]of[- ]the[- ]art"
        r"|best[- ]in[- ]class|cutting[- ]edge|industry[- ]leading|next[- ]level|top[- ]notch",
        "fully functional": r"(?:fully|completely|totally|absolutely) (?:functional|working|complete|finished|bug[- ]free"
        r"|operational|done|solved|robust)|bug[- ]free|zero bugs|no bugs|error[- ]free",
        "amazing": r"(?:amazing|incredible|outstanding|stunning|phenomenal|masterpiece|magnificent|brilliant(?:ly)?|superb"
        r"|blazing(?:ly)?[- ]fast|seamless(?:ly)?|beautiful(?:ly)?|exceptional(?:ly)?|spectacular)",
        "guaranteed": r"(?:guaranteed?|i guarantee|without (?:a|any) doubt|never (?:ever )?fails?|can(?:not|'t) fail)",
        "exceeds expectations": r"exceed(?:s|ed|ing) (?:all |your |every )?expectations?|future-proof|second to none|unmatched"
        r"|unparalleled|revolutionary|game-chang\w{1,10}|best possible|nothing short of",
        "mission accomplished": r"mission accomplished|nailed it|crushed it|knocked it out|🎉|🚀|💯|🔥",
    },
}


_DENIAL = re.compile(
    r"(?:\b(?:no|not|never|without|zero|nor|neither|removed?|removing|replaced?|replacing|resolved?|resolving|cleared|eliminated"
    r"|fixed|addressed|deleted|implemented|free of|instead of|rather than|found|finds?|contains?|contained|grep|searched|any"
    r"|flag|flags|flagged|reports?|reported|has|about)\b|n't\b)(?:[^\w,.;]{1,3}\w[\w'-]{0,30}){0,4}[^\w,.;]{0,3}$"
)
_NOT_BEFORE = re.compile(
    r"(?:\b(?:no|not|never|without|nothing|none|cannot|nor|neither|un)\b|n't\b)(?:[^\w,.;]{1,3}\w[\w'-]{0,30}){0,2}[^\w,.;]{0,3}$"
)


class Phrase(NamedTuple):
    name: str
    sort: Sort


def _compile(sort: Sort) -> Iterator[tuple[Phrase, re.Pattern[str]]]:
    for name, pattern in SUSPICIOUS_PHRASES[sort].items():
        edge = "" if "🎉" in pattern else r"(?<![\w/-])"
        yield Phrase(name, sort), re.compile(f"{edge}(?:{pattern})(?![a-z])" if edge else pattern)


_PHRASES = tuple(pair for sort in SUSPICIOUS_PHRASES for pair in _compile(sort))
_OWN_DENIAL = frozenset(
    (
        *("not implemented", "not tested", "does not work yet", "did not finish"),
        *("in theory", "guaranteed", "fully functional"),
    )
)
"""Phrases that contain a denial themselves."""
_EVIDENCE_PATTERN = re.compile(rf"(?<![\w-])(?:{'|'.join(sorted(EVIDENCE_WORDS))})(?![\w-])")


def judged_texts(message: str) -> list[str]:
    # The wording of code blocks does not count.
    return [
        statement.text.lower()
        for statement in split_statements(message)
        if statement.form != "code"
    ]


def evidence_words(texts: Sequence[str], more: Sequence[str]) -> tuple[str, ...]:
    # Each once, in the order of the message; a denied word does not count.
    pattern = (
        _EVIDENCE_PATTERN
        if not more
        else re.compile(f"{_EVIDENCE_PATTERN.pattern}|{_literal(more)}")
    )
    found = (
        hit
        for text in texts
        for hit in pattern.finditer(text)
        if not is_denied(text, hit, _NOT_BEFORE)
    )
    return tuple(dict.fromkeys(hit[0] for hit in found))


def suspicious_phrases(texts: Sequence[str], more: Sequence[str]) -> tuple[Phrase, ...]:
    """Return the suspicious phrases that are not denied (as in `no TODOs left`), each once."""
    own = [(Phrase(phrase, "hedge"), re.compile(_literal([phrase]))) for phrase in more]
    found = (phrase for phrase, pattern in (*_PHRASES, *own) if _occurs(phrase, pattern, texts))
    return tuple({phrase.name: phrase for phrase in found}.values())


def _occurs(phrase: Phrase, pattern: re.Pattern[str], texts: Sequence[str]) -> bool:
    hits = ((text, hit) for text in texts for hit in pattern.finditer(text))
    return any(
        phrase.name in _OWN_DENIAL or not is_denied(text, hit, _DENIAL) for text, hit in hits
    )


def _literal(phrases: Sequence[str]) -> str:
    return "|".join(rf"(?<!\w){re.escape(phrase.lower())}(?!\w)" for phrase in phrases)
