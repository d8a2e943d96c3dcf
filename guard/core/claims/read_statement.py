"""Read one statement: which files it says were changed, only names, or denies or postpones."""

from typing import Literal

from guard.core.claims.statements import Word
from guard.core.claims.vocabulary import (
    AUXILIARY,
    BACK,
    KINDS,
    MOVES,
    NOTED,
    OCCASIONS,
    ONCE,
    SUBJECTS,
    UNTOUCHED,
    Kind,
    word_set,
)

Stance = Literal["changed", "named", "supposed"]
_REACH = 5
"""A denial holds for so many words."""
_PLAIN_CHANGE = word_set("changed modified touched edited updated altered")
_HELPERS = word_set("had managed able went proceeded")
_ORIGINS = word_set("for by when before")
"""`Was written for`, `was added by`: an origin, not the agent's work."""
_OF_ANOTHER = (["one", "that"], ["one", "which"])
"""`The one that made a.py poll`: another author's commit."""
_DETERMINERS = word_set("the a an this its")


class StatementReader:
    """Reads one statement word by word; `lead` is the stance of the sentence or heading above a list.

    `works` is False if the message is about a review: there `a.py: done` is no change.
    """

    def __init__(self, lead: Stance | None, *, works: bool = True) -> None:
        self.lead = lead
        self._works = works
        self.found: list[tuple[str, Stance | None]] = []
        self.state: Stance | None = None
        self.base: Stance | None = None
        self._open: list[int] = []
        self._recent: list[int] = []
        self._denied = 0
        self._supposed = False
        self._leading = True
        self._auxiliary = False
        self._relative = False
        self._article = False
        self._verb = ""
        self._before: list[str] = []

    def read(self, word: Word, following: Word | None) -> None:
        if word.paths:
            self._place(word)
        else:
            self._weigh(word, following)
            self._leading &= word.plain in ("", "and", "or")
        self._denied = 0 if word.ends == "," else max(0, self._denied - 1)
        self._before = [*self._before[-1:], word.plain + word.ends]

    @property
    def _last_word(self) -> str:
        return self._before[-1] if self._before else ""

    def stances(self) -> list[tuple[str, Stance]]:
        return [(path, stance or "named") for path, stance in self.found]

    def _place(self, word: Word) -> None:
        for path in word.paths:
            inherits = self.lead is not None and (self._leading or not self.found)
            stance = self.state or (self.lead if inherits else None)
            if word.in_command:
                stance = "supposed"
            elif self.state is None:
                self._open.append(len(self.found))
            self._article = False
            self._recent.append(len(self.found))
            self.found.append((path, stance))

    def _weigh(self, word: Word, following: Word | None) -> None:
        plain = word.plain
        if word.in_command or not plain:
            return
        if plain in UNTOUCHED:
            self._mark(range(len(self.found)), "supposed")
        noted = plain in NOTED or (plain == "done" and self._works)
        if noted and (word.in_brackets or self._last_word.endswith(":")):
            self._mark(self._recent, "supposed" if self._supposed or self._denied else "changed")
        for kind in KINDS.get(plain, ()):
            if kind in ("changed", "begun"):
                if self._tells(kind, following):
                    self._change(plain)
                    break
            else:
                self._turn(kind)
        self._step(plain, following)

    def _turn(self, kind: Kind) -> None:
        match kind:
            case "turn":
                self._begin_again()
            case "denied":
                self._denied = _REACH
            case "supposed":
                self._suppose()
            case "aside" if self.base and self._verb not in MOVES:
                self.state = "named"
            case "named":
                self._name()

    def _step(self, plain: str, following: Word | None) -> None:
        if plain in BACK:
            self.state = self.base
        if plain == "now" and self._recent and not self._auxiliary and not self._supposed:
            self._mark(self._recent, "changed")
        self._article = (self._article or plain in _DETERMINERS) and plain not in AUXILIARY
        if plain == "longer" and self._last_word == "no":
            self._mark(self._recent, "changed")
        if plain == "now" and following is None:
            self._mark(self._open, "changed")
        if plain in OCCASIONS and self._last_word in ONCE:
            self._mark(range(len(self.found)), "named")
        if plain in ("which", "that") and self._recent:
            self._relative = True
        elif plain in AUXILIARY or (self._relative and plain in SUBJECTS):
            self._auxiliary = True
        elif plain not in ("and", "or", "not", "no", ""):
            self._recent, self._auxiliary, self._relative = [], False, False

    def _tells(self, kind: Kind, following: Word | None) -> bool:
        # Not every form of a verb, nor at every place, says what was done.
        passive = self._auxiliary and not self._relative
        if passive and following is not None and following.plain in _ORIGINS:
            return False
        if self._before in _OF_ANOTHER:
            return False
        if kind == "changed" or self._denied:
            return True
        if self.lead == "supposed":
            return False
        if self._last_word == "to":
            return self._before[0] in _HELPERS
        return not self._last_word or self._last_word.endswith((",", ":"))

    def _change(self, verb: str) -> None:
        stance: Stance = "supposed" if self._denied or self._supposed else "changed"
        for at in () if self._article else self._open:
            held = self.found[at][1]
            if held != "changed" or (stance == "supposed" and verb in _PLAIN_CHANGE):
                self._mark([at], stance)
        if self._auxiliary:
            self._mark(self._recent, stance)
        self._open, self.state, self.base, self._verb = [], stance, stance, verb

    def _name(self) -> None:
        self._open = [at for at in self._open if self.found[at][1] is not None]
        stance: Stance = "supposed" if self._supposed else "named"
        self.state = self.base = stance

    def _suppose(self) -> None:
        self._supposed = True
        self.state = self.base = "supposed"

    def _begin_again(self) -> None:
        self.state = self.base = None
        self._supposed, self._denied, self._open = False, 0, []

    def _mark(self, places: "range | list[int]", stance: Stance) -> None:
        for at in places:
            self.found[at] = (self.found[at][0], stance)
