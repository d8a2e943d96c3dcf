"""Render guard's scripts for git's hooks, and tell them from foreign, older and changed ones.

The second line names guard, the hook, the version and, once installed, a digest of all other lines: a script that the user has
changed since is not guard's to overwrite.
"""

import re
import shlex
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from guard.context.resources import folder
from guard.core.hooks.event_kinds import GIT_HOOKS

MARKER = "completion-guard hook"
_LINE = re.compile(
    rb"^# completion-guard hook: (?P<name>[a-z-]+) (?P<version>[0-9]{1,6})(?: (?P<digest>[0-9a-f]{16}))?$",
    re.MULTILINE,
)
_PROGRAM = re.compile(rb"^program=.*$", re.MULTILINE)
_BY_HAND = frozenset(
    {
        *("e335f89f7ac41f0b", "ff614f2ad1815c5b", "6642c11a2e9e4b88"),
        *("ac73ae70a7081fe4", "f8f1ea18f34353b0", "4706daf02c02d62b"),
        *("e2df3cef414ba3a3", "25e1a140b067c78a", "afb2b39f90d85a02"),
        *("7fe9eeb8596a8d01", "b36def09866cefaa"),
    }
)
"""Digests of older scripts that were meant to be copied by hand, and so hold no digest themselves."""

Kind = Literal["current", "older", "newer", "changed", "other"]


@dataclass(frozen=True)
class Script:
    """A file in the place of a hook, classified."""

    kind: Kind
    program: str | None = None
    """The program that the script calls, if it is guard's."""


def render_script(event: str, program: str) -> bytes:
    """Return the script for a hook; it calls guard by the path `program`."""
    template = _template(event)
    line = b"program=" + shlex.quote(program).encode("utf-8", "surrogateescape")
    text = _PROGRAM.sub(lambda _found: line, template, count=1)
    found = _LINE.search(text)
    assert found is not None
    return text[: found.end()] + b" " + _digest(text).encode() + text[found.end() :]


def read_script(event: str, data: bytes) -> Script:
    found = _LINE.search(data[:1024])
    if found is None or found["name"].decode() != event:
        return Script("other")
    ours = _LINE.search(_template(event))
    assert ours is not None
    version, known = int(found["version"]), int(ours["version"])
    if version > known:
        return Script("newer")
    digest = (found["digest"] or b"").decode()
    is_unchanged = digest == _digest(data) if digest else _is_by_hand(event, data)
    if not is_unchanged:
        return Script("changed")
    program = _program(data)
    is_current = version == known and data == render_script(event, program or "guard")
    return Script("current" if is_current else "older", program)


def _template(event: str) -> bytes:
    assert event in GIT_HOOKS
    return (folder("hooks") / event).read_bytes()


def _digest(data: bytes) -> str:
    # Over all lines but the one that holds the digest.
    return sha256(_LINE.sub(b"", data, count=1)).hexdigest()[:16]


def _is_by_hand(event: str, data: bytes) -> bool:
    return data == _template(event) or _digest(data) in _BY_HAND


def _program(data: bytes) -> str | None:
    found = _PROGRAM.search(data)
    if found is None:
        return None
    try:
        words = shlex.split(found[0].decode("utf-8", "surrogateescape").partition("=")[2])
    except ValueError:
        return None
    return words[0] if words else None
