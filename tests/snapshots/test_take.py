"""What a snapshot has in it, what it leaves out, and that it says so."""

import json
import os
import shutil
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from guard.core.rescue.settings import COMMIT_MAX_FILE_BYTES, SNAPSHOT_MAX_FILE_BYTES
from guard.core.snapshots.snapshot import Manifest, Occasion, Snapshot
from guard.errors import RepositoryProblem, StateProblem, WrongUsage
from guard.git.locate import find_repository
from guard.schemas.validate import validator
from guard.snapshots.project import Site
from guard.snapshots.read_file import read_entry
from guard.snapshots.take import take_and_prune
from guard.snapshots.walk import WalkEntry
from tests.rescue.states import STATES, start
from tests.support import TIME_LIMIT, git, write
from tests.support.rescues import BY_HAND, NOW, contents, recovered, take_snapshot


@pytest.fixture(autouse=True)
def started(repository: Path) -> None:
    start(repository)


def shown(workspace: Path, kept: Snapshot, path: str) -> bytes:
    words = ["git", f"--git-dir={workspace}/shadow.git", "cat-file", "blob", f"{kept.ref}:{path}"]
    return subprocess.run(words, check=True, capture_output=True).stdout


def listed(workspace: Path, kept: Snapshot) -> set[str]:
    words = ["git", f"--git-dir={workspace}/shadow.git", "ls-tree", "-r", "-z", "--name-only"]
    done = subprocess.run([*words, kept.ref], check=True, capture_output=True, text=True)
    return set(done.stdout.split("\0")[:-1])


def manifest(workspace: Path, kept: Snapshot) -> Manifest:
    data = shown(workspace, kept, "manifest.json")
    assert validator("manifest").is_valid(json.loads(data))
    return Manifest.model_validate_json(data)


@pytest.mark.parametrize(
    "name", ["env/lib.py", "target/main.rs", "build/x.o", ".cache/x", "node_modules", ".env"]
)
def test_what_only_looks_like_that_is_kept(name: str, repository: Path, workspace: Path) -> None:
    write(repository / ".gitignore", f"/{name}\n/.env\n")
    write(repository / name, "work\n")
    kept = take_snapshot(repository, workspace)
    assert kept.skipped == ()
    assert shown(workspace, kept, f"worktree/{name}") == b"work\n"


def test_paths_that_are_asked_for_are_kept_even_there(repository: Path, workspace: Path) -> None:
    write(repository / ".git/info/exclude", "node_modules/\n")
    write(repository / "node_modules/a/patched.js", "patched\n")
    write(repository / "node_modules/a/other.js", "other\n")
    kept = take_snapshot(
        repository, workspace, paths=[b"node_modules/a/patched.js", b"../x", b"no"]
    )
    inside = {path for path in listed(workspace, kept) if "node_modules" in path}
    assert inside == {"worktree/node_modules/a/patched.js"}


def test_special_files_are_named_and_not_waited_for(repository: Path, workspace: Path) -> None:
    os.mkfifo(repository / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("plug")
        kept = take_snapshot(repository, workspace)
    assert kept.skipped == ("pipe: a special file", "plug: a special file")
    assert not kept.whole


def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    """As when it is swapped between the walk and the opening."""
    os.mkfifo(tmp_path / "pipe")
    folder = os.open(tmp_path, os.O_RDONLY)
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read_entry, WalkEntry(b"pipe", folder, b"pipe", is_link=False), 1024)
        try:
            assert reading.result(timeout=120) == "a special file"
        finally:
            with suppress(OSError):
                os.close(os.open(tmp_path / "pipe", os.O_WRONLY | os.O_NONBLOCK))
            os.close(folder)


def test_a_tracked_file_that_became_a_pipe_is_named(repository: Path, workspace: Path) -> None:
    (repository / "kept.txt").unlink()
    os.mkfifo(repository / "kept.txt")
    kept = take_snapshot(repository, workspace, paths=[b"kept.txt"])
    assert kept.skipped == ("kept.txt: a special file",)


