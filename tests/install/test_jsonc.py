"""JSON as people write it: what is understood, and what is refused with its line."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.install.jsonc import parse

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=10), inner, max_size=5)
    ),
    max_leaves=30,
)

UNDERSTOOD = {
    "an empty object": ("{}", {}),
    "a comment before and after": ("// a\n{} /* b */", {}),
    "a comment in every gap": ('{/*1*/"a"/*2*/:/*3*/1/*4*/,/*5*/}', {"a": 1}),
    "a trailing comma in a list": ("[1, 2,]", [1, 2]),
    "something like a comment in a text": ('{"url": "http://x/*y*/"}', {"url": "http://x/*y*/"}),
    "a byte order mark": ('\ufeff{"a": []}', {"a": []}),
    "escapes": (r'{"\u0061\n": "\"\\"}', {"a\n": '"\\'}),
    "half of a character": (r'{"a": "\ud800"}', {"a": "\ud800"}),
    "numbers": ("[0, -1, 1.5e3]", [0, -1, 1500.0]),
    "lines of Windows": ('{\r\n\t"a": true\r\n}\r\n', {"a": True}),
}

REFUSED = {
    "nothing": ("", "line 1: the text ends too early"),
    "only a comment": ("// a", "line 1: the text ends too early"),
    "an open object": ('{\n"a": 1', "line 2: the text ends too early"),
    "an open text": ('{"a', "line 1: '\"' is not expected here"),
    "an open comment": ("{} /*", "line 1: '/' is not expected here"),
    "two values": ("{}\n\n{}", "line 3: nothing more is expected here"),
    "no comma": ('{"a": 1\n "b": 2}', "line 2: `,` or `}` is expected here"),
    "a comma alone": ("[,]", "line 1: a value is expected here"),
    "two commas": ("[1,,2]", "line 1: a value is expected here"),
    "the wrong bracket": ("[1}", "line 1: `,` or `]` is expected here"),
    "a key without quotes": ("{a: 1}", "line 1: a key in double quotes is expected here"),
    "no colon": ('{"a" 1}', "line 1: `:` is expected here"),
    "not a number": ("[NaN]", "line 1: NaN is not a value of JSON"),
    "a word": ("[yes]", "line 1: yes is not a value of JSON"),
    "a leading zero": ("[01]", "line 1: 01 is not a value of JSON"),
    "a newline in a text": ('["a\nb"]', "line 1: '\"' is not expected here"),
    "NUL": ("\0", "line 1: '\\x00' is not expected here"),
    "a key twice": ('{"a": 1, "a": 2}', 'the key "a" stands twice in this object'),
    "a key twice, once escaped": (r'{"a": 1, "\u0061": 2}', 'the key "a" stands twice'),
    "too deep": ("[" * 66 + "]" * 66, "nested more than 64 deep"),
    "far too deep": ("[" * 100_000, "nested more than 64 deep"),
}


@pytest.mark.parametrize(("text", "data"), UNDERSTOOD.values(), ids=UNDERSTOOD)
def test_what_is_understood(text: str, data: Any) -> None:
    assert parse(text).root.data == data


@pytest.mark.parametrize(("text", "problem"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse(text)
    assert problem in str(caught.value)


@given(VALUES, st.sampled_from([None, 2, "\t"]))
def test_whatever_python_writes_is_read_alike(data: Any, indent: Any) -> None:
    text = json.dumps(data, indent=indent)
    document = parse(text)
    assert document.root.data == json.loads(text)
    assert text[document.root.start : document.root.end] == text


@given(st.text(alphabet='{}[]:,"\\/*\n 1atrue\ufeff\ud800', max_size=40))
def test_any_text_is_read_or_refused_and_json_is_read(text: str) -> None:
    try:
        expected = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse)
    except ValueError:
        with suppress(ValueError):
            parse(text)
    else:
        assert parse(text).root.data == expected


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError
    return dict(pairs)


def _refuse(name: str) -> Any:
    raise ValueError(name)
