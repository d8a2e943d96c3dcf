"""What cannot be read, is not reached in time, or changes under the walk: named, and never kept in an old version."""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from guard.core.rescue.settings import SnapshotLimits
from guard.core.snapshots.snapshot import Snapshot
from guard.git.locate import find_repository
from guard.snapshots.project import Project
from guard.snapshots.take import open_for_snapshot, take
from guard.system.clock import Deadline
from tests.rescue.states import start
from tests.snapshots.test_take_faults import WITHOUT_PRIVILEGE, child
from tests.support import git, write
from tests.support.changes import (
    LARGE,
    SETTLED_SECONDS,
    become_file,
    become_folder,
    edit_unseen,
    several,
)
from tests.support.rescues import BY_HAND, contents, take_snapshot
from tests.support.snapshot_chain import (
    manifest,
    saved,
    take_next,
    trees,
)


def test_what_cannot_be_read_any_more_is_not_kept_in_its_old_version(
    repository: Path, workspace: Path
) -> None:
    """It is named, as in a snapshot from nothing; the earlier snapshot still has what could be read then."""
    start(repository)
    write(repository / "shut/inside.txt", "inside\n")
    write(repository / "inner/code.c", "code\n")
    git(repository / "inner", "init", "-q", ".")
    time.sleep(SETTLED_SECONDS)
    whole = take_snapshot(repository, workspace)
    closed = [repository / name for name in ("shut", "kept.txt", "inner/.git")]
    modes = [path.stat().st_mode for path in closed]
    for path in closed:
        path.chmod(0)
    done = child(repository, workspace, WITHOUT_PRIVILEGE)
    said, trouble = done.communicate()
    for path, mode in zip(closed, modes, strict=True):
        path.chmod(mode)
    assert done.returncode == 0, trouble
    kept = Snapshot.model_validate_json(said)
    assert kept.skipped == (
        "inner/.git: Permission denied",
        "kept.txt: Permission denied",
        "shut: Permission denied",
    )
    assert not kept.whole
    now = contents(repository)
    missing = {b"kept.txt", b"shut/inside.txt"}
    assert saved(workspace, kept) == {path: now[path] for path in now.keys() - missing}
    assert not any(line.endswith(b"\tnested") for line in trees(workspace, kept))
    assert saved(workspace, whole) == now
    take_next(repository, workspace)


SHUT_OUT = """
import os, sys
from pathlib import Path
from guard.git.locate import find_repository
from guard.snapshots.project import Site
from guard.snapshots.take import take_and_prune
from tests.support.rescues import BY_HAND
root, workspace = map(Path, sys.argv[1:])
known = find_repository(root, lambda _: None)
(root / ".git").chmod(0)
print(take_and_prune(Site(known, workspace, os.environ, 120), BY_HAND).model_dump_json())
raise SystemExit
"""


def test_a_git_directory_that_cannot_be_entered_is_named_and_the_rest_is_kept(
    repository: Path, workspace: Path
) -> None:
    start(repository)
    take_snapshot(repository, workspace)
    done = child(repository, workspace, WITHOUT_PRIVILEGE + SHUT_OUT)
    said, trouble = done.communicate()
    (repository / ".git").chmod(0o700)
    assert done.returncode == 0, trouble
    kept = Snapshot.model_validate_json(said)
    assert kept.skipped == (".git: Permission denied",)
    assert saved(workspace, kept) == contents(repository)


@pytest.mark.usefixtures("no_window")
def test_a_walk_without_time_keeps_no_old_versions_of_what_it_did_not_reach(
    repository: Path, workspace: Path
) -> None:
    start(repository)
    several("a/1.txt", "b/2.txt", "c/d/3.txt")(repository)
    take_snapshot(repository, workspace)
    for path in ("a/1.txt", "c/d/3.txt", "kept.txt"):
        edit_unseen(repository / path)
    project = Project(find_repository(repository, lambda _: None), os.environ, Deadline(120))
    with open_for_snapshot(project, workspace, BY_HAND) as shadow:
        late = replace(project, deadline=Deadline(0))
        slow = SnapshotLimits(progress=lambda _message: time.sleep(0.1))
        taken = take(late, shadow, BY_HAND, limits=slow)
    assert not taken.snapshot.whole
    assert any("time limit" in line for line in taken.snapshot.skipped)
    then, now = saved(workspace, taken.snapshot), contents(repository)
    assert then.items() <= now.items()
    assert not manifest(workspace, taken.snapshot).whole
    take_next(repository, workspace)


def once(happens: Callable[[], object]) -> SnapshotLimits:
    """Something that happens when the work tree has been walked, and before the rest is fetched."""
    waiting = [happens]

    def tell(message: str) -> None:
        if message.endswith(" files") and not message.endswith("; 0 files") and waiting:
            waiting.pop()()

    return SnapshotLimits(progress=tell)


@pytest.mark.usefixtures("no_window")
@pytest.mark.parametrize("from_nothing", [True, False])
def test_a_file_that_becomes_a_folder_meanwhile_and_the_other_way_round(
    from_nothing: bool, repository: Path, workspace: Path
) -> None:
    several("file", "folder/inside", "zz/last")(repository)
    if not from_nothing:
        take_snapshot(repository, workspace)
    write(repository / "new.txt", "new\n")

    def exchanged() -> None:
        become_folder(repository / "file", "inside")
        become_file(repository / "folder")

    wanted = [b"file/inside", b"folder", b"folder/inside", b"file"]
    kept = take_snapshot(repository, workspace, limits=once(exchanged), paths=wanted)
    assert not kept.whole
    assert {line.partition(":")[0] for line in kept.skipped} & {"file/inside", "folder"}
    take_next(repository, workspace, paths=wanted)


@pytest.mark.usefixtures("no_window")
def test_a_folder_that_becomes_a_link_meanwhile_is_not_followed(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    several("a/first", "b/inside")(repository)
    write(tmp_path / "outside/inside", "not ours\n")
    os.truncate(write(repository / "b/large.bin", b""), LARGE)
    take_snapshot(repository, workspace)
    edit_unseen(repository / "b/inside")
    (repository / "b/large.bin").write_bytes(b"")
    os.truncate(repository / "b/large.bin", LARGE)

    def swapped() -> None:
        (repository / "b").rename(repository / "c")
        (repository / "b").symlink_to(tmp_path / "outside")

    kept = take_snapshot(repository, workspace, limits=once(swapped), paths=[b"b/inside"])
    assert b"not ours\n" not in {data for _kind, data in saved(workspace, kept).values()}
    take_next(repository, workspace)