def test_links_are_kept_as_text_and_never_followed(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    write(tmp_path / "outside/secret.txt", "not ours\n")
    (repository / "out").symlink_to(tmp_path / "outside")
    (repository / "round").symlink_to("round")
    (repository / "up").symlink_to("..")
    kept = take_snapshot(repository, workspace, paths=[b"out/secret.txt"])
    assert kept.whole
    assert recovered(kept, tmp_path / "back") == contents(repository)
    assert not any("secret" in path for path in listed(workspace, kept))


def test_a_large_file_is_streamed_and_a_huge_one_named(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    write(repository / "large.bin", b"head")
    os.truncate(repository / "large.bin", COMMIT_MAX_FILE_BYTES + 4096)
    write(repository / "huge.bin", b"")
    os.truncate(repository / "huge.bin", SNAPSHOT_MAX_FILE_BYTES + 1)
    kept = take_snapshot(repository, workspace)
    assert kept.skipped == ("huge.bin: larger than 1073741824 bytes",)
    assert not kept.whole
    (repository / "huge.bin").unlink()
    assert recovered(kept, tmp_path / "back") == contents(repository)


@pytest.mark.parametrize(
    "name",
    [".GIT/config", "git~1", "sub/.Git", "a/.git ", "x/.git::$INDEX_ALLOCATION", "escaped%x"],
)
def test_names_that_git_refuses_are_escaped(name: str, repository: Path, workspace: Path) -> None:
    write(repository / name, "work\n")
    kept = take_snapshot(repository, workspace)
    [(place, path)] = manifest(workspace, kept).escaped.items()
    assert path == name
    assert shown(workspace, kept, f"worktree/{place}") == b"work\n"
    assert kept.whole


def test_a_nested_repository_is_looked_into(repository: Path, workspace: Path) -> None:
    nested = repository / "vendor/lib"
    nested.mkdir(parents=True)
    git(nested, "init", "-q")
    write(nested / "code.c", "code\n")
    kept = take_snapshot(repository, workspace)
    assert shown(workspace, kept, "worktree/vendor/lib/code.c") == b"code\n"
    assert manifest(workspace, kept).nested == ("vendor/lib",)


def test_the_manifest_has_what_trees_cannot_say(repository: Path, workspace: Path) -> None:
    (repository / "kept.txt").chmod(0o600)
    (repository / "tool.sh").chmod(0o4711)
    (repository / "empty/er").mkdir(parents=True)
    found = manifest(workspace, take_snapshot(repository, workspace))
    assert found.modes == {"600": ("kept.txt",), "4711": ("tool.sh",)}
    assert found.empty_folders == ("empty/er",)


def test_more_depth_than_anyone_needs_is_named(repository: Path, workspace: Path) -> None:
    deep = "/".join(["d"] * 250)
    write(repository / deep / "x", "x")
    kept = take_snapshot(repository, workspace)
    assert [line.split(": ")[1] for line in kept.skipped] == ["more than 200 folders deep"]
    assert not kept.whole


def test_many_omissions_are_counted_not_listed(repository: Path, workspace: Path) -> None:
    for number in range(150):
        os.mkfifo(repository / f"{number:03}")
    kept = take_snapshot(repository, workspace)
    assert len(kept.skipped) == 101
    assert kept.skipped[-1] == "and 50 more paths"
    assert len(manifest(workspace, kept).skipped) == 150


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("staged and on disk differ", {"index/0/edited.txt": b"staged version\n"}),
        (
            "merge",
            {
                "index/1/edited.txt": b"edited.txt\n" * 3,
                "index/2/edited.txt": b"main\n",
                "index/3/edited.txt": b"side\n",
            },
        ),
        ("merge partly resolved", {"index/0/edited.txt": b"resolved\n"}),
        ("every kind of change", {"index/0/staged.txt": b"staged\n"}),
    ],
)
def test_what_only_the_index_has_is_kept(
    state: str, expected: dict[str, bytes], repository: Path, workspace: Path
) -> None:
    STATES[state].build(repository)
    kept = take_snapshot(repository, workspace)
    assert {path: shown(workspace, kept, path) for path in expected} == expected
    clean = {path for path in listed(workspace, kept) if path.endswith("mine.txt")}
    assert clean == {"worktree/mine.txt"}


@pytest.mark.parametrize(
    ("state", "path"),
    [
        ("merge", "gitdir/MERGE_HEAD"),
        ("rebase", "gitdir/rebase-merge/done"),
        ("cherry-pick", "gitdir/CHERRY_PICK_HEAD"),
        ("several picks", "gitdir/sequencer/todo"),
        ("bisect", "gitdir/BISECT_LOG"),
        ("plain", "gitdir/HEAD"),
    ],
)
def test_the_operation_in_progress_is_kept(
    state: str, path: str, repository: Path, workspace: Path
) -> None:
    STATES[state].build(repository)
    kept = take_snapshot(repository, workspace)
    inside = repository / ".git" / path.removeprefix("gitdir/")
    assert shown(workspace, kept, path) == inside.read_bytes()


