"""Every state: a snapshot changes nothing and has every byte; a rescue comes to what the table says.

Beside it stands what `git add -A && git commit` loses in the same state.
"""

import os
from pathlib import Path

import pytest

from guard.core.rescue.commit_message import is_conventional
from guard.core.snapshots.snapshot import Rescue, Snapshot
from guard.errors import RepositoryProblem
from guard.git.locate import Repository, find_repository
from guard.rescue import rescue
from guard.rescue.order import Orders
from guard.snapshots.project import Site
from guard.snapshots.take import take_and_prune
from tests.rescue.states import STATES, State, start
from tests.rescue.states_start import ANYTHING
from tests.support import TIME_LIMIT, git
from tests.support.losses import (
    Imprint,
    as_blobs,
    asked,
    brought_back,
    git_dir_of,
    imprint,
    lost_by_snapshot,
    naive_commit,
    work_in,
)
from tests.support.rescues import BY_HAND, NOW, contents

every_state = pytest.mark.parametrize("state", STATES.values(), ids=STATES.keys())
OWN = ("workspace", "home", "back", "borrower.git")
OPERATION = (
    *(
        "HEAD",
        "ORIG_HEAD",
        "MERGE_HEAD",
        "MERGE_MSG",
        "MERGE_MODE",
        "MERGE_AUTOSTASH",
        "SQUASH_MSG",
    ),
    *("CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "BISECT_START", "BISECT_TERMS"),
    *("rebase-merge/**/*", "rebase-apply/**/*", "sequencer/**/*"),
)


class Scene:
    """A state, built, with what has to be the same afterwards."""

    def __init__(self, state: State, root: Path, workspace: Path, environ: dict[str, str]) -> None:
        self.state, self.root, self.environ = state, root, environ
        self.workspace, self.shadow = workspace, workspace / "shadow.git"
        known = find_repository(root, lambda _: None) if state.known else None
        self.left = [os.fsencode(path) for path in state.build(root)]
        self.repository: Repository = known or find_repository(root, lambda _: None)
        self.project = state.kept(root, self.left)
        self.work = work_in(root, self.project)
        self.status = status(root)
        (root.parent / "ran").unlink(missing_ok=True)
        self.before = self.imprint()

    def imprint(self) -> Imprint:
        """Everything that was built, wherever it lies."""
        return imprint(self.root.parent, OWN)

    def snapshot(self) -> Snapshot:
        return take_and_prune(self.site(), BY_HAND)

    def site(self) -> Site:
        return Site(self.repository, self.workspace, self.environ, TIME_LIMIT)

    def rescue(self) -> Rescue:
        orders = Orders("r1", 2, self.state.branch, self.left)
        return rescue(self.site(), orders, NOW)

    def assert_recoverable(self, kept: Snapshot) -> None:
        """Every byte of the work tree, of all stages of the index, of what was put aside, of the operation in progress."""
        back = brought_back(kept, self.shadow, self.root.parent / "back")
        assert back == self.project
        assert kept.files == len(self.project)
        assert lost_by_snapshot(self.work, self.shadow) == 0
        git_dir = self.repository.git_dir
        for path in (path for pattern in OPERATION for path in git_dir.glob(pattern)):
            if path.is_file():
                name = path.relative_to(git_dir).as_posix()
                words = ("cat-file", "blob", f"{kept.ref}:gitdir/{name}")
                assert asked(self.shadow, *words) == os.fsdecode(path.read_bytes()), name

    def assert_nothing_ran(self) -> None:
        assert not (self.root.parent / "ran").exists()


@pytest.fixture
def scene(state: State, repository: Path, workspace: Path) -> Scene:
    start(repository)
    workspace.mkdir(mode=0o700)
    more = {name: value.format(root=repository) for name, value in state.environ.items()}
    return Scene(state, repository, workspace, {**os.environ, **more})


def status(root: Path) -> str | None:
    """What git says of the work tree, if it says anything."""
    options = ("--porcelain=v2", "--untracked-files=all", "--ignored", "--branch", "-z")
    git_dir = git_dir_of(root)
    here = {"GIT_WORK_TREE": os.fspath(root)}
    return asked(git_dir, "status", *options, **here) if git_dir.is_dir() else None


@every_state
def test_a_snapshot_changes_nothing_and_has_every_byte(state: State, scene: Scene) -> None:
    kept = scene.snapshot()
    assert scene.imprint() == scene.before
    scene.assert_nothing_ran()
    assert status(scene.root) == scene.status
    scene.assert_recoverable(kept)
    assert len(kept.skipped) == len(state.skipped), kept.skipped
    assert all(map(str.startswith, kept.skipped, state.skipped)), kept.skipped
    more = {name: scene.environ[name] for name in state.environ}
    naive = naive_commit(scene.root, scene.work, more, state.patience)
    assert bool(naive.lost) == state.naive_loses, naive
    assert (scene.root.parent / "ran").exists() == state.runs


@every_state
def test_a_rescue_comes_to_what_the_table_says(state: State, scene: Scene) -> None:
    head = head_of(scene.repository)
    result = scene.rescue()
    assert result.reason == state.reason, result.detail
    assert {one.path: one.why for one in result.held_back} == state.held
    assert contents(scene.root) == {**contents(scene.root), **scene.project}
    assert head_of(scene.repository) == head
    scene.assert_nothing_ran()
    assert result.snapshot is not None
    scene.assert_recoverable(result.snapshot)
    assert (result.branch is not None) == state.on_branch
    assert bool(result.commits) == (state.on_branch or state.reason == "rescued")
    assert_only_objects_and_branches_are_new(scene)
    if state.sound and scene.repository.git_dir.is_dir():
        assert asked(scene.repository.git_dir, "fsck", "--strict") is not None
    assert_committed(result, scene)


def head_of(repository: Repository) -> bytes | None:
    path = repository.git_dir / "HEAD"
    return path.read_bytes() if path.is_file() else None


def assert_only_objects_and_branches_are_new(scene: Scene) -> None:
    """All of it where nothing was committed on the branch; else all but the branch and the index."""
    after, before = scene.imprint(), scene.before
    assert not before.keys() - after.keys()
    common = os.fsencode(scene.repository.common_dir) + b"/"
    own = os.fsencode(scene.repository.git_dir) + b"/index"
    for path in (path for path in after if after[path] != before.get(path)):
        inside = path.removeprefix(common)
        assert path.startswith(common) or path + b"/" == common or own.startswith(path), path
        places: tuple[bytes, ...] = (b"objects", b"refs", b"logs")
        if scene.state.reason == "rescued":
            places = (*places, b"index", b"sharedindex", b"worktrees")
        elif before.get(path) is not None and not os.path.isdir(path):
            pytest.fail(f"{path!r} changed")
        assert inside.startswith(places) or os.path.isdir(path), path


def assert_committed(result: Rescue, scene: Scene) -> None:
    """The commit has the paths that were left, and no others; on the branch itself they are clean now."""
    git_dir = scene.repository.git_dir
    for commit in result.commits:
        words = ("show", "-m", "-z", "--format=", "--name-only", "--no-renames", commit)
        changed = {os.fsencode(name) for name in (asked(git_dir, *words) or "").split("\0") if name}
        assert changed
        assert all(name in scene.left or inside(name, scene.left) for name in changed)
        message = asked(git_dir, "show", "-s", "--format=%B", commit) or ""
        assert is_conventional(message.partition("\n")[0])
        assert message.rstrip().endswith("\nGuard-Rescue: r1/2")
    if result.reason == "rescued":
        assert asked(git_dir, "rev-parse", "HEAD") == result.commits[-1] + "\n"
        assert scene.state.remains in (remaining(scene), ANYTHING)
    elif result.commits:
        tip = asked(git_dir, "rev-parse", f"refs/heads/{result.branch}")
        assert tip == result.commits[-1] + "\n"


def remaining(scene: Scene) -> tuple[str, ...]:
    words = ("status", "--porcelain", "-uall", "-z")
    said = asked(scene.repository.git_dir, *words, GIT_WORK_TREE=os.fspath(scene.root))
    return tuple(sorted((said or "").split("\0")[:-1]))


def inside(name: bytes, folders: list[bytes]) -> bool:
    return any(folder.endswith(b"/") and name.startswith(folder) for folder in folders)


@pytest.mark.parametrize(
    ("state", "inner"),
    [
        (STATES["nested repository"], "vendor/lib/.git"),
        (STATES["submodule ahead"], ".git/modules/lib"),
    ],
    ids=["nested repository", "submodule"],
)
def test_the_history_of_a_repository_inside_is_kept(state: State, inner: str, scene: Scene) -> None:
    """Its commits may be nowhere else."""
    scene.snapshot()
    files = {
        os.fsencode(path): ("file", path.read_bytes())
        for folder in ("objects", "refs")
        for path in (scene.root / inner / folder).rglob("*")
        if path.is_file()
    }
    assert len(files) > 3
    assert lost_by_snapshot(as_blobs(files, "sha1"), scene.shadow) == 0


def test_there_are_many_states_and_naive_loses_in_many() -> None:
    assert len(STATES) >= 100
    assert sum(state.naive_loses for state in STATES.values()) >= 40


def test_a_bare_repository_has_no_work_tree(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "bare.git")
    with pytest.raises(RepositoryProblem, match="has no work tree"):
        find_repository(tmp_path / "bare.git", lambda _: None)
