"""Write the question of a probe, and read the status document that a session answers with.

An answer is never repaired: a repaired answer can turn "not done" into "done". What decides nothing is passed over: keys that
guard does not know, nulls, capitals in keys and the status, and values that do not fit where only people read them. The
question has a nonce that the answer repeats, so that an old answer, or one quoted from a file, is not taken for this one. For
this reason the question shows no example: a program that echoes its input would answer it.
"""

import json
import re
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints, ValidationError

from guard.core.base.fields import Count, Frozen, Instant, Line, first_problem
from guard.core.base.json_text import loads, objects_in
from guard.core.base.text import escape

MOST_BYTES = 1024 * 1024
_MOST_KEYS = 100
_MOST_TASKS = 500
_REASON_LENGTH = 200

Reading = Literal["complete", "waiting", "working"]
ProbeFailure = Literal[
    "timeout", "unreadable", "overloaded", "limited", "no_cli", "no_session", "auth", "crashed"
]
LASTING: frozenset[ProbeFailure] = frozenset({"no_cli", "no_session", "auth"})
"""Asking again changes nothing; every other failure uses up one probe."""

_Sentence = Annotated[str, StringConstraints(max_length=4096)]
_Tasks = Annotated[tuple[Line, ...], Field(max_length=_MOST_TASKS)]
_Amount = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]


class Answer(Frozen):
    """What a session says of itself: a claim, never evidence."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    status: Reading
    message: _Sentence = ""
    agents_active: bool = False
    agents_details: _Sentence = ""
    tasks_completed: _Tasks = ()
    tasks_pending: _Tasks = ()
    commits_made: Count = 0
    should_continue: bool = False
    next_action: _Sentence = ""
    needs_person: bool = False
    """Whether the session cannot go on without an answer of the user."""
    question: _Sentence = ""

    def reading(self) -> Reading:
        """Return what the status means beside the other fields: a session with helpers or work left is not complete."""
        if self.status != "complete":
            return self.status
        if self.agents_active:
            return "waiting"
        return "working" if self.should_continue and self.tasks_pending else "complete"


_KEYS = {name.replace("_", ""): name for name in ("nonce", *Answer.model_fields)}
_INCIDENTAL = frozenset(
    {"message", "agents_details", "tasks_completed", "commits_made", "next_action", "question"}
)
"""What decides nothing: where its value does not fit, the answer is read without it."""


_NOT_ASKED = frozenset({"", "false", "no", "none", "null"})


class ProbeResult(Frozen):
    """What became of one probe: an answer, or the reason why there is none."""

    answer: Answer | None
    failure: ProbeFailure | None
    lasting: bool
    """Whether the failure stays, however often the question is asked."""
    detail: Line
    retry_at: Instant | None
    """When a limit ends, where the agent's program says so."""
    agent: Line
    session: Line | None
    elapsed_seconds: _Amount
    cost_usd: _Amount | None
    tokens: Count | None


class BadAnswer(ValueError):
    """There is no answer in this output that can be trusted; says why in one line."""

    def __init__(self, reason: object) -> None:
        text = escape(" ".join(str(reason).split()))
        super().__init__(text if len(text) <= _REASON_LENGTH else f"{text[:_REASON_LENGTH]}…")


_MEANINGS: dict[str, tuple[dict[str, Any], str]] = {
    "status": (
        {"type": "string", "enum": ["complete", "waiting", "working"]},
        "complete if all that was asked of you is done, waiting if helpers or background jobs of yours still run, else working",
    ),
    "message": ({"type": "string"}, "how things stand, in one sentence"),
    "agents_active": ({"type": "boolean"}, "whether helpers or background jobs of yours still run"),
    "agents_details": ({"type": "string"}, "what they do, or an empty string"),
    "tasks_completed": (
        {"type": "array", "items": {"type": "string"}},
        "the tasks that are done, by their names",
    ),
    "tasks_pending": (
        {"type": "array", "items": {"type": "string"}},
        "the tasks that are not done, by their names",
    ),
    "commits_made": ({"type": "integer"}, "how many git commits you made in this session"),
    "should_continue": ({"type": "boolean"}, "whether you would do more if you could go on"),
    "next_action": ({"type": "string"}, "what should happen next, in one sentence"),
    "needs_person": (
        {"type": "boolean"},
        "whether you cannot go on at all before a person answers; false for an offer or a courtesy",
    ),
    "question": ({"type": "string"}, "what that person has to answer, or an empty string"),
}


