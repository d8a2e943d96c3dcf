"""The status document: what is taken for an answer, what is not, and what it comes to."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from guard.core.base.json_text import MOST_DEPTH_IN_TEXT, objects_in
from guard.core.probe.answer import (
    MOST_BYTES,
    Answer,
    BadAnswer,
    answer_schema,
    extract_answer,
    probe_question,
)
from tests.support.cost import cpu_limit

NONCE = "0123456789abcdef"
OTHER = "fedcba9876543210"


def document(status: str = "complete", nonce: str | None = NONCE, **fields: Any) -> str:
    """An answer as a model would print it."""
    return json.dumps({"nonce": nonce, "status": status, **fields} if nonce else {"status": status})


FULL: dict[str, Any] = {
    "message": "Two of three are done.",
    "agents_active": True,
    "agents_details": "one runs the tests",
    "tasks_completed": ["1.1", "1.2"],
    "tasks_pending": ["1.3"],
    "commits_made": 2,
    "should_continue": True,
    "next_action": "Write the last test.",
    "needs_person": True,
    "question": "Which database?",
}


def test_every_field_is_read() -> None:
    answer = extract_answer(document("working", **FULL).encode(), NONCE)
    lists = {name: tuple(value) for name, value in FULL.items() if isinstance(value, list)}
    assert answer == Answer(status="working", **{**FULL, **lists})


def test_only_the_status_is_needed() -> None:
    assert extract_answer(document("waiting").encode(), NONCE) == Answer(status="waiting")


FOUND: dict[str, str] = {
    "plain": document(),
    "with space around it": f"\n\n  {document()}\n",
    "spread over lines": json.dumps(json.loads(document()), indent=4),
    "fenced": f"```json\n{document()}\n```",
    "fenced without a language": f"```\n{document()}\n```",
    "inside prose": f"Here is my status: {document()} Anything else?",
    "after the nonce in prose": f"Nonce {NONCE} it is.\n{document()}",
    "after prose with a brace": f"A set is {{1, 2 and so on.\n{document()}",
    "after prose with an odd quote": f'A 5" disk, then {document()}',
    "after code with braces": f"function f() {{ return {{}} }}\n{document()}",
    "beside an object without a nonce": f'{{"status": "working"}}\n{document()}',
    "beside an old answer": f"{document('working', OTHER)}\n{document()}",
    "with braces in a text": document(message='use {"a": {} and ]'),
    "with an escaped quote in a text": document(message='say "}" now'),
    "with a nonce in escapes beside it": document(message="naïve \U0001f600"),
}


@pytest.mark.parametrize("text", FOUND.values(), ids=FOUND)
def test_an_answer_is_found(text: str) -> None:
    assert extract_answer(text.encode(), NONCE).status == "complete"


MANY: dict[str, Any] = {f"key{number}": number for number in range(100)}
PASSED_OVER: dict[str, tuple[str, Answer]] = {
    "a key of its own": (document(confidence=1, notes={"a": [1]}), Answer(status="complete")),
    "capitals": (document("Complete"), Answer(status="complete")),
    "capitals and space": (document(" WORKING\n"), Answer(status="working")),
    "helpers, in camel case": (
        document(agentsActive=True), Answer(status="complete", agents_active=True)),
    "keys in capitals": (
        document().replace("nonce", "Nonce").replace("status", "STATUS"), Answer(status="complete")),
    "work that is left, in other spellings": (
        document(Tasks_Pending=["1.3"], shouldContinue=True),
        Answer(status="complete", tasks_pending=("1.3",), should_continue=True)),
    "a sentence twice": (document(message="a", Message="b"), Answer(status="complete", message="a")),
    "null everywhere": (document("waiting", **dict.fromkeys(FULL)), Answer(status="waiting")),
    "a number for a message": (document(message=7), Answer(status="complete")),
    "a fraction of a commit": (document(commits_made=1.5), Answer(status="complete")),
    "less than no commits": (document(commits_made=-1), Answer(status="complete")),
    "a number beyond all numbers": (
        document(commits_made=0).replace(" 0", " 1e999"), Answer(status="complete")),
    "a word for commits": (document(commits_made="7"), Answer(status="complete")),
    "a text for the tasks that are done": (
        document(tasks_completed="all", message="m"), Answer(status="complete", message="m")),
    "a message that is too long": (
        document(message="m" * 4097, commits_made=7), Answer(status="complete", commits_made=7)),
    "a question where yes or no was asked": (
        document("working", needs_person="Which database?"),
        Answer(status="working", needs_person=True, question="Which database?")),
    "a word for no": (
        document("working", needs_person="No", question=""), Answer(status="working")),
    "a number for a question": (
        document("working", needs_person=True, question=7),
        Answer(status="working", needs_person=True)),
    "beside a field that decides": (
        document(message=1, tasks_pending=["1.3"], should_continue=True),
        Answer(status="complete", tasks_pending=("1.3",), should_continue=True)),
}  # fmt: skip


@pytest.mark.parametrize(("text", "answer"), PASSED_OVER.values(), ids=PASSED_OVER)
def test_what_decides_nothing_is_passed_over(text: str, answer: Answer) -> None:
    assert extract_answer(text.encode(), NONCE) == answer


REFUSED: dict[str, tuple[str | bytes, str]] = {
    "nothing": ("", "no JSON object"),
    "prose": ("All done, everything is complete!", "no JSON object"),
    "the question itself": (probe_question(NONCE), "no JSON object"),
    "two that contradict each other": (f"{document()}\n{document('working')}", "2 objects claim"),
    "the same twice": (f"{document()}\n{document()}", "2 objects claim"),
    "one beside a broken one": (f'{document()}{{"nonce":"{NONCE}","status":NaN}}', "2 objects"),
    "one beside one that is cut off": (f"{document('working')[:-1]}\n{document()}", "2 objects"),
    "an old answer": (document(nonce=OTHER), "nonce of this probe"),
    "no nonce": (document(nonce=None), "nonce of this probe"),
    "the nonce in another field": (f'{{"status":"complete","message":"{NONCE}"}}', "nonce of this"),
    "a nonce that is a list": (f'{{"nonce":["{NONCE}"],"status":"complete"}}', "nonce of this"),
    "an answer inside another object": (f'{{"result":{document()}}}', "nonce of this probe"),
    "a status of its own": (document("done"), "status"),
    "null for the status": (f'{{"nonce":"{NONCE}","status":null}}', "status: Field required"),
    "a status with more words": (document("complete, I think"), "status"),
    "101 keys": (document(**MANY), "more than 100 keys"),
    "no status": (f'{{"nonce":"{NONCE}"}}', "status: Field required"),
    "a word for true": (document(agents_active="true"), "agents_active"),
    "a number for true": (document(agents_active=1), "agents_active"),
    "a text for a list": (document(tasks_pending="1.3"), "tasks_pending"),
    "too many tasks": (document(tasks_pending=["t"] * 501), "tasks_pending"),
    "a task that is too long": (document(tasks_pending=["t" * 513]), "tasks_pending.0"),
    "a key twice": (f'{{"nonce":"{NONCE}","status":"working","status":"complete"}}', "twice"),
    "a key in two spellings": (document(agents_active=True, agentsActive=False), "twice"),
    "one beside one in capitals": (
        document() + document("working").replace("nonce", "NONCE"),
        "2 objects claim",
    ),
    "the nonce twice": (f'{{"nonce":"{OTHER}","status":"complete","nonce":"{NONCE}"}}', "twice"),
    "NaN": (f'{{"nonce":"{NONCE}","status":"complete","commits_made":NaN}}', "no JSON object"),
    "half a surrogate pair": (document(message="@").replace("@", "\\ud800"), ""),
    "a comma too many": (document().replace("}", ",}"), ""),
    "single quotes": (document().replace('"', "'"), "no JSON object"),
    "a comment": (document().replace("{", "{ // now\n"), "no JSON object"),
    "cut off": (document()[:-1], "no JSON object"),
    "a line end in a text": (document(message="@").replace("@", "\n"), "no JSON object"),
    "a list around a broken one": (f"[{document()[:-1]}]", "no JSON object"),
    "bytes that are not UTF-8": (b"\xff" + document().encode(), "not UTF-8"),
    "33 deep": (document() + '{"a":' * 33 + "1" + "}" * 33, "nested more than 32 deep"),
    "10,001 brackets": (document() + "{}" * 10_000, "more than 10000 brackets"),
    "100,000 deep": ('{"a":' * 100_000 + document() + "}" * 100_000, "more than 10000 brackets"),
    "more than a mebibyte": (document() + " " * MOST_BYTES, f"longer than {MOST_BYTES} bytes"),
}


@pytest.mark.parametrize(("text", "said"), REFUSED.values(), ids=REFUSED)
def test_refused(text: str | bytes, said: str) -> None:
    with pytest.raises(BadAnswer) as caught:
        extract_answer(text if isinstance(text, bytes) else text.encode(), NONCE)
    assert said in str(caught.value)


def test_a_reason_is_one_short_harmless_line() -> None:
    status = "\x1b[2J\n" + "k" * 100_000
    with pytest.raises(BadAnswer) as caught:
        extract_answer(document(status).encode(), NONCE)
    said = str(caught.value)
    assert len(said) <= 201
    assert said.isprintable()


WHOLE: dict[str, tuple[str, bool]] = {
    "one document without a nonce": (document(nonce=None), True),
    "one document with the nonce": (document(), True),
    "one document with another nonce": (document(nonce=OTHER), False),
    "a document inside prose without a nonce": (f"ok: {document(nonce=None)}", False),
    "a fenced document without a nonce": (f"```\n{document(nonce=None)}\n```", False),
    "two documents without a nonce": (f"{document(nonce=None)}\n{document(nonce=None)}", False),
    "a document inside prose with the nonce": (f"ok: {document()}", True),
}


@pytest.mark.parametrize(("text", "accepted"), WHOLE.values(), ids=WHOLE)
def test_where_the_nonce_may_be_left_out(text: str, accepted: bool) -> None:
    try:
        extract_answer(text.encode(), NONCE, whole_may_omit_nonce=True)
    except BadAnswer:
        assert not accepted
    else:
        assert accepted


HOSTILE: dict[str, str] = {
    "opening braces": "{",
    "objects in objects": '{"a":',
    "braces and quotes": '{"',
    "braces and escaped quotes": '{\\"',
    "quotes with a backslash": '{"\\',
    "empty objects": "{}",
    "broken objects": "{x",
    "texts": '""',
    "texts of backslashes": '"\\\\"',
    "wrong ends": "{[}",
    "texts that end with the line": '{"a\n',
    "closing braces": "}",
}


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("start", ["", "{", '{"a":['], ids=["bare", "in an object", "in a list"])
def test_a_mebibyte_of_anything_is_refused_in_time(piece: str, start: str) -> None:
    text = (start + piece * (MOST_BYTES // len(piece)))[: MOST_BYTES - 200] + document("waiting")
    with cpu_limit():
        try:
            extract_answer(text.encode(), NONCE)
        except BadAnswer as error:
            assert "\n" not in str(error)  # noqa: PT017


def test_a_mebibyte_that_is_one_answer_is_judged_in_time() -> None:
    many: list[dict[str, Any]] = [
        {"tasks_pending": ["t"] * 100_000},
        {f"key{number}": number for number in range(60_000)},
    ]
    for fields in many:
        with cpu_limit(), pytest.raises(BadAnswer):
            extract_answer(document(**fields).encode(), NONCE)


READINGS = [
    ("complete", {}, "complete"),
    ("complete", {"agents_active": True}, "waiting"),
    ("complete", {"should_continue": True, "tasks_pending": ("1.3",)}, "working"),
    ("complete", {"should_continue": True}, "complete"),
    ("complete", {"tasks_pending": ("1.3",)}, "complete"),
    (
        "complete",
        {"agents_active": True, "should_continue": True, "tasks_pending": ("1.3",)},
        "waiting",
    ),
    ("waiting", {}, "waiting"),
    ("working", {"agents_active": True}, "working"),
]


@pytest.mark.parametrize(
    ("status", "fields", "reading"),
    READINGS,
    ids=lambda value: "+".join(value) or "alone" if isinstance(value, dict) else value,
)
def test_what_an_answer_comes_to(status: Any, fields: dict[str, Any], reading: str) -> None:
    assert Answer(status=status, **fields).reading() == reading


def test_the_question_names_every_key_of_the_schema_and_the_nonce() -> None:
    text, schema = probe_question(NONCE), answer_schema(NONCE)
    assert NONCE in text
    assert not text.startswith("-")
    assert [name for name in schema["properties"] if f"- {name} (" not in text] == []


def test_the_schema_is_strict_and_asks_for_what_is_read() -> None:
    schema = answer_schema(NONCE)
    Draft202012Validator.check_schema(schema)
    assert set(schema["properties"]) == {"nonce", *Answer.model_fields}
    assert schema["required"] == list(schema["properties"])
    assert schema["additionalProperties"] is False
    used = {key for one in schema["properties"].values() for key in one}
    assert used <= {"type", "enum", "items", "description"}
    valid = {"nonce": NONCE, "status": "working", **FULL}
    assert Draft202012Validator(schema).is_valid(valid)
    assert extract_answer(json.dumps(valid).encode(), NONCE).status == "working"
    assert not Draft202012Validator(schema).is_valid({**valid, "nonce": OTHER})


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3)
)


@given(st.dictionaries(st.text(), values, min_size=1), st.text(alphabet="ab c.,:;'`\n-_"))
def test_an_object_is_found_whatever_prose_surrounds_it(thing: dict[str, Any], prose: str) -> None:
    text = json.dumps(thing)
    assert objects_in(f"{prose}{text}{prose}") == [text]


@given(st.text(alphabet='{}[]",:\\ \n1anX'))
def test_whatever_is_found_is_apart_and_in_order(text: str) -> None:
    try:
        found = objects_in(text)
    except ValueError:
        assert text.count("{") + text.count("[") > MOST_DEPTH_IN_TEXT
        return
    at = 0
    for one in found:
        at = text.index(one, at) + len(one)
        assert one[0] + one[-1] == "{}"


@given(st.binary(max_size=300))
def test_no_bytes_are_an_answer_by_chance(data: bytes) -> None:
    with pytest.raises(BadAnswer):
        extract_answer(data, NONCE)
