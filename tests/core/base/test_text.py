"""Text made harmless for a terminal."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.base.text import escape, harmless_json, plural, utf8_text

SPELLED = {
    "plain text": ("Hello, world", "Hello, world"),
    "letters of all alphabets": ("Grüße 你好 שלום 🙂", "Grüße 你好 שלום 🙂"),
    "nothing": ("", ""),
    "an escape sequence": ("\x1b[31mred", r"\x1b[31mred"),
    "a title of the window": ("\x1b]0;x\x07", r"\x1b]0;x\x07"),
    "a carriage return": ("100%\rfake", r"100%\x0dfake"),
    "a newline": ("a\nb", r"a\x0ab"),
    "a tab": ("a\tb", r"a\x09b"),
    "a backspace": ("a\bb", r"a\x08b"),
    "NUL": ("\0", r"\x00"),
    "delete": ("\x7f", r"\x7f"),
    "CSI in one character": ("\x9b31m", r"\x9b31m"),
    "the first and last of C1": ("\x80\x9f\xa0", "\\x80\\x9f\xa0"),
    "right-to-left override": ("a\u202eb", r"a\u202eb"),
    "isolates": ("\u2066\u2067\u2068\u2069", r"\u2066\u2067\u2068\u2069"),
    "marks of direction": ("\u200e\u200f", r"\u200e\u200f"),
    "the Arabic mark of direction": ("\u061c", r"\u061c"),
    "nothing that takes no space": ("\u200b\u200c\u200d\ufeff", r"\u200b\u200c\u200d\ufeff"),
    "letters of a hidden alphabet": ("\U000e0041", r"\U000e0041"),
    "separators of lines": ("\u2028\u2029", r"\u2028\u2029"),
    "a byte that was no text": ("\udcff", r"\udcff"),
    "half a surrogate pair": ("\ud800", r"\ud800"),
}


@pytest.mark.parametrize(("text", "shown"), SPELLED.values(), ids=SPELLED)
def test_visible(text: str, shown: str) -> None:
    assert escape(text) == shown


@given(st.text())
def test_nothing_that_drives_a_terminal_is_left(text: str) -> None:
    shown = escape(text)
    directions = {unicodedata.bidirectional(character) for character in shown}
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")]
    assert not directions & {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    assert escape(shown) == shown
    shown.encode()


@given(st.dictionaries(st.text(), st.text()), st.booleans())
def test_harmless_json_is_the_same_document(value: dict[str, str], ascii_only: bool) -> None:
    text = harmless_json(json.dumps(value, ensure_ascii=ascii_only))
    assert json.loads(text) == value
    assert escape(text) == text


@pytest.mark.parametrize(
    ("text", "kept"),
    [("plain é \x1b", "plain é \x1b"), ("a\udcffb", r"a\udcffb"), ("\ud800", r"\ud800")],
    ids=["valid text", "a byte of a file name", "half a surrogate pair"],
)
def test_valid_text_can_be_encoded(text: str, kept: str) -> None:
    assert utf8_text(text) == kept


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 records"), (1, "1 record"), (2, "2 records"), (1000, "1000 records")],
)
def test_plural(count: int, words: str) -> None:
    assert plural(count, "record") == words