def probe_question(nonce: str) -> str:
    # The prompt does not begin with a hyphen, so that no program takes it for an option.
    keys = "\n".join(
        f"- {name} ({_kind(schema)}): {meaning}" for name, (schema, meaning) in _MEANINGS.items()
    )
    return (
        "This is a status check by the program that supervises this session. Do not go on with "
        "your work, use no tools and change nothing. Say honestly how things stand: what you say "
        "is compared with the repository.\n"
        "Answer with one JSON object and nothing else, with exactly these keys:\n"
        f"- nonce (string): exactly {nonce}\n{keys}"
    )


def _kind(schema: dict[str, Any]) -> str:
    return "list of strings" if schema["type"] == "array" else str(schema["type"])


def answer_schema(nonce: str) -> dict[str, Any]:
    """Return the answer as a JSON Schema: closed and with every key required, as the strict modes of models want it."""
    properties = {"nonce": {"type": "string", "enum": [nonce]}}
    for name, (schema, meaning) in _MEANINGS.items():
        properties[name] = {**schema, "description": meaning}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def extract_answer(output: bytes, nonce: str, *, whole_may_omit_nonce: bool = False) -> Answer:
    """Find the one answer to this probe in an output, plain, fenced or inside prose; BadAnswer if it is not exactly one."""
    text = _text(output)
    try:
        found = objects_in(text)
    except ValueError as error:
        raise BadAnswer(error) from None
    ours = [candidate for candidate in found if nonce in candidate]
    if not ours and whole_may_omit_nonce and found == [text]:
        ours = found
    claims = max(len(ours), _claims(text, nonce))
    if claims > 1:
        raise BadAnswer(f"{claims} objects claim to be the answer")
    if not ours:
        raise BadAnswer(_missing_reason(found))
    return _answer(ours[0], nonce, may_omit_nonce=whole_may_omit_nonce and ours == [text])


def _text(output: bytes) -> str:
    if len(output) > MOST_BYTES:
        raise BadAnswer(f"the answer is longer than {MOST_BYTES} bytes")
    try:
        return output.decode().strip()
    except UnicodeDecodeError:
        raise BadAnswer("the answer is not UTF-8") from None


def _claims(text: str, nonce: str) -> int:
    # Answers that are cut off or broken count too: they may have said otherwise.
    return len(re.findall(rf'"nonce"\s*:\s*"{re.escape(nonce)}"', text, re.IGNORECASE))


def _missing_reason(found: list[str]) -> str:
    if any('"nonce"' in candidate for candidate in found):
        return "the answer does not carry the nonce of this probe"
    return "there is no JSON object with the nonce of this probe in the answer"


def _answer(text: str, nonce: str, *, may_omit_nonce: bool) -> Answer:
    try:
        document = _spell_keys(loads(text.encode()))
        if document.pop("nonce", nonce if may_omit_nonce else None) != nonce:
            raise BadAnswer("the answer does not carry the nonce of this probe")
        if len(document) > _MOST_KEYS:
            raise BadAnswer(f"the answer has more than {_MOST_KEYS} keys")
        return _read_fields(document)
    except ValidationError as error:
        raise BadAnswer(f"the answer does not fit: {first_problem(error)}") from None
    except ValueError as error:
        raise BadAnswer(error) from None


def _spell_keys(document: dict[str, Any]) -> dict[str, Any]:
    """Spell `agentsActive` or `Agents-Active` as guard does: a key that decides must not be passed over as an unknown one."""
    spelled: dict[str, Any] = {}
    for name, value in document.items():
        plain = "".join(filter(str.isalnum, name)).lower()
        key = _KEYS.get(plain, name)
        if key in spelled and key not in _INCIDENTAL:
            raise BadAnswer(f"the key {key!r} stands twice")
        spelled.setdefault(key, value)
    return spelled


def _read_fields(document: dict[str, Any]) -> Answer:
    """Read the keys that are known; null is read as no key, and a status in capitals as the same word."""
    names = Answer.model_fields.keys() & document.keys()
    known = {name: document[name] for name in names if document[name] is not None}
    status = known.get("status")
    if isinstance(status, str):
        known["status"] = status.strip().lower()
    asked = known.get("needs_person")
    if isinstance(asked, str):
        # A model may put the question itself there.
        known["needs_person"] = asked.strip().lower() not in _NOT_ASKED
        known.setdefault("question", asked)
    try:
        return Answer.model_validate_json(json.dumps(known))
    except ValidationError as error:
        unfit = {problem["loc"][0] if problem["loc"] else None for problem in error.errors()}
        if not unfit <= _INCIDENTAL:
            raise
        kept = {name: value for name, value in known.items() if name not in unfit}
        return Answer.model_validate_json(json.dumps(kept))
