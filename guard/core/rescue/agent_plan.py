"""Ask an agent's program for the commits of a rescue, and check its answer.

A plan is taken as a whole or not at all. Only its messages and its grouping are used: whatever it says, each change is in
exactly one commit, and no message carries a trailer.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError

from guard.core.base.fields import Frozen, first_problem
from guard.core.base.json_text import loads
from guard.core.base.paths import path_line, spell
from guard.core.base.text import escape, fit_line
from guard.core.rescue.change import Changed
from guard.core.rescue.commit_message import clean_message, is_conventional, list_lines
from guard.core.rescue.groups import Group
from guard.core.rescue.secrets import find_secrets

MOST_FILES = 400
MOST_PROMPT = 48 * 1024
"""In bytes: it goes to some programs as one argument, and the system has a limit for that."""
MOST_ANSWER = 256 * 1024
MOST_COMMITS = 40
LONGEST_SUBJECT = 100
_MOST_BODY = 4000
_PLAIN = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.+@/-]*")
_TRAILER = re.compile(
    r"\s*(?:[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)+|cc|fixes|closes|resolves|refs?|link|bug|issue)\s*:.*",
    re.IGNORECASE,
)
_ADVERTISING = re.compile(r"\W*(?:generated|made|written|created) (?:with|by) \S.*", re.IGNORECASE)

Why = Literal[
    "too_long",
    "not_json",
    "not_a_plan",
    "not_conventional",
    "unknown",
    "twice",
    "missing",
    "secret",
]


class DiscardedPlan(NamedTuple):
    """Why a plan is not taken."""

    why: Why
    detail: str


class _Commit(Frozen):
    message: str
    paths: tuple[str, ...]


class _Plan(Frozen):
    commits: tuple[_Commit, ...]


def _schema() -> dict[str, Any]:
    """In one piece: not every program that takes a schema follows its references."""
    whole = _Plan.model_json_schema()
    whole["properties"]["commits"]["items"] = whole.pop("$defs")[_Commit.__name__]
    return whole


PLAN_SCHEMA = _schema()
"""A plan as a JSON Schema: closed and with every key required, as the strict modes of models want it."""


def planning_prompt(changes: Sequence[Changed]) -> str | None:
    """The question; None if there is nothing to ask about, or too much for one question."""
    if not 0 < len(changes) <= MOST_FILES:
        return None
    files = "\n".join(_change_line(number, change) for number, change in enumerate(changes, 1))
    prompt = (
        "These files are changed and not committed. Plan the commits for them: small, each of one "
        "thought, a module together with its tests. Use no tools, change nothing and commit nothing.\n"
        'Answer with one JSON object and nothing else: {"commits": [{"message": string, "paths": [string]}]}\n'
        "- message: a conventional commit, as in `type(scope): what it does`, in the imperative, its first "
        "line under 72 characters; no trailers\n"
        "- paths: the files of this commit, exactly as they are written here, without the letter; a file "
        "with a number is named by that alone, as in #7; a renamed file by its new name\n"
        "Every file is in exactly one commit.\n"
        f"The files (A added, M modified, D deleted, R renamed):\n{files}"
    )
    return prompt if len(prompt.encode()) <= MOST_PROMPT else None


def _change_line(number: int, change: Changed) -> str:
    was = f", was {path_line(change.old_path)}" if change.old_path is not None else ""
    name = _name(number, change)
    about = "" if name == spell(change.path) else f" ({path_line(change.path)})"
    return f"{change.letter} {name}{about}{was}"


def _name(number: int, change: Changed) -> str:
    """How a plan names a change: by its path, or by its number if the path is not plain."""
    path = spell(change.path)
    return path if _PLAIN.fullmatch(path) else f"#{number}"


def read_plan(answer: str, changes: Sequence[Changed]) -> list[Group] | DiscardedPlan:
    """The commits of a plan in their order, or why it is discarded."""
    if len(answer) > MOST_ANSWER:
        return DiscardedPlan("too_long", f"the answer is longer than {MOST_ANSWER} characters")
    plan = _read(answer)
    if isinstance(plan, DiscardedPlan):
        return plan
    names = {_name(number, change): change for number, change in enumerate(changes, 1)}
    if len(names) < len(changes):
        return DiscardedPlan("twice", "a path changed in two ways")
    if not 0 < len(plan.commits) <= MOST_COMMITS:
        return DiscardedPlan("not_a_plan", f"{len(plan.commits)} commits")
    fault = _bad_message(plan) or _bad_paths(plan, names)
    return fault or [_group(commit, names) for commit in plan.commits]


def _read(answer: str) -> _Plan | DiscardedPlan:
    data = _document(answer.strip()).encode(errors="replace")
    try:
        document = loads(data)
    except ValueError as error:
        return _discard("not_json", f"not one JSON object: {error}")
    if not isinstance(document, dict):
        return DiscardedPlan("not_json", "not one JSON object")
    try:
        return _Plan.model_validate_json(data)
    except ValidationError as error:
        return _discard("not_a_plan", first_problem(error))


def _document(text: str) -> str:
    """What is in the only fence, if there is one that is not inside the document itself."""
    lines = text.splitlines()
    marks = [at for at, line in enumerate(lines) if line.strip().startswith("```")]
    if text.startswith("{") or len(marks) != 2 or lines[marks[1]].strip() != "```":
        return text
    begin, end = marks
    return "\n".join(lines[begin + 1 : end])


def _bad_message(plan: _Plan) -> DiscardedPlan | None:
    for commit in plan.commits:
        subject, _body = _parts(commit.message)
        if not is_conventional(subject):
            return _discard("not_conventional", subject or "an empty message")
        if next(find_secrets(commit.message.encode()), None) is not None:
            return _discard("secret", "a message has something in it that looks like a secret")
        if len(subject) > LONGEST_SUBJECT or len(commit.message) > _MOST_BODY:
            return _discard("too_long", subject)
        if not commit.paths:
            return _discard("not_a_plan", f"no paths: {subject}")
    return None


def _bad_paths(plan: _Plan, names: dict[str, Changed]) -> DiscardedPlan | None:
    named = Counter(path for commit in plan.commits for path in commit.paths)
    answers: tuple[tuple[Why, str | None], ...] = (
        ("unknown", next((path for path in named if path not in names), None)),
        ("twice", next((path for path, times in named.items() if times > 1), None)),
        ("missing", next((path for path in names if path not in named), None)),
    )
    return next((_discard(why, path) for why, path in answers if path is not None), None)


def _discard(why: Why, detail: str) -> DiscardedPlan:
    return DiscardedPlan(why, fit_line(escape(" ".join(detail.split()))))


def _group(commit: _Commit, names: dict[str, Changed]) -> Group:
    subject, body = _parts(commit.message)
    changes = tuple(names[path] for path in commit.paths)
    return Group(subject, body or list_lines([change.line for change in changes]), changes)


def _parts(message: str) -> tuple[str, str]:
    """The subject and the body of a message, without control characters, trailers and advertising."""
    subject, _newline, rest = clean_message(message).partition("\n")
    lines = [fit_line(line) for line in rest.split("\n") if not _TRAILER.match(line)]
    body = "\n".join(line for line in lines if not _ADVERTISING.fullmatch(line)).strip()
    return subject.strip(), re.sub(r"\n{3,}", "\n\n", body)
