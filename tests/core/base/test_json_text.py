"""JSON from outside: what is read, and what is refused with which words."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.base.json_text import MOST_DEPTH, loads
from tests.support.cost import cpu_limit

REFUSED: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "Expecting value"),
    "half a document": (b'{"a": 1', "Expecting"),
    "something after the document": (b"{} {}", "Extra data"),
    "a comma too many": (b"[1,]", ""),
    "single quotes": (b"{'a': 1}", ""),
    "a comment": (b"{} // done", ""),
    "NaN": (b"[NaN]", "NaN is not JSON"),
    "Infinity": (b"[Infinity]", "Infinity is not JSON"),
    "-Infinity": (b"[-Infinity]", "-Infinity is not JSON"),
    "a key twice": (b'{"a": 1, "a": 1}', "the key 'a' stands twice"),
    "a key twice in two spellings": (b'{"a": 1, "\\u0061": 1}', "the key 'a' stands twice"),
    "a key twice further down": (b'[{"x": {"b": 1, "c": 2, "b": 3}}]', "the key 'b' stands twice"),
    "bytes that are not UTF-8": (b'"\xff"', "utf-8"),
    "UTF-16": ("{}".encode("utf-16"), "utf-8"),
    "a byte order mark": (b"\xef\xbb\xbf{}", "BOM"),
    "half a surrogate pair": (b'"\\ud800"', ""),
    "half a surrogate pair as a key": (b'{"\\udc00": 1}', ""),
    "a control character in a text": (b'"a\nb"', "control character"),
    "65 lists": (b"[" * 65 + b"]" * 65, f"nested more than {MOST_DEPTH} deep"),
    "65 objects": (b'{"a":' * 65 + b"1" + b"}" * 65, f"nested more than {MOST_DEPTH} deep"),
    "a number of 5,000 digits": (b"9" * 5000, ""),
}


@pytest.mark.parametrize(("data", "said"), REFUSED.values(), ids=REFUSED)
def test_refused(data: bytes, said: str) -> None:
    with pytest.raises(ValueError) as caught:
        loads(data)
    assert said.lower() in str(caught.value).lower()
    assert "\n" not in str(caught.value)


READ: dict[str, tuple[bytes, Any]] = {
    "space around it": (b" \n[1]\t", [1]),
    "64 lists": (b"[" * 64 + b"]" * 64, None),
    "brackets in a text": (b'"' + b"[" * 100 + b'"', "[" * 100),
    "a quote in a text before brackets": (b'["\\"[[[[", 1]', ['"[[[[', 1]),
    "a backslash at the end of a text": (b'["\\\\", []]', ["\\", []]),
    "a whole surrogate pair": (b'"\\ud83d\\ude00"', "\U0001f600"),
    "the same key on two levels": (b'{"a": {"a": 1}}', {"a": {"a": 1}}),
    "a fraction that is whole": (b"1.0", 1.0),
    "a large whole number": (b"9007199254740993", 9007199254740993),
    "many lists side by side": (b"[" + b"[]," * 1000 + b"[]]", [[]] * 1001),
}


@pytest.mark.parametrize(("data", "value"), READ.values(), ids=READ)
def test_read(data: bytes, value: Any) -> None:
    found = loads(data)
    assert value is None or (found == value and type(found) is type(value))


LARGE: dict[str, bytes] = {
    "10 MB of brackets": b"[" * 10_000_000,
    "10 MB of a text without end": b'"' + b"\\" * 10_000_000,
    "10 MB of quotes": b'"' * 10_000_000,
    "the last of 100,000 keys twice": b"{%s}"
    % b",".join(b'"k%d":1' % number for number in [*range(100_000), 99_999]),
}


@pytest.mark.parametrize("data", LARGE.values(), ids=LARGE)
def test_a_large_file_is_refused_in_time(data: bytes) -> None:
    with cpu_limit(), pytest.raises(ValueError):
        loads(data)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(values, st.booleans())
def test_whatever_json_writes_is_read_as_it_was(value: Any, ascii_only: bool) -> None:
    assert loads(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with suppress(ValueError):
        json.dumps(loads(data), allow_nan=False)
