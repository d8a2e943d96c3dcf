"""Identity, hooks, settings and variables: what surrounds a commit."""

import os
from pathlib import Path

from tests.rescue.states_start import PLENTY, Left, State, after, configured, dirty
from tests.support import git, write

HOOKS = (
    *("pre-commit", "commit-msg", "post-commit", "reference-transaction", "post-index-change"),
    *("prepare-commit-msg", "post-rewrite"),
)


def hooks(text: str, *names: str) -> object:
    def plant(root: Path) -> None:
        for name in names or HOOKS:
            lines = f"#!/bin/sh\ntouch '{root.parent}/ran'\n{text}\n"
            write(root / f".git/hooks/{name}", lines).chmod(0o755)

    return plant


def hooked(text: str, *names: str, loses: bool = True, patience: float = PLENTY) -> State:
    plant = hooks(text, *names)
    assert callable(plant)
    return State(after(plant), naive_loses=loses, patience=patience, runs=True)


def hooks_of_the_user(root: Path) -> None:
    folder = root.parent / "hooks"
    write(folder / "pre-commit", f"#!/bin/sh\ntouch '{root.parent}/ran'\nexit 1\n").chmod(0o755)
    git(root, "config", "--global", "core.hooksPath", str(folder))


def hostile_settings(root: Path) -> Left:
    for key, value in {
        "commit.gpgSign": "true",
        "gpg.program": "touch ../ran; false",
        "core.fsmonitor": "touch ../ran; false",
        "core.editor": "touch ../ran; false",
        "core.pager": "touch ../ran",
        "diff.external": "touch ../ran",
        "alias.update-index": "!touch ../ran",
        "core.hooksPath": "hooks",
        "user.useConfigOnly": "true",
        "core.safecrlf": "true",
    }.items():
        git(root, "config", key, value)
    return dirty(root)


def no_identity(root: Path) -> Left:
    git(root, "config", "--unset", "user.name")
    git(root, "config", "--unset", "user.email")
    git(root, "config", "user.useConfigOnly", "true")
    return dirty(root)


def odd_identity(root: Path) -> None:
    git(root, "config", "user.name", "<>\n")
    git(root, "config", "user.email", "<>")


def of_another_user(root: Path) -> Left:
    """Git refuses a repository whose owner is somebody else."""
    left = dirty(root)
    if os.geteuid() == 0:
        for path in (root, root / ".git"):
            os.chown(path, 12345, 12345)
    return left


def of_another_repository(root: Path) -> Left:
    """As in a hook: the variables name another repository, and another index."""
    git(root.parent, "init", "-q", "other")
    return dirty(root)


SETTINGS = {
    "hooks that destroy": hooked("rm -rf ./*.txt\nexit 1"),
    "hook that refuses": hooked("exit 1", "pre-commit"),
    "hook that refuses the message": hooked("exit 1", "commit-msg"),
    "hook that refuses to prepare": hooked("exit 1", "prepare-commit-msg"),
    "hook that refuses the ref": hooked("exit 1", "reference-transaction"),
    "hook that hangs": hooked("exec sleep 600", "pre-commit", patience=0.5),
    "hook that resets": hooked("git reset -q --hard", "pre-commit"),
    "hook that stashes": hooked("git stash -q -u", "pre-commit", loses=False),
    "hook that edits": hooked("echo more >> edited.txt", "pre-commit", loses=False),
    "hooks of the user's own": State(after(hooks_of_the_user), naive_loses=True, runs=True),
    "settings that run programs": State(hostile_settings, naive_loses=True, runs=True),
    "signing fails": State(
        configured(commit__gpgSign="true", gpg__program="false"), naive_loses=True
    ),
    "no identity": State(no_identity, naive_loses=True),
    "an identity that is none": State(after(odd_identity), naive_loses=True),
    "message cleaned up": State(configured(commit__cleanup="strip", core__commentChar="R")),
    "message template missing": State(configured(commit__template="nowhere.txt")),
    "messages in another encoding": State(configured(i18n__commitEncoding="ISO-8859-1")),
    "no reflogs": State(configured(core__logAllRefUpdates="false")),
    "open to a group": State(configured(core__sharedRepository="group")),
    "symbolic refs by links": State(configured(core__preferSymlinkRefs="true")),
    "quoting off": State(configured(core__quotePath="false")),
    "of another user": State(of_another_user, naive_loses=os.geteuid() == 0),
    "variables of another repository": State(
        of_another_repository,
        environ={"GIT_DIR": "{root}/../other/.git", "GIT_WORK_TREE": "{root}/../other"},
        naive_loses=True,
    ),
    "variables of another index": State(
        dirty, environ={"GIT_INDEX_FILE": "{root}/.git/elsewhere/index"}, naive_loses=True
    ),
    "objects to elsewhere": State(
        dirty, environ={"GIT_OBJECT_DIRECTORY": "{root}/../nowhere"}, naive_loses=True
    ),
    "settings by variables": State(
        dirty,
        environ={
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "core.bare",
            "GIT_CONFIG_VALUE_0": "true",
        },
    ),
    "dates that are none": State(
        dirty,
        environ={"GIT_AUTHOR_DATE": "garbage", "GIT_COMMITTER_DATE": "garbage"},
        naive_loses=True,
    ),
    "another language": State(dirty, environ={"LC_ALL": "de_DE.UTF-8", "LANGUAGE": "de"}),
}
