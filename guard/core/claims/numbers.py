"""Find the numbers of files and commits that a message claims."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from guard.core.claims.statements import is_denied, split_statements
from guard.core.claims.tests import is_about_work
from guard.core.claims.vocabulary import word_set

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
_REPORTS = word_set("md mdx rst txt adoc html pdf csv ipynb")


class ClaimedNumbers(NamedTuple):
    """The claimed numbers; 0 means no claim, and commits claimed without a number count as 1."""

    files: int
    commits: int


def claimed_counts(message: str) -> ClaimedNumbers:
    """Return the largest numbers of changed files and of commits that a message claims."""
    texts = [
        text
        for statement in split_statements(message)
        if not _BETWEEN.search(text := statement.text.lower())
    ]
    files = max((count for text in texts for count in _find_numbers(_CHANGED, text)), default=0)
    commits = max((count for text in texts for count in _find_numbers(_COMMITS, text)), default=0)
    if is_about_work(message):
        commits = max(commits, *(_bare_commits(text) for text in texts), 0)
    return ClaimedNumbers(files, max(commits, 1 if any(map(_says_committed, texts)) else 0))


def _find_numbers(pattern: re.Pattern[str], text: str) -> list[int]:
    hits = (hit for hit in pattern.finditer(text) if not is_denied(text, hit, _NOT))
    return [parse_number(hit) for hit in hits]


def parse_number(hit: re.Match[str]) -> int:
    word = next(filter(None, hit.groups()))
    return _NUMBERS.get(word) or int(word)


def _bare_commits(text: str) -> int:
    # A number that stands alone, as in `; 3 commits, each builds`.
    if _PLANNED.search(text):
        return 0
    return max(_find_numbers(_BARE_COMMITS, text), default=0)


def _says_committed(text: str) -> bool:
    return any(not is_denied(text, hit, _NOT) for hit in _COMMITTED.finditer(text))


def report_files(files: Iterable[str]) -> tuple[str, ...]:
    """Return the changed files in which findings could be written down."""
    return tuple(sorted(path for path in files if path.rpartition(".")[2].casefold() in _REPORTS))