def test_an_index_that_cannot_be_read_is_named(repository: Path, workspace: Path) -> None:
    write(repository / ".git/index", b"not an index at all")
    kept = take_snapshot(repository, workspace)
    assert [line.split(":")[0] for line in kept.skipped] == [".git/index"]
    assert not kept.whole
    assert kept.files == len(contents(repository))


def test_a_staged_blob_that_is_missing_is_named(repository: Path, workspace: Path) -> None:
    write(repository / "staged.txt", "staged\n")
    git(repository, "add", "staged.txt")
    oid = git(repository, "rev-parse", ":staged.txt").strip()
    write(repository / "staged.txt", "on disk\n")
    (repository / ".git/objects" / oid[:2] / oid[2:]).unlink()
    kept = take_snapshot(repository, workspace)
    assert kept.skipped == ("index/0/staged.txt: its object is missing or too large",)


def test_attributes_of_the_project_do_not_bear_on_what_comes_back(
    repository: Path, workspace: Path, home: Path, tmp_path: Path
) -> None:
    rules = (
        "* text eol=crlf ident filter=evil working-tree-encoding=UTF-16\nedited.txt export-ignore\n"
    )
    write(repository / ".gitattributes", rules + "mine.txt export-subst\n")
    write(repository / "mine.txt", "$Format:%H$ $Id$\n")
    git(repository, "config", "--global", "core.autocrlf", "true")
    git(repository, "config", "--global", "filter.evil.smudge", f"touch {tmp_path}/ran")
    kept = take_snapshot(repository, workspace)
    assert recovered(kept, tmp_path / "back") == contents(repository)
    assert not (tmp_path / "ran").exists()


def test_without_a_git_directory_everything_is_kept(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    known = find_repository(repository, lambda _: None)
    shutil.rmtree(repository / ".git")
    workspace.mkdir(mode=0o700)
    kept = take_and_prune(Site(known, workspace, os.environ, TIME_LIMIT), BY_HAND)
    assert kept.whole
    assert recovered(kept, tmp_path / "back") == contents(repository)


def test_an_empty_work_tree_is_a_snapshot_too(tmp_path: Path, workspace: Path) -> None:
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "-q")
    kept = take_snapshot(tmp_path / "empty", workspace)
    assert (kept.files, kept.whole) == (0, True)
    assert set(recovered(kept, tmp_path / "back")) >= {b"manifest.json"}


def test_a_workspace_in_the_work_tree_is_not_kept_in_itself(repository: Path) -> None:
    kept = take_snapshot(repository, repository / "state")
    again = take_snapshot(repository, repository / "state")
    assert (again.files, again.skipped) == (kept.files, kept.skipped)


