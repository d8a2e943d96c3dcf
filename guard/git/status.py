"""Read what `git status`, the index and the ignore rules say of a work tree.

Everything is switched off by which the repository could make git run something: a clean filter would run on any file whose time
was touched. So a file under such a filter may be listed though only its time changed.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from guard.core.base.first_use import late_pattern
from guard.core.base.paths import unspell
from guard.errors import RepositoryProblem
from guard.git.ignore_rules import find_ignored_paths
from guard.git.obstacles import GitObstacle
from guard.git.reader import RepositoryReader

_MOST_NAMES = 1000
_MOST_FILTERS = 200
_STATUS = (
    *("status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames"),
    *("--branch", "--no-ahead-behind", "--ignore-submodules=dirty"),
)
_SETTINGS = {
    "core.checkStat": "default",
    "core.ignoreStat": "false",
    "core.safecrlf": "false",
    "core.trustctime": "true",
    "status.showStash": "false",
}
_HEAD = b"# branch.oid "
_USUAL = (b"H 10", b"H 12")
_SPECIAL = late_pattern(rb"(?:([a-zS]) [0-9]{6}|[A-Z] 160000) ([0-9a-f]+) [0-3]\t(.+)", re.DOTALL)


class StatusEntry(NamedTuple):
    """A path that differs from the last commit."""

    path: bytes
    blob: str | None = None
    """The one that is staged, if one is."""
    staged: bool = False
    unstaged: bool = False
    untracked: bool = False


class SpecialEntry(NamedTuple):
    """A path in the index of which `git status` does not tell everything."""

    path: bytes
    blob: str
    hidden: bool
    """Git was told not to look at the file; else it is a submodule."""


def without_filters(git: RepositoryReader) -> RepositoryReader:
    """Return a reader of the repository under which every filter that its settings name does nothing."""
    return git.with_settings({**_SETTINGS, **filter_overrides(git)})


def filter_overrides(git: RepositoryReader) -> dict[str, str]:
    names = git.ask("config", "--null", "--name-only", "--get-regexp", r"^filter\.", codes=(0, 1))
    drivers = sorted({name.rpartition(b".")[0] for name in names.split(b"\0") if name})
    if len(drivers) > _MOST_FILTERS:
        raise RepositoryProblem(
            f"git's configuration names {len(drivers)} filters, more than guard handles",
            "remove filters that you do not need; `git config --get-regexp '^filter'` lists them",
        )
    settings: dict[str, str] = {}
    for driver in map(os.fsdecode, drivers):
        settings |= {f"{driver}.{key}": "" for key in ("clean", "smudge", "process")}
        settings[f"{driver}.required"] = "false"
    return settings


def read_status(git: RepositoryReader) -> bytes:
    """Ask what differs from the last commit; where git fails because of a submodule, without the submodules."""
    try:
        return git.ask(*_STATUS)
    except GitObstacle:
        raise
    except RepositoryProblem as error:
        # Git gives up on everything if it cannot read the settings or the HEAD of one submodule.
        with suppress(RepositoryProblem):
            modules = [entry.path for entry in list_special(git) if not entry.hidden]
            if 0 < len(modules) <= _MOST_NAMES:
                without = (f":(top,exclude,literal){os.fsdecode(path)}" for path in modules)
                asking = git.with_variable("GIT_LITERAL_PATHSPECS", "0")
                return asking.ask(*_STATUS, "--", ":/", *without)
        raise error from None


def read_status_head(answer: bytes) -> str | None:
    """Return the commit that `git status --branch` names; None before the first one."""
    line = next((line for line in answer.split(b"\0") if line.startswith(_HEAD)), _HEAD)
    oid = line.removeprefix(_HEAD).decode()
    return oid if oid and oid != "(initial)" else None


def parse_status(answer: bytes) -> Iterator[StatusEntry]:
    for line in answer.split(b"\0"):
        if line.startswith(b"? "):
            yield StatusEntry(line[2:], untracked=True)
        elif line.startswith(b"1 "):
            _, changed, _, _, _, _, _, blob, path = line.split(b" ", 8)
            staged, unstaged = changed[:1] != b".", changed[1:] != b"."
            there = staged and blob.strip(b"0") != b""
            yield StatusEntry(path, blob.decode() if there else None, staged, unstaged)
        elif line.startswith(b"u "):
            yield StatusEntry(line.split(b" ", 10)[10], unstaged=True)


def list_special(git: RepositoryReader) -> list[SpecialEntry]:
    """List the files that git was told to take for unchanged or absent, and the submodules."""
    lines = git.ask("ls-files", "-z", "-s", "-v").split(b"\0")
    found = (_SPECIAL.fullmatch(line) for line in lines if not line.startswith(_USUAL))
    return [
        SpecialEntry(match[3], match[2].decode(), match[1] is not None) for match in found if match
    ]


def find_ignored(git: RepositoryReader, names: Iterable[str]) -> frozenset[str]:
    """Return the names that git ignores, which no diff ever has; names outside the work tree are not asked for."""
    names_by_path = {unspell(name): name for name in names if _is_below(name)}
    asking = git.with_variable("GIT_LITERAL_PATHSPECS", "0")  # The command knows no literal ones.
    asked = islice(names_by_path, _MOST_NAMES)
    answer = find_ignored_paths(asking.ask, asked, with_index=True)
    return frozenset(names_by_path[path] for path in answer.rules if path in names_by_path)


def _is_below(name: str) -> bool:
    path = os.path.normpath(name)
    return (
        bool(name) and not os.path.isabs(path) and path.split("/")[0] != ".." and "\0" not in name
    )
