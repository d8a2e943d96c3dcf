"""Word a stop decision: for the agent that is asked to go on, and for the user when it stops with work left."""

from collections.abc import Sequence
from dataclasses import dataclass

from guard.core.base.text import escape, plural, shorten
from guard.core.hooks.event_kinds import NOT_DONE
from guard.core.team.state import Member

_MOST_NAMED = 10
_LONGEST_NAME = 200
_LONGEST_DETAIL = 500
_LONGEST_WHY = 240
_SHORT_COMMIT = 12


@dataclass(frozen=True, slots=True)
class Refutation:
    """A proof that refutes the commit at which the session wants to stop."""

    commit: str
    detail: str
    failing: tuple[str, ...] = ()
    weakened: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenWork:
    """The work that a session still has to do: helpers to wait for, files to commit, refuted work to repair."""

    members: tuple[Member, ...] = ()
    files: tuple[str, ...] = ()
    for_secrets: tuple[str, ...] = ()
    """Files that are to stay uncommitted, because their names are made for secrets."""
    refutation: Refutation | None = None


def go_on_text(agent: str, left: OpenWork) -> str:
    parts = []
    if left.members:
        parts += [_describe_members(left.members, "\n- "), _how_to_wait(agent)]
    if left.files:
        parts += [
            _describe_files(left.files, "\n- "),
            "Commit what belongs to your work, with a message that says what changed; or say why it is to stay uncommitted.",
        ]
        if left.for_secrets:
            names = _join_names(left.for_secrets, "\n- ")
            parts.append(f"Do not commit these, whose names are made for secrets:{names}")
    if left.refutation is not None:
        parts.append(_describe_repair(left.refutation))
    return "\n".join([NOT_DONE, *parts])


def let_go_text(left: OpenWork, blocks: int) -> str:
    """Tell the user in one line that the session stops, after guard asked it `blocks` times to go on."""
    times = "once" if blocks == 1 else f"{blocks} times"
    return f"guard lets the session stop after asking it to go on {times}: {summary(left)}"


def summary(left: OpenWork) -> str:
    parts = [_describe_members(left.members, " ")] if left.members else []
    parts += [_describe_files(left.files, " ")] if left.files else []
    parts += [_describe_refutation(left.refutation)] if left.refutation is not None else []
    line = "; ".join(parts)
    return line if len(line) <= _LONGEST_DETAIL else f"{line[: _LONGEST_DETAIL - 1]}…"


def _describe_members(members: Sequence[Member], mark: str) -> str:
    subject = "helper of the session is" if len(members) == 1 else "helpers of the session are"
    names = [_name(member) for member in members]
    return f"{len(members)} {subject} still at work:{_join_names(names, mark)}"


def _name(member: Member) -> str:
    name = f"{member.kind.replace('_', ' ')} {member.member}"
    return f"{name} ({member.description})" if member.description else name


def _describe_files(files: Sequence[str], mark: str) -> str:
    verb = "is" if len(files) == 1 else "are"
    return f"{plural(len(files), 'file')} {verb} not committed:{_join_names(files, mark)}"


def _describe_refutation(found: Refutation) -> str:
    why = shorten(escape(found.detail), _LONGEST_WHY)
    commit = escape(found.commit)[:_SHORT_COMMIT]
    return f"the project's own checks refute commit {commit}: {why}"


def _describe_repair(found: Refutation) -> str:
    lines = [_describe_refutation(found)]
    if found.failing:
        names = _join_names(found.failing, "\n- ")
        lines.append(f"These tests fail now:{names}")
    if found.weakened:
        names = _join_names(found.weakened, "\n- ")
        lines.append(f"These tests were removed, skipped or rewritten:{names}")
    lines.append("Repair the code and commit it; do not remove, skip or weaken tests.")
    return "\n".join(lines)


def _join_names(names: Sequence[str], mark: str) -> str:
    shown = [shorten(escape(name), _LONGEST_NAME) for name in names[:_MOST_NAMED]]
    more = len(names) - len(shown)
    rest = [f"and {more} more"] if more else []
    comma = "" if mark.startswith("\n") else ","
    return mark + f"{comma}{mark}".join([*shown, *rest])


def _how_to_wait(agent: str) -> str:
    if agent == "codex":
        return (
            "They end with your turn and their work is lost: call wait_agent for them, and take in what they did, "
            "before you end it."
        )
    return (
        "Wait for them before you stop; if one has ended already, `guard team leave --member NAME` says so, "
        "with --session and the id of this session."
    )
