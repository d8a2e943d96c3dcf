"""Parse JSON as people write it in settings files, with comments and trailing commas, and keep the place of each value."""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

MOST_DEPTH = 64
_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\n]+|\A\ufeff)
    |(?P<comment>//[^\r\n]*|/\*.*?\*/)
    |(?P<string>"(?:[^"\\\x00-\x1f]++|\\.)*+")
    |(?P<mark>[{}\[\]:,])
    |(?P<word>[-+.\w]+)""",
    re.DOTALL | re.VERBOSE,
)
_CLOSING = {"{": "}", "[": "]"}


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Value:
    """A value and its place in the text; its entries, if it is an object or a list."""

    start: int
    end: int
    data: Any
    entries: "tuple[JsonEntry, ...]" = ()

    def get(self, key: str) -> "Value | None":
        return next((entry.value for entry in self.entries if entry.key == key), None)

    def entry(self, key: str) -> "JsonEntry":
        """Return the entry of a key that is known to be there."""
        return next(entry for entry in self.entries if entry.key == key)


@dataclass(frozen=True, slots=True)
class JsonEntry:
    """A key with its value, or one item of a list; where it begins, and the place of the comma after it, if any."""

    key: str | None
    start: int
    value: Value
    comma: int | None

    @property
    def end(self) -> int:
        return self.value.end


@dataclass(frozen=True)
class Document:
    """A text and the one value in it."""

    text: str
    root: Value
    solid: tuple[Token, ...]
    """All tokens and comments, without blanks."""

    @cached_property
    def _starts(self) -> list[int]:
        return [token.start for token in self.solid]

    def solid_before(self, place: int) -> Token:
        return self.solid[bisect_right(self._starts, place - 1) - 1]

    def has_comments(self, start: int, end: int) -> bool:
        return any(token.kind == "comment" and start <= token.start < end for token in self.solid)


def parse(text: str) -> Document:
    """Parse a text; raise a ValueError that names the line if it is not JSON."""
    solid = tuple(token for token in _tokens(text) if token.kind != "blank")
    parser = _Parser(text, [token for token in solid if token.kind != "comment"])
    return Document(text, parser.document(), solid)


def _tokens(text: str) -> Iterator[Token]:
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            _refuse(text, place, f"{text[place]!r} is not expected here")
        yield Token(str(found.lastgroup), found[0], place)
        place = found.end()


class _Parser:
    def __init__(self, text: str, tokens: list[Token]) -> None:
        self._text = text
        self._tokens = tokens
        self._next = 0

    def document(self) -> Value:
        value = self._value(0)
        if self._next < len(self._tokens):
            self._refuse("nothing more is expected here")
        return value

    def _value(self, depth: int) -> Value:
        token = self._peek()
        if depth > MOST_DEPTH:
            self._refuse(f"nested more than {MOST_DEPTH} deep")
        if token.text in _CLOSING:
            return self._container(depth)
        if token.kind == "mark":
            self._refuse("a value is expected here")
        self._next += 1
        return Value(token.start, token.end, self._scalar(token))

    def _container(self, depth: int) -> Value:
        opening = self._take()
        is_object, closing = opening.text == "{", _CLOSING[opening.text]
        entries: list[JsonEntry] = []
        while self._peek().text != closing:
            if entries and entries[-1].comma is None:
                self._refuse(f"`,` or `{closing}` is expected here")
            entries.append(self._entry(is_object, depth))
        end = self._take().end
        if not is_object:
            return Value(
                opening.start, end, [entry.value.data for entry in entries], tuple(entries)
            )
        data = {entry.key: entry.value.data for entry in entries}
        if len(data) < len(entries):
            keys = [entry.key for entry in entries]
            twice = next(key for key in keys if keys.count(key) > 1)
            self._refuse(f"the key {json.dumps(twice)} stands twice in this object")
        return Value(opening.start, end, data, tuple(entries))

    def _entry(self, is_object: bool, depth: int) -> JsonEntry:
        start, key = self._peek().start, None
        if is_object:
            if self._peek().kind != "string":
                self._refuse("a key in double quotes is expected here")
            key = str(self._scalar(self._take()))
            if self._peek().text != ":":
                self._refuse("`:` is expected here")
            self._next += 1
        value = self._value(depth + 1)
        comma = self._take().start if self._peek().text == "," else None
        return JsonEntry(key, start, value, comma)

    def _scalar(self, token: Token) -> Any:
        try:
            return json.loads(token.text, parse_constant=self._no_constant)
        except (ValueError, RecursionError):
            _refuse(self._text, token.start, f"{token.text[:40]} is not a value of JSON")

    def _no_constant(self, name: str) -> NoReturn:
        raise ValueError(name)

    def _peek(self) -> Token:
        if self._next >= len(self._tokens):
            _refuse(self._text, len(self._text), "the text ends too early")
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._peek()
        self._next += 1
        return token

    def _refuse(self, problem: str) -> NoReturn:
        at = self._tokens[min(self._next, len(self._tokens) - 1)].start
        _refuse(self._text, at, problem)


def _refuse(text: str, place: int, problem: str) -> NoReturn:
    raise ValueError(f"line {text.count(chr(10), 0, place) + 1}: {problem}")
