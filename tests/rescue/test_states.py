"""Every state: a snapshot changes nothing and has every byte; a rescue comes to what the table says."""

import subprocess
from pathlib import Path

import pytest

from guard.core.rescuing import Rescue
from tests.rescue.states import STATES, State, start
from tests.support import git
from tests.support.rescuing import (
    attempt_rescue,
    contents,
    fingerprint,
    recovered,
    take_snapshot,
)

pytestmark = pytest.mark.parametrize("state", STATES.values(), ids=STATES.keys())
BROKEN = (
    *("not_plain:git", "not_plain:core_bare", "not_plain:core_worktree", "refused"),
    "not_plain:index_damaged",
)


@pytest.fixture(autouse=True)
def started(repository: Path) -> None:
    start(repository)


def test_a_snapshot_changes_nothing_and_has_every_byte(
    state: State, repository: Path, workspace: Path, tmp_path: Path
) -> None:
    state.build(repository)
    before, project = fingerprint(repository / ".git"), contents(repository)
    kept = take_snapshot(repository, workspace)
    assert fingerprint(repository / ".git") == before
    assert contents(repository) == project
    assert recovered(kept, tmp_path / "back") == project
    assert kept.files == len(project)
    assert not (tmp_path / "ran").exists()


def test_a_rescue_comes_to_what_the_table_says(
    state: State, repository: Path, workspace: Path, tmp_path: Path
) -> None:
    left = state.build(repository)
    project, head = contents(repository), (repository / ".git/HEAD").read_bytes()
    before = {} if state.reason == "rescued" else fingerprint(repository / ".git")
    result = attempt_rescue(repository, workspace, left)
    assert result.reason == state.reason, result.detail
    assert contents(repository) == project
    assert (repository / ".git/HEAD").read_bytes() == head
    assert not (tmp_path / "ran").exists()
    assert result.snapshot is not None
    assert recovered(result.snapshot, tmp_path / "back") == project
    assert (result.branch is not None) == state.on_branch
    assert len(result.commits) == (state.on_branch or state.reason == "rescued")
    assert_only_objects_and_a_branch_are_new(repository, before)
    if state.reason not in BROKEN:
        subprocess.run(["git", "fsck", "--strict"], cwd=repository, check=True, capture_output=True)
    assert_committed(result, repository, left)


def assert_only_objects_and_a_branch_are_new(repository: Path, before: dict[str, str]) -> None:
    after = fingerprint(repository / ".git")
    new = {path for path in after if before and before.get(path) != after[path]}
    assert all(path.startswith(("objects/", "refs/heads/guard", "logs/refs/")) for path in new)


def assert_committed(result: Rescue, repository: Path, left: list[bytes | str]) -> None:
    """The commit has the paths that were left, and no others; on the branch itself they are clean now."""
    for commit in result.commits:
        words = ("show", "-z", "--format=", "--name-only", "--no-renames", commit)
        changed = {name for name in git_bytes(repository, *words).split(b"\0") if name}
        wanted = {name if isinstance(name, bytes) else name.encode() for name in left}
        assert changed
        assert all(name in wanted or inside(name, wanted) for name in changed)
        message = git(repository, "show", "-s", "--format=%B", commit)
        assert message.startswith("chore: rescue uncommitted work\n")
        assert message.rstrip().endswith("\n\nGuard-Rescue: r1/2")
    if result.reason == "rescued":
        assert git(repository, "rev-parse", "HEAD").strip() == result.commits[-1]
    elif result.commits:
        tip = git(repository, "rev-parse", f"refs/heads/{result.branch}").strip()
        assert tip == result.commits[-1]


def inside(name: bytes, folders: set[bytes]) -> bool:
    return any(folder.endswith(b"/") and name.startswith(folder) for folder in folders)


def git_bytes(repository: Path, *words: str) -> bytes:
    done = subprocess.run(["git", *words], cwd=repository, check=True, capture_output=True)
    return done.stdout
