"""Find out whether a message claims that tests were run, and that they passed."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from guard.core.claims.statements import Word, split_statements, split_words
from guard.core.claims.vocabulary import CHANGED, DENIED, word_set

_TESTS = word_set(
    """
    test tests testing testsuite test-suite suite suites specs pytest py.test jest vitest mocha tox nox rspec phpunit ctest
    unittest playwright cypress junit
    """
)
_ANY_CHECKS = word_set("all everything ci pipeline checks build")
_PASSES = word_set("pass passes passed passing green")
_GOOD = _PASSES | word_set(
    "succeed succeeds succeeded success successful successfully ok okay clean cleanly good fine ✓"
)
_BAD = word_set("fail fails failed failing failures failure errors regressions")
_TROUBLE = word_set("problems issues warnings")
_RAN = word_set(
    "ran reran re-ran executed re-executed rerunning running re-running executing exercised"
)
_RUN = word_set("was were been have i've we've got also being")
_CHECKED = word_set("verified confirmed validated proven checked backed tested")
_BY = word_set("by with through via using against under")
_SUPPOSED = word_set(
    """
    should would will could can may might must if whether once until ensure make expect please need needs want let todo assume
    hope hopefully probably think believe requires require unless before next claims i'll you'll we'll verify try to-do
    look looks looked seem seems
    """
)
_OBJECTS = word_set(
    "a an the null none in into to invalid through as it them from arguments by via"
)
_BY_HAND = re.compile(
    r"\b(?:manual|manually|by hand|hand-tested|curl|browser|repl|interactively|dry[- ]run|screenshots?|httpie|postman"
    r"|on a (?:scratch|temporary|throwaway)|against (?:a|the) (?:local|staging|live|dev)|clicked)\b"
)
_OTHER_CHECKS = re.compile(
    r"\b(?:ruff|mypy|lint|linter|linters|eslint|flake8|type-?checks?|tsc|clippy|formatter|shellcheck)\b"
)
_COUNTED = re.compile(
    r"(?<![\w.-])[1-9]\d{0,5} (?:tests? |specs? |examples? )?(?:passed|passing)(?! (?:to|into|through|as|by|in (?!\d))\b)"
    r"|(?<![\w.-])[1-9]\d{0,5} (?:tests?|specs?|examples?)\W{1,3}(?:\d{1,6} assertions?\W{1,3})?0 failures"
)
_OF_ALL = re.compile(
    r"(?<![\w.-])0 (?:failures|failed|failing)(?![\w-])|exit (?:code|status)? ?0(?!\w)|coverage[^.]{0,30}\d%"
    r"|(?<![\w./-])(\d{1,6}) ?(?:/|of|out of) ?\1(?![\w/]|\.\d)"
)
_CLAUSES = re.compile(r"; |,? but |,? however,? |,? although ")
_PRONOUNS = ("it ", "they ", "both ", "all ", "these ", "those ", "each ")
_REACH = 6


class RunClaim(NamedTuple):
    run: bool
    passed: bool


def claimed_tests(message: str) -> RunClaim:
    """Return what a message claims about tests; a denial, a supposition or a request is no claim."""
    read: list[_Clause] = []
    for text in _clauses(message):
        goes_on = bool(read) and read[-1].seen and text.startswith(_PRONOUNS)
        read.append(_Clause(text, seen=goes_on))
    run = any(clause.run or clause.passed for clause in read)
    return RunClaim(
        run, any(clause.passed for clause in read) and not any(clause.failing for clause in read)
    )


def _clauses(message: str) -> Iterator[str]:
    for statement in split_statements(message):
        yield from _CLAUSES.split(statement.text.lower())


class _Clause:
    def __init__(self, text: str, *, seen: bool) -> None:
        self.seen = seen
        self.run = self.passed = self.failing = False
        self._any = self._ran = self._checked = False
        self._denied = self._supposed = self._by = 0
        self._other = _OTHER_CHECKS.search(text) is not None
        self._by_hand = _BY_HAND.search(text) is not None
        words = list(split_words(text))
        for number, word in enumerate(words):
            self._read(word, words[number - 1].plain if number else "", words[number + 1 :])
        self._count(text)

    def _is_asserted(self) -> bool:
        return not self._denied and not self._supposed

    def _read(self, word: Word, before: str, after: list[Word]) -> None:
        plain = word.plain
        if plain in _SUPPOSED or plain.endswith("'d") or (plain in _PASSES and before == "to"):
            self._supposed = _REACH
        if plain in _TESTS or any("test" in path for path in word.paths):
            self._see()
        self._any |= plain in _ANY_CHECKS and not self._other
        self._act(plain, before)
        if plain in _GOOD:
            self._succeed(plain, after)
        if plain in _BAD:
            self._fail(before)
        if plain in _TROUBLE and self._denied and not self._supposed:
            self.passed |= self.seen
        self._pass_on(word)

    def _see(self) -> None:
        if self._is_asserted():
            self.run |= self._ran
            self.passed |= self._checked and self._by > 0
        self.seen = True

    def _act(self, plain: str, before: str) -> None:
        if plain in CHANGED:
            self._ran = False
        if plain in _RAN or (plain in ("run", "rerun") and before in _RUN):
            self._ran = self._is_asserted()
            self.run |= self._ran and self.seen and not self._other
        if plain in _CHECKED:
            self._checked = self._is_asserted()
            self.run |= plain == "tested" and self._checked and not self._by_hand

    def _succeed(self, plain: str, after: list[Word]) -> None:
        if plain in ("pass", "passed", "passing") and after and after[0].plain in _OBJECTS:
            return
        near = any(word.plain in _TESTS for word in after[:3])
        if self._is_asserted() and (self.seen or near or (self._any and plain in _PASSES)):
            self.passed = True

    def _fail(self, before: str) -> None:
        if before == "0" or (self._denied and self.seen):
            self.passed |= self.seen
        elif self._is_asserted():
            self.failing |= self.seen

    def _pass_on(self, word: Word) -> None:
        self._denied, self._supposed, self._by = (
            max(0, left - 1) for left in (self._denied, self._supposed, self._by)
        )
        if word.plain in DENIED or word.plain in ("untested", "unable"):
            self._denied = _REACH
        if word.plain in _BY:
            self._by = _REACH
        if word.ends == ",":
            self._denied = self._supposed = 0

    def _count(self, text: str) -> None:
        # The totals that a test runner prints at its end, and `42/42`.
        if re.search(
            r"(?<![\w.-])[1-9]\d{0,5} (?:tests? )?(?:failed|failures?|failing)(?![\w-])", text
        ):
            self.failing = self.run = True
        elif _COUNTED.search(text) or (self.seen and _OF_ALL.search(text) and self._is_asserted()):
            self.passed = True


_LOOKED = re.compile(
    r"(?<!for )(?<!to )\b(?:review(?:ed|ing)?|audit(?:ed|ing)?|analy[sz](?:ed|is|ing)|investigat(?:ed|ion|ing)"
    r"|inspect(?:ed|ion)|examined|findings?|profiled|bisect(?:ed|ion)?|compared|history|upstream)\b"
)
_WORK_WORDS = CHANGED - word_set("documented documenting") | word_set("done complete ready works")


def is_about_work(message: str) -> bool:
    """Tell whether a message is about work done; short forms such as `a.py: done` claim a change only there."""
    text = message.lower()
    return _LOOKED.search(text) is None and any(
        word.strip("\"'`*_.,;:!()") in _WORK_WORDS for word in text.split()
    )
