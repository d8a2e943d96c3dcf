"""Find the files that a message claims to have changed, and those that it only names."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile, zip_longest
from typing import NamedTuple

from guard.core.claims.file_names import find_paths, path_tails
from guard.core.claims.read_statement import Stance, StatementReader
from guard.core.claims.statements import Statement, Word, split_statements, split_words
from guard.core.claims.tests import is_about_work
from guard.core.claims.vocabulary import word_set

_STATUS = re.compile(
    r"(?:[MADRCU?]{1,2}\s|modified:|new file:|deleted:|renamed:|create mode \d{6}\s|delete mode \d{6}\s|\+\+\+ b/)\s*"
)
_FILES, _CHANGES = word_set("file files path"), word_set("change changes changed")
_TITLES = word_set("changes modifications edits new diff deliverables")
_LABEL = re.compile(r"\W{0,4}files?\W{0,3}:", re.IGNORECASE)
_LOOK_AHEAD = 50
_AFTER_PATH = ("-", "—", "–", "|", "(", "+", ":")


class NamedFiles(NamedTuple):
    """The paths of a message, each once, by what the message says of them."""

    changed: tuple[str, ...]
    named: tuple[str, ...]
    """Neither claimed nor denied nor postponed."""
    supposed: tuple[str, ...]


def claimed_files(message: str) -> NamedFiles:
    """Sort the files of a message by what it says of them; a claim outweighs a mention."""
    held: dict[str, Stance] = {}
    rank = {"changed": 2, "supposed": 1, "named": 0}
    for path, stance in _find_stances(message):
        if path not in held or rank[stance] > rank[held[path]]:
            held[path] = stance
    changed, named, supposed = (
        tuple(path for path, stance in held.items() if stance == wanted)
        for wanted in ("changed", "named", "supposed")
    )
    return NamedFiles(changed, named, supposed)


def named_paths(message: str) -> tuple[str, ...]:
    # Each spelling counts, because any may be the one in the work tree.
    paths = dict.fromkeys(path for path, _ in _find_stances(message))
    return tuple(
        dict.fromkeys(spelling for path in paths for spelling in (path, *path_tails(path)))
    )


def _find_stances(message: str) -> Iterator[tuple[str, Stance]]:
    lead: Stance | None = None
    works = is_about_work(message)
    found = list(split_statements(message))
    for at, statement in enumerate(found):
        words = list(split_words(statement.text))
        if statement.form == "code":
            yield from _stances_of_code(statement.text, words, lead)
            continue
        reader = _read(statement, words, lead, works=works)
        lead = _lead_after(statement, words, reader, lead)
        if works and _LABEL.match(statement.text):
            yield from _stances_of_label(reader.stances(), statement)
            lead = "changed" if _is_described_list(found[at + 1 : at + 1 + _LOOK_AHEAD]) else lead
        else:
            yield from reader.stances()


def _stances_of_label(
    found: list[tuple[str, Stance]], statement: Statement
) -> list[tuple[str, Stance]]:
    # `Files: a.py (the loop), b.md (how to use it)`: the note after each path says what was done there.
    if not _are_described(statement.text):
        return found
    return [(path, "changed" if stance == "named" else stance) for path, stance in found]


def _are_described(text: str) -> bool:
    tokens = text.split()
    notes = [
        token.rstrip("`*_").endswith(":") or following.startswith(_AFTER_PATH)
        for token, following in zip(tokens, [*tokens[1:], ""], strict=True)
        if find_paths(token)
    ]
    return bool(notes) and all(notes)


def _is_described_list(following: Sequence[Statement]) -> bool:
    items = list(takewhile(lambda statement: statement.form == "item", following))
    return bool(items) and all(_are_described(item.text) for item in items if item.begins)


def _read(
    statement: Statement, words: list[Word], lead: Stance | None, *, works: bool
) -> StatementReader:
    inherited = lead if _inherits(statement, words) or lead == "supposed" else None
    reader = StatementReader(inherited, works=works)
    for word, following in zip_longest(words, words[1:]):
        reader.read(word, following)
    return reader


def _inherits(statement: Statement, words: list[Word]) -> bool:
    # An item continues the statement above, and so does a line that begins with a path.
    if not statement.begins or statement.form == "heading":
        return False
    if statement.form == "item":
        return True
    return _stands_alone(statement.text, words)


def _stands_alone(text: str, words: list[Word]) -> bool:
    # The line is a path, or a path with a note after it.
    if not words or not words[0].paths:
        return False
    after = text.split()[1:2]
    return not after or bool(words[0].ends) or after[0][0] in _AFTER_PATH


def _lead_after(
    statement: Statement, words: list[Word], reader: StatementReader, lead: Stance | None
) -> Stance | None:
    # The stance holds for a list or block that may follow.
    plain = {word.plain for word in words}
    if statement.form == "item" and not statement.introduces:
        return "changed" if plain & _FILES and plain & _CHANGES else lead
    if statement.introduces and plain & _TITLES and not reader.base:
        return "changed"
    return reader.base if statement.introduces or reader.base else lead


def _stances_of_code(
    text: str, words: list[Word], lead: Stance | None
) -> Iterator[tuple[str, Stance]]:
    # Git's output shows changes; a listed path has the stance of the sentence above.
    paths = [path for word in words for path in word.paths]
    if _STATUS.match(text):
        yield from ((path, "changed") for path in paths[-1:])
    else:
        stance: Stance = (lead or "supposed") if _stands_alone(text, words) else "supposed"
        yield from ((path, stance) for path in paths)
