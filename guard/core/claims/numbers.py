"""How many files and commits a message claims."""

import re
from typing import NamedTuple

from guard.core.claims.statements import statements
from guard.core.claims.tells_of_work import tells_of_work

_WORDS = "one two three four five six seven eight nine ten eleven twelve"
_NUMBERS = dict(zip(_WORDS.split(), range(1, 13), strict=True))
NUMBER = rf"(\d{{1,6}}|{'|'.join(_NUMBERS)})"
_DONE = (
    r"(?:modified|changed|created|added|updated|edited|touched|wrote|written|refactored|fixed|deleted|removed|rewrote|migrated"
    r"|converted|renamed|moved|generated|patched)"
)
_THINGS = r"(?:[a-z]{1,20} ){0,2}(?:files|file|modules)"
_CHANGED = re.compile(
    rf"(?<![\w-]){_DONE} (?:a total of |about |over |exactly |more than |these |the |all )?{NUMBER} {_THINGS}(?![\w-])"
    rf"|(?<![\w./-]){NUMBER} {_THINGS} (?:(?:were|was|have been|are|in total|now) ){{0,2}}{_DONE}(?![\w-])"
    rf"|(?<![\w-])(?:files|modules) {_DONE}:? {NUMBER}(?![\w./-])"
    rf"|(?<![\w-])changes? (?:in|across|to) {NUMBER} {_THINGS}(?![\w-])"
)
_HASH = r"[`(*]{0,3}[0-9a-f]{7,40}(?![\w-])"
_COMMITS = re.compile(
    rf"(?<![\w-])(?:made|created|landed|pushed|into|as|with|in) {NUMBER} "
    r"(?:[a-z]{1,20} ){0,2}commits(?![\w-])"
    rf"|(?<![\w./-]){NUMBER} (?:[a-z]{{1,20}} ){{0,2}}commits (?:made|created|pushed|landed"
    r"|on (?:main|master|the branch|this branch))"
    rf"|(?<![\w-])commits(?: made| created)?: {NUMBER}(?![\w./-])"
)
_BARE_COMMITS = re.compile(rf"(?:^|[;,(:–—]) ?{NUMBER} (?:[a-z]{{1,20}} )?commits?(?= ?[.,;)!]|$)")
_PLANNED = re.compile(
    r"\b(?:will|would|should|could|might|plan|plans|planned|next|later|todo|remaining|rest|open|follow-?ups?|left|if|still|needs?"
    r"|recommend(?:ed)?|suggest(?:ed)?|propos(?:e|ed|al)|expect(?:ed)?|estimated?|instead|no|not|without|behind|ahead)\b"
)
_BETWEEN = re.compile(
    r"\b(?:between|from|since) (?:v?\d|[0-9a-f]{7}|the (?:two |last )?(?:releases?|tags?|versions?)\b)"
)
_COMMITTED = re.compile(
    r"(?<![\w-])commit(?:t)?ed(?![\w-])(?! to (?:quality|deliver|provid|mak|excel|do|help|the goal|improv|work|keep))"
    r"|(?<![\w-])pushed (?:it |them |everything |all |the \w{1,20} |my \w{1,20} |a \w{1,20} ){0,2}(?:to|upstream)(?![\w-])"
    r"|(?<![\w-])(?:is|are|was|were|been|and) pushed(?![\w-])"
    rf"|(?<![\w-])(?:is|are|landed) in commit {_HASH}"
    rf"|^\W{{0,6}}commit(?: id| hash| sha)?:? {_HASH}"
    r"|(?<![\w-])(?:made|created|landed) (?:a|the|one|an? \w{1,20}) (?:\w{1,20} )?commit(?![\w-])"
    rf"|(?<![\w-])(?:created|made) commit {_HASH}|(?<![\w-])commit (?:created|done|made)(?![\w-])"
    r"|(?<![\w-])opened (?:a |the )?(?:draft )?(?:pr|pull request|merge request)(?![\w-])"
    r"|(?<![\w-])merged (?:it |this |them |everything |the \w{1,20} ){0,2}(?:in)?to (?:main|master)(?![\w-])"
    r"|^\[[\w./-]{1,80} (?:\(root-commit\) )?[0-9a-f]{7,40}\]"
)
_NOT = re.compile(
    r"(?:\b(?:no|not|never|without|nothing|none|cannot|unable|nor|neither|to be|should|will|would|could|can|may|might|must|if"
    r"|once|before|until|ready|previously|last|previous|earlier|reviewed|analy[sz]ed|upstream|someone|they|who|author|nobody"
    r"|instead of"
    r"|whatever|accidentally|found|seen|present|history|between|secrets?|key|keys|credentials?)\b|n't\b)(?:[^\w,.;]{1,3}\w[\w'-]{0,30}){0,4}[^\w.;]{0,3}$"
)


class ClaimedNumbers(NamedTuple):
    """What is claimed in numbers; 0 files is no claim, and commits without a number are at least 1."""

    files: int
    commits: int


def counts_claimed(message: str) -> ClaimedNumbers:
    """The largest numbers of changed files and of commits that a message claims."""
    texts = [text for one in statements(message) if not _BETWEEN.search(text := one.text.lower())]
    files = max((count for text in texts for count in _numbers(_CHANGED, text)), default=0)
    commits = max((count for text in texts for count in _numbers(_COMMITS, text)), default=0)
    if tells_of_work(message):
        commits = max(commits, *(_bare_commits(text) for text in texts), 0)
    return ClaimedNumbers(files, max(commits, 1 if any(map(_says_committed, texts)) else 0))


def _numbers(pattern: re.Pattern[str], text: str) -> list[int]:
    hits = (hit for hit in pattern.finditer(text) if not _is_denied(text, hit))
    return [number(hit) for hit in hits]


def number(hit: re.Match[str]) -> int:
    """The number that a pattern found, in digits or as a word."""
    word = next(filter(None, hit.groups()))
    return _NUMBERS.get(word) or int(word)


def _bare_commits(text: str) -> int:
    """A number that stands alone, as in `; 3 commits, each builds`."""
    if _PLANNED.search(text):
        return 0
    return max(_numbers(_BARE_COMMITS, text), default=0)


def _says_committed(text: str) -> bool:
    return any(not _is_denied(text, hit) for hit in _COMMITTED.finditer(text))


def _is_denied(text: str, hit: re.Match[str]) -> bool:
    return _NOT.search(text[max(0, hit.start() - 60) : hit.start()]) is not None
