"""A small project, what an agent commits to it, and the real git history that this makes."""

import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Runner = Literal["pytest", "unittest", "node"]


@dataclass(frozen=True)
class Replace:
    """A part of a file that becomes another."""

    old: str
    new: str


@dataclass(frozen=True)
class MovedFrom:
    """A file that comes from another place, with some parts replaced."""

    source: str
    replaced: tuple[Replace, ...] = ()


@dataclass(frozen=True)
class Link:
    """A symbolic link."""

    target: str


Content = str | bytes | Replace | tuple[Replace, ...] | MovedFrom | Link | None
"""What becomes of a path; None deletes it."""
Change = Mapping[str, Content]


@dataclass(frozen=True)
class Project:
    """What is there before the agent begins, and how it is tested."""

    runner: Runner
    command: str
    files: Change
    outside: Change = field(default_factory=dict)
    """Files that git ignores."""


@dataclass(frozen=True)
class Case:
    """One history: each change is a commit of the agent."""

    project: Project
    changes: tuple[Change, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of proof, by the names of their variables."""
    by_iteration: bool = False
    """Whether each commit is proven, as in a loop, and not only the last one."""
    left: Change = field(default_factory=dict)
    """What the agent leaves in the work tree, and does not commit."""
    before: Callable[[Path], None] | None = None
    """What is done to the repository before the baseline is committed."""
    after: Callable[[Path], None] | None = None
    """What the agent does after its commits."""


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "protocol.file.allow=always", *words],
        cwd=folder,
        env=environment(folder.parent),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def environment(home: Path) -> dict[str, str]:
    """Return an environment in which nothing of the user's own settings counts."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GIT_", "GUARD_", "PYTEST_", "XDG_", "NODE_", "PYTHON"))
        and name not in ("CI", "VIRTUAL_ENV")
    }
    return {
        **kept,
        "HOME": str(home),
        "XDG_STATE_HOME": str(home / "state"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "agent",
        "GIT_AUTHOR_EMAIL": "agent@localhost",
        "GIT_COMMITTER_NAME": "agent",
        "GIT_COMMITTER_EMAIL": "agent@localhost",
        "PYTHONDONTWRITEBYTECODE": "1",
        # The plugins that are installed beside guard are none of the projects' business, and take longer to load than these to test.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }


def begin(case: Case, folder: Path) -> str:
    """Make the repository, and return the commit that the agent begins at."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    apply(case.project.files, folder)
    if case.before is not None:
        case.before(folder)
    save(folder, "the project")
    apply(case.project.outside, folder)
    return git(folder, "rev-parse", "HEAD")


def apply(change: Change, folder: Path) -> None:
    moved = {
        content.source: (folder / content.source).read_bytes()
        for content in change.values()
        if isinstance(content, MovedFrom)
    }
    for name in moved:
        (folder / name).unlink()
    for name, content in change.items():
        _put(folder / name, content, moved)


def _put(path: Path, content: Content, moved: Mapping[str, bytes]) -> None:
    match content:
        case None:
            path.unlink()
            return
        case Replace() | tuple():
            data = _replace(path.read_text(), content)
        case MovedFrom(source, replaced):
            data = _replace(moved[source].decode(), replaced)
        case str():
            data = content.encode()
        case bytes():
            data = content
        case Link(target):
            path.unlink(missing_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(target)
            return
    if path.is_symlink():
        path.unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _replace(text: str, parts: Replace | tuple[Replace, ...]) -> bytes:
    for part in (parts,) if isinstance(parts, Replace) else parts:
        if part.old not in text:
            raise ValueError(f"there is no {part.old!r} to replace")
        text = text.replace(part.old, part.new)
    return text.encode()


def save(folder: Path, message: str) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)
