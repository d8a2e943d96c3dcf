"""Names as text: every name has a spelling of its own, and JSON takes it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.base.paths import spell, unspell

SPELLINGS = {
    b"plain.txt": "plain.txt",
    "é/中".encode(): "é/中",
    b"caf\xe9": "caf\\xe9",
    b"caf\\xe9": "caf\\\\xe9",
    b"back\\slash": "back\\\\slash",
    b"\xed\xa0\x80": "\\xed\\xa0\\x80",
    b"new\nline\x1b": "new\nline\x1b",
}


@pytest.mark.parametrize(("name", "text"), SPELLINGS.items(), ids=map(repr, SPELLINGS))
def test_spelled(name: bytes, text: str) -> None:
    assert spell(name) == text
    assert unspell(text) == name


@given(st.binary(max_size=60))
def test_every_name_comes_back(name: bytes) -> None:
    assert unspell(json.loads(json.dumps(spell(name), ensure_ascii=False).encode())) == name