@pytest.mark.parametrize("name", ["with space", "co:lon", "quo'te", "lat\udce9", "x" * 200])
def test_places_with_any_name_will_do(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / name / name
    root.mkdir(parents=True)
    git(root, "init", "-q", "-b", "main")
    git(root, "config", "user.email", "author@example.com")
    git(root, "config", "user.name", "Test Author")
    write(root / "staged.txt", "staged\n")
    git(root, "add", "staged.txt")
    write(root / "staged.txt", "on disk\n")
    kept = take_snapshot(root, tmp_path / name / "work space")
    if "$(guard where)" in kept.recover:
        stub = write(
            tmp_path / "bin/guard",
            f"#!/bin/sh\necho '{tmp_path}/{name}/work space'\n".encode(errors="surrogateescape"),
        )
        stub.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    assert recovered(kept, tmp_path / "back") == contents(root)
    assert "index/0/staged.txt" in listed(tmp_path / name / "work space", kept)


def test_a_repository_of_the_other_hash_is_kept_alike(tmp_path: Path, workspace: Path) -> None:
    root = tmp_path / "sha256"
    root.mkdir()
    git(root, "init", "-q", "-b", "main", "--object-format=sha256")
    write(root / "staged.txt", "staged\n")
    git(root, "add", "staged.txt")
    write(root / "staged.txt", "on disk\n")
    kept = take_snapshot(root, workspace)
    assert kept.whole
    assert shown(workspace, kept, "index/0/staged.txt") == b"staged\n"
    assert recovered(kept, tmp_path / "back") == contents(root)


def test_a_second_snapshot_stores_only_what_is_new(repository: Path, workspace: Path) -> None:
    write(repository / "random.bin", os.urandom(1_000_000))
    take_snapshot(repository, workspace)
    first = sum(path.stat().st_size for path in workspace.rglob("*") if path.is_file())
    take_snapshot(repository, workspace)
    second = sum(path.stat().st_size for path in workspace.rglob("*") if path.is_file())
    assert second - first < 20_000


def test_many_at_once_are_all_good(repository: Path, workspace: Path, tmp_path: Path) -> None:
    workspace.mkdir(mode=0o700)
    with ThreadPoolExecutor(6) as pool:
        kept = list(pool.map(lambda _: take_snapshot(repository, workspace), range(12)))
    assert len({one.id for one in kept}) == 12
    assert recovered(kept[-1], tmp_path / "back") == contents(repository)
    git(workspace / "shadow.git", "fsck", "--strict")
    assert not list(workspace.glob(".shadow.git.*"))


def test_files_that_will_not_keep_still_do_no_harm(repository: Path, workspace: Path) -> None:
    write(repository / "log.txt", b"x" * 4_000_000)
    loop = f"while :; do printf more >> {repository}/log.txt; : > {repository}/t; rm {repository}/t; done"
    writer = subprocess.Popen(["sh", "-c", loop])
    try:
        kept = take_snapshot(repository, workspace)
    finally:
        writer.kill()
        writer.wait()
    assert set(kept.skipped) <= {
        "log.txt: changed while it was read",
        "t: changed while it was read",
    }
    assert shown(workspace, kept, "worktree/log.txt").startswith(b"x" * 4_000_000)


def test_a_shadow_that_borrows_objects_is_refused(repository: Path, workspace: Path) -> None:
    take_snapshot(repository, workspace)
    write(workspace / "shadow.git/objects/info/alternates", f"{repository}/.git/objects\n")
    with pytest.raises(StateProblem, match="depend on another repository"):
        take_snapshot(repository, workspace)


def test_a_shadow_that_is_a_link_is_refused(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    workspace.mkdir(mode=0o700)
    git(tmp_path, "init", "-q", "--bare", "elsewhere.git")
    (workspace / "shadow.git").symlink_to(tmp_path / "elsewhere.git")
    with pytest.raises(StateProblem, match="symbolic link"):
        take_snapshot(repository, workspace)


def test_hooks_planted_in_the_shadow_do_not_run(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    take_snapshot(repository, workspace)
    hook = write(
        workspace / "shadow.git/hooks/reference-transaction", f"#!/bin/sh\ntouch {tmp_path}/ran\n"
    )
    hook.chmod(0o755)
    take_snapshot(repository, workspace)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["../x", "a.lock", "-x", "a b"])
def test_a_name_that_cannot_be_part_of_a_ref_is_refused(
    name: str, repository: Path, workspace: Path
) -> None:
    with pytest.raises(WrongUsage):
        take_snapshot(repository, workspace, occasion=Occasion("check", NOW, name, 1))


def test_a_work_tree_that_is_gone_is_an_error(repository: Path, workspace: Path) -> None:
    known = find_repository(repository, lambda _: None)
    repository.rename(repository.parent / "moved")
    workspace.mkdir(mode=0o700)
    with pytest.raises(RepositoryProblem, match="no longer exists"):
        take_and_prune(Site(known, workspace, os.environ, TIME_LIMIT), BY_HAND)


def test_a_long_name_is_cut(repository: Path, workspace: Path) -> None:
    kept = take_snapshot(repository, workspace, occasion=Occasion("check", NOW, "x" * 120, 1))
    assert kept.id.startswith("x" * 100 + "-")


@pytest.mark.parametrize(
    ("key", "value"),
    [("core.ignoreCase", "true"), ("core.sharedRepository", "group"), ("core.autocrlf", "true")],
)
def test_settings_of_the_user_do_not_bear_on_it(
    key: str, value: str, repository: Path, workspace: Path, tmp_path: Path
) -> None:
    git(repository, "config", "--global", key, value)
    write(repository / "Kept.TXT", "another\r\n")
    for number in ("first", "second"):
        kept = take_snapshot(repository, workspace)
        assert recovered(kept, tmp_path / number) == contents(repository)


def test_an_open_umask_does_not_open_the_shadow(repository: Path, workspace: Path) -> None:
    before = os.umask(0)
    try:
        take_snapshot(repository, workspace)
        take_snapshot(repository, workspace)
    finally:
        os.umask(before)
    open_to_others = [path for path in workspace.rglob("*") if path.stat().st_mode & 0o077]
    assert open_to_others == []
