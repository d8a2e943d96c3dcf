"""`guard restore`: every byte comes back, nothing else is touched, and whatever cannot come back is named."""

import os
import pty
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guard.git.locate import find_repository
from guard.schemas.validate import validator
from guard.snapshots import restore as restoring
from guard.snapshots.restore import SnapshotSource, choose
from guard.snapshots.take import take_and_prune
from tests.rescue.states import start
from tests.support import Result, commit, git, run, write
from tests.support.rescues import NOW, contents, fingerprint, take_snapshot
from tests.support.shelves import (
    damage,
    keep,
    lose,
    make_read_only,
    mounted,
    shadow_git,
    with_raw_tree,
    with_tree,
)

ODD = [
    *(b"new\nline", b"lat\xe9n", b"-rf", b"git~1", b".GIT/config", b"n" * 255, b"\x1b[31mred"),
    *(b"back\\slash", b"escaped%", b"lib/.git", b" space ", b"a/" + b"d" * 255 + b"/x", b"%41"),
]


@pytest.fixture(autouse=True)
def started(repository: Path) -> None:
    start(repository)


def restore(workspace: Path, *words: str | Path, cwd: Path | None = None) -> Result:
    return run("--workspace", workspace, "restore", *words, cwd=cwd)


def report(workspace: Path, *words: str | Path, code: int = 0, cwd: Path | None = None) -> Any:
    result = restore(workspace, *words, "--format", "json", cwd=cwd)
    assert result.code == code, result.err
    kind = "restore-diff" if "--diff" in words else "restore"
    assert list(validator(kind).iter_errors(result.json)) == []
    return result.json


def write_odd(root: Path) -> None:
    for name in ODD:
        path = Path(os.fsdecode(os.path.join(os.fsencode(root), name)))
        write(path, b"odd: " + name)


def bits(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def unlike(root: Path) -> None:
    """Everything that a snapshot can have in it."""
    write_odd(root)
    write(root / "crlf.txt", b"a\r\nb\n")
    write(root / "nothing", b"")
    write(root / "large.bin", os.urandom(3_000_000))
    (root / "tool.sh").chmod(0o755)
    (root / "mine.txt").chmod(0o600)
    (root / "link").symlink_to("/etc/passwd")
    (root / "odd link").symlink_to(b"\xff\n")
    (root / "empty/er").mkdir(parents=True)


def test_everything_comes_back_byte_for_byte(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    unlike(repository)
    made = keep(repository, workspace)
    back = tmp_path / "back"
    found = report(workspace, made, "--to", back)
    assert contents(back) == contents(repository)
    assert found["files"] == len(contents(repository))
    assert (found["id"], found["to"], found["in_place"]) == (made, str(back), False)
    assert (found["not_restored"], found["snapshot"]) == ([], None)
    assert (bits(back / "mine.txt"), bits(back / "tool.sh")) == (0o600, 0o755)
    assert (back / "empty/er").is_dir()
    assert bits(back) == 0o700
    assert not list(back.rglob(".guard-restore-*"))


def test_every_word_for_a_snapshot(repository: Path, workspace: Path, tmp_path: Path) -> None:
    old = keep(repository, workspace, 5, kind="baseline")
    new = keep(repository, workspace)
    for number, (word, meant) in enumerate({old: old, old[:9]: old, "latest": new}.items()):
        assert report(workspace, word, "--to", tmp_path / str(number))["id"] == meant


def test_latest_is_the_newest_of_this_work_tree(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    git(repository, "worktree", "add", "-q", str(tmp_path / "linked"))
    own = keep(repository, workspace, 5)
    keep(tmp_path / "linked", workspace)
    assert report(workspace, "latest", "--to", tmp_path / "a")["id"] == own
    result = restore(workspace, "latest", "--to", tmp_path / "b", cwd=tmp_path)
    assert (result.code, "2 work trees" in result.err) == (2, True)
    assert report(workspace, own, "--to", tmp_path / "b", cwd=tmp_path)["files"] == 6


def test_without_a_word_the_snapshots_are_listed(repository: Path, workspace: Path) -> None:
    made = keep(repository, workspace)
    result = run("--workspace", workspace, "restore", "--format", "json")
    assert [entry["id"] for entry in result.json["snapshots"]] == [made]
    assert restore(workspace).out == run("--workspace", workspace, "snapshots").out


WRONG: dict[str, tuple[list[str], str]] = {
    "an unknown id": (["by-hond-1"], "did you mean by-hand-"),
    "an ambiguous prefix": (["by-hand-"], "more than one"),
    "an unknown path": (["latest", "edited.tx"], "did you mean edited.txt"),
    "a path by its last name": (["latest", "inside.txt"], "did you mean folder/inside.txt?"),
    "a path outside": (["latest", "../x"], "leads out of the work tree"),
    "both places": (["latest", "--to", "x", "--in-place"], "cannot be combined"),
    "staged in place": (["latest", "--staged", "--in-place"], "cannot be combined"),
    "staged compared": (
        ["latest", "--staged", "--diff"],
        "--diff cannot be combined with --staged",
    ),
    "a folder with something in it": (["latest", "--to", "folder"], "is not empty"),
    "a file": (["latest", "--to", "kept.txt"], "Not a directory"),
    "a folder in nowhere": (["latest", "--to", "no/where"], "No such file"),
    "git's own folder": (["latest", "--to", ".git/x"], "belongs to git or guard"),
}


@pytest.mark.parametrize(("words", "said"), WRONG.values(), ids=WRONG)
def test_wrong_usage(words: list[str], said: str, repository: Path, workspace: Path) -> None:
    keep(repository, workspace, 1)
    keep(repository, workspace)
    before = fingerprint(repository), fingerprint(workspace)
    result = restore(workspace, *words)
    assert (result.code, result.out) == (2, "")
    assert said in result.err
    assert "\nhint: " in result.err
    assert (fingerprint(repository), fingerprint(workspace)) == before


def test_without_snapshots_it_says_so(workspace: Path) -> None:
    result = restore(workspace, "latest")
    assert (result.code, "there are no snapshots" in result.err) == (2, True)


def test_paths_are_taken_from_the_current_folder(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    write(repository / "folder/deep/a.txt", "a")
    keep(repository, workspace)
    cases: list[tuple[Path, list[str], set[bytes]]] = [
        (repository, ["folder"], {b"folder/inside.txt", b"folder/deep/a.txt"}),
        (repository / "folder", ["inside.txt"], {b"folder/inside.txt"}),
        (repository / "folder", ["deep", "../kept.txt"], {b"folder/deep/a.txt", b"kept.txt"}),
        (repository / "folder", [str(repository / "kept.txt")], {b"kept.txt"}),
    ]
    for number, (cwd, words, expected) in enumerate(cases):
        back = tmp_path / str(number)
        report(workspace, "latest", *words, "--to", back, cwd=cwd)
        assert set(contents(back)) == expected
    outside = ("--repo", repository, "--workspace", workspace, "restore", "latest")
    assert run(*outside, "folder/inside.txt", "--to", tmp_path / "out", cwd=tmp_path).code == 0
    assert set(contents(tmp_path / "out")) == {b"folder/inside.txt"}
    made = keep(repository, workspace)
    alone = report(workspace, made, "folder/inside.txt", "--to", tmp_path / "alone", cwd=tmp_path)
    assert alone["files"] == 1


@pytest.mark.parametrize("name", ODD, ids=repr)
def test_an_odd_name_can_be_asked_for(
    name: bytes, repository: Path, workspace: Path, tmp_path: Path
) -> None:
    write_odd(repository)
    keep(repository, workspace)
    words = ("latest", "--to", tmp_path / "back", "--", os.fsdecode(name))
    assert restore(workspace, *words).code == 0
    assert contents(tmp_path / "back") == {name: ("file", b"odd: " + name)}


def test_a_name_can_be_asked_for_as_it_is_listed(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    write_odd(repository)
    keep(repository, workspace)
    report(workspace, "latest", "--to", tmp_path / "back", r"lat\xe9n")
    assert set(contents(tmp_path / "back")) == {b"lat\xe9n"}


def test_without_a_place_it_goes_to_a_new_folder_outside_of_the_work_tree(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    made = keep(repository, workspace)
    before = fingerprint(repository)
    first = report(workspace, made, cwd=repository / "folder")
    assert first["to"] == str(tmp_path / f"guard-restore-{made}")
    assert report(workspace, made)["to"] == str(tmp_path / f"guard-restore-{made}-2")
    (tmp_path / "desk").mkdir()
    there = ("--repo", repository, "--workspace", workspace, "restore", made)
    result = run(*there, cwd=tmp_path / "desk")
    assert result.out == f"restored 6 files from {made} to {tmp_path}/desk/guard-restore-{made}\n"
    assert fingerprint(repository) == before


def test_a_work_tree_in_another_one_gets_no_folder_beside_it(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    inner = repository / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    write(inner / "a.txt", "a")
    made = keep(inner, workspace)
    place = Path(report(workspace, made, cwd=inner)["to"])
    assert not place.is_relative_to(repository)
    shutil.rmtree(place)


def test_it_works_without_a_git_directory(repository: Path, tmp_path: Path) -> None:
    write(repository / "new.txt", "new\n")
    assert run("baseline").code == 0
    before = contents(repository)
    shutil.rmtree(repository / ".git")
    (repository / "new.txt").unlink()
    write(repository / "kept.txt", "spoiled")
    assert run("restore", "latest", "--to", tmp_path / "back").code == 0
    assert contents(tmp_path / "back") == before
    result = run("restore", "latest", "--in-place", "--format", "json")
    assert (result.code, result.json["files"]) == (0, 2)
    assert contents(repository) == before


def test_a_read_only_workspace_gives_back_what_it_has(repository: Path, tmp_path: Path) -> None:
    with mounted(tmp_path / "disk") as disk:
        keep(repository, disk / "workspace")
        make_read_only(disk)
        write(repository / "kept.txt", "spoiled\n")
        changed = report(disk / "workspace", "latest", "--diff")
        assert [(one["letter"], one["path"]) for one in changed["changes"]] == [("M", "kept.txt")]
        assert report(disk / "workspace", "latest", "--to", tmp_path / "back")["files"] == 6
        result = restore(disk / "workspace", "latest", "--in-place")
        assert (result.code, result.out) == (6, "")
        assert (repository / "kept.txt").read_text() == "spoiled\n"


def test_a_full_target_is_an_error_that_says_so(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    write(repository / "large.bin", os.urandom(2_000_000))
    keep(repository, workspace)
    with mounted(tmp_path / "disk", "256k") as disk:
        result = restore(workspace, "latest", "--to", disk / "back")
        assert (result.code, "No space left" in result.err) == (6, True)
        assert not list(disk.rglob(".guard-restore-*"))


def test_in_place_only_what_differs_is_written_after_a_snapshot(
    repository: Path, workspace: Path
) -> None:
    unlike(repository)
    made = keep(repository, workspace)
    before = contents(repository)
    untouched = (repository / "kept.txt").lstat()
    shutil.rmtree(repository / "folder")
    shutil.rmtree(repository / "empty")
    write(repository / "edited.txt", "spoiled\n")
    write(repository / "new.txt", "mine\n")
    (repository / "link").unlink()
    write(repository / "link", "a file now")
    (repository / "mine.txt").chmod(0o644)
    (repository / "tool.sh").chmod(0o644)
    spoiled = contents(repository)
    found = report(workspace, made, "--in-place")
    assert (found["files"], found["unchanged"]) == (5, len(before) - 5)
    assert found["left"] == ["new.txt"]
    assert contents(repository) == {**before, b"new.txt": ("file", b"mine\n")}
    assert (bits(repository / "mine.txt"), bits(repository / "tool.sh")) == (0o600, 0o755)
    assert (repository / "empty/er").is_dir()
    assert (repository / "kept.txt").lstat() == untouched
    safe = found["snapshot"]["id"]
    assert report(workspace, safe, "--to", workspace.parent / "safe")["in_place"] is False
    assert contents(workspace.parent / "safe") == spoiled
    again = report(workspace, made, "--in-place")
    assert (again["files"], again["snapshot"]) == (0, None)


def test_in_place_the_index_and_the_branch_stay(repository: Path, workspace: Path) -> None:
    keep(repository, workspace)
    write(repository / "edited.txt", "spoiled\n")
    git(repository, "add", "edited.txt")
    staged, head = git(repository, "diff", "--cached"), git(repository, "rev-parse", "HEAD")
    report(workspace, "latest", "edited.txt", "--in-place")
    assert (git(repository, "diff", "--cached"), git(repository, "rev-parse", "HEAD")) == (
        staged,
        head,
    )


def test_the_same_content_is_safe_even_where_snapshots_do_not_look(
    repository: Path, workspace: Path
) -> None:
    write(repository / ".git/info/exclude", "node_modules/\n")
    write(repository / "node_modules/a.js", "first\n")
    kept = take_snapshot(repository, workspace, paths=[b"node_modules/a.js"])
    write(repository / "node_modules/a.js", "second\n")
    found = report(workspace, kept.id, "node_modules/a.js", "--in-place")
    safe = f"refs/guard/snapshot/{found['snapshot']['id']}:worktree/node_modules/a.js"
    assert shadow_git(workspace, "cat-file", "blob", safe) == "second"
    assert (repository / "node_modules/a.js").read_text() == "first\n"


def trap_folder_link(root: Path, outside: Path) -> None:
    shutil.rmtree(root / "folder")
    (root / "folder").symlink_to(outside)


def trap_folder_file(root: Path, outside: Path) -> None:
    shutil.rmtree(root / "folder")
    write(root / "folder", "a file")


def trap_file_folder(root: Path, outside: Path) -> None:
    shutil.rmtree(root / "folder")
    (root / "folder/inside.txt").mkdir(parents=True)
    write(root / "folder/inside.txt/mine", "mine")


def trap_pipe(root: Path, outside: Path) -> None:
    (root / "folder/inside.txt").unlink()
    os.mkfifo(root / "folder/inside.txt")


TRAPS: dict[str, tuple[Callable[[Path, Path], None], str]] = {
    "a link for a folder": (trap_folder_link, "where its folder should be"),
    "a file for a folder": (trap_folder_file, "where its folder should be"),
    "a folder for a file": (trap_file_folder, "a folder stands in its place"),
    "a pipe for a file": (trap_pipe, "a special file stands in its place"),
}


@pytest.mark.parametrize(("trap", "why"), TRAPS.values(), ids=TRAPS)
def test_a_trap_is_refused_and_named_and_the_rest_comes_back(
    trap: Callable[[Path, Path], None], why: str, repository: Path, workspace: Path, tmp_path: Path
) -> None:
    made = keep(repository, workspace)
    outside = tmp_path / "outside"
    write(outside / "inside.txt", "theirs\n")
    trap(repository, outside)
    write(repository / "kept.txt", "spoiled\n")
    trapped = contents(repository)
    found = report(workspace, made, "--in-place", code=1)
    (named,) = found["not_restored"]
    assert (named["path"], why in named["why"]) == ("folder/inside.txt", True)
    assert contents(outside) == {b"inside.txt": ("file", b"theirs\n")}
    assert contents(repository) == {**trapped, b"kept.txt": ("file", b"kept.txt\n" * 3)}


def test_a_link_for_a_file_is_replaced_and_not_followed(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    made = keep(repository, workspace)
    write(tmp_path / "theirs", "theirs\n")
    (repository / "kept.txt").unlink()
    (repository / "kept.txt").symlink_to(tmp_path / "theirs")
    report(workspace, made, "--in-place")
    assert (tmp_path / "theirs").read_text() == "theirs\n"
    assert (repository / "kept.txt").read_text() == "kept.txt\n" * 3
    assert not (repository / "kept.txt").is_symlink()


def test_what_could_not_be_saved_first_is_not_replaced(
    repository: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a file is written between the snapshot that is taken first and its replacement."""
    made = keep(repository, workspace)
    write(repository / "kept.txt", "second\n")

    def slow(*words: Any, **options: Any) -> Any:
        taken = take_and_prune(*words, **options)
        write(repository / "kept.txt", "third\n")
        return taken

    monkeypatch.setattr(restoring, "take_and_prune", slow)
    source = SnapshotSource(workspace, find_repository(repository, lambda _: None), os.environ, 60)
    with choose(source, made, staged=False) as held:
        _place, found = held.in_place([], NOW, lambda _done, _of: None)
    assert (repository / "kept.txt").read_text() == "third\n"
    assert found.refused == {b"kept.txt": "what stood there has changed meanwhile"}


def test_what_the_first_snapshot_does_not_have_is_not_replaced(
    repository: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a file that is too large for a snapshot, or cannot be read when one is taken."""
    kept = take_snapshot(repository, workspace)
    write(repository / "kept.txt", "nowhere else\n")
    (repository / "edited.txt").unlink()
    monkeypatch.setattr(restoring, "take_and_prune", lambda *_words, **_options: kept)
    source = SnapshotSource(workspace, find_repository(repository, lambda _: None), os.environ, 60)
    with choose(source, kept.id, staged=False) as held:
        _place, found = held.in_place([], NOW, lambda _done, _of: None)
    assert (repository / "kept.txt").read_text() == "nowhere else\n"
    assert found.refused == {b"kept.txt": "it is not in the snapshot that was taken first"}
    assert (repository / "edited.txt").exists()


def test_a_nested_repository_comes_back_with_its_commits(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    inner = repository / "lib"
    inner.mkdir()
    git(inner, "init", "-q", "-b", "main")
    git(inner, "config", "user.name", "x")
    git(inner, "config", "user.email", "x")
    only_here = commit(inner, "code.c", "code\n")
    git(inner, "gc", "-q")
    git(inner, "pack-refs", "--all")
    made = keep(repository, workspace)
    report(workspace, made, "--to", tmp_path / "back")
    assert git(tmp_path / "back/lib", "rev-parse", "HEAD").strip() == only_here
    git(tmp_path / "back/lib", "fsck", "--full")
    later = commit(inner, "more.c", "more\n")
    (inner / "code.c").unlink()
    report(workspace, made, "--in-place")
    assert git(inner, "rev-parse", "HEAD").strip() == later
    shutil.rmtree(inner)
    report(workspace, made, "lib", "--in-place")
    assert git(inner, "rev-parse", "HEAD").strip() == only_here
    assert git(inner, "status", "--porcelain") == ""


UNSAFE: dict[str, bytes] = {
    "out of the folder": b"..",
    "the git directory": b".git",
}


@pytest.mark.parametrize("name", UNSAFE.values(), ids=UNSAFE)
@pytest.mark.parametrize("in_place", [True, False], ids=["in place", "to a folder"])
def test_a_forged_snapshot_writes_nowhere_else(
    name: bytes, in_place: bool, repository: Path, workspace: Path, tmp_path: Path
) -> None:
    keep(repository, workspace)
    blob = shadow_git(workspace, "hash-object", "-w", "--stdin", stdin=b"evil")
    inner = shadow_git(workspace, "mktree", stdin=f"100644 blob {blob}\tevil.txt".encode())
    raw = b"100644 good.txt\0" + bytes.fromhex(blob) + b"40000 " + name + b"\0"
    words = ("hash-object", "-t", "tree", "-w", "--literally", "--stdin")
    tree = shadow_git(workspace, *words, stdin=raw + bytes.fromhex(inner))
    forged = with_tree(workspace, "forged", f"040000 tree {tree}\tworktree".encode())
    before = fingerprint(repository)
    to: list[str | Path] = ["--in-place"] if in_place else ["--to", tmp_path / "back/er"]
    (tmp_path / "back").mkdir()
    found = report(workspace, forged, *to, code=5)
    root = repository if in_place else tmp_path / "back/er"
    assert (root / "good.txt").read_text() == "evil"
    named = {one["path"] for one in found["not_restored"]}
    assert named == {f"{name.decode()}/evil.txt", "manifest.json of the snapshot"}
    assert not list(tmp_path.rglob("evil.txt"))
    assert before.items() <= fingerprint(repository).items()


def test_a_missing_object_is_named_and_the_rest_comes_back(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    unlike(repository)
    made = keep(repository, workspace)
    lose(workspace, f"refs/guard/snapshot/{made}:worktree/kept.txt")
    damage(workspace, f"refs/guard/snapshot/{made}:worktree/edited.txt", b"other bytes")
    lose(workspace, f"refs/guard/snapshot/{made}:worktree/folder")
    found = report(workspace, made, "--to", tmp_path / "back", code=5)
    lost = {one["path"]: one["why"] for one in found["not_restored"]}
    assert lost == {
        "kept.txt": "its object is missing",
        "edited.txt": "its object is damaged",
        "folder": "its object is missing",
    }
    gone = {b"kept.txt", b"edited.txt", b"folder/inside.txt"}
    rest = {path: what for path, what in contents(repository).items() if path not in gone}
    assert contents(tmp_path / "back") == rest
    one = report(workspace, made, "folder/inside.txt", "--to", tmp_path / "one", code=5)
    assert [lost["path"] for lost in one["not_restored"]] == ["folder"]
    assert report(workspace, made, "tool.sh", "--to", tmp_path / "two")["files"] == 1


def test_without_its_manifest_the_files_come_back_with_exit_code_5(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    unlike(repository)
    made = keep(repository, workspace)
    lose(workspace, f"refs/guard/snapshot/{made}:manifest.json")
    report(workspace, made, "--to", tmp_path / "back", code=5)
    assert contents(tmp_path / "back") == contents(repository)


def test_a_snapshot_whose_tree_is_gone_is_an_error_of_the_state(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    made = keep(repository, workspace)
    lose(workspace, f"refs/guard/snapshot/{made}^{{tree}}")
    result = restore(workspace, made, "--to", tmp_path / "back")
    assert (result.code, "guard: cannot read snapshot" in result.err) == (5, True)
    assert not (tmp_path / "back").exists()


def test_a_tree_that_is_no_tree_is_named(repository: Path, workspace: Path, tmp_path: Path) -> None:
    keep(repository, workspace)
    words = ("hash-object", "-t", "tree", "-w", "--literally", "--stdin")
    bad = shadow_git(workspace, *words, stdin=b"100644 cut off")
    odd = with_raw_tree(workspace, "odd", bad)
    result = restore(workspace, odd, "--to", tmp_path / "back")
    assert (result.code, "a bug in guard" in result.err) == (5, False)


def test_diff_says_what_would_change_and_writes_nothing(repository: Path, workspace: Path) -> None:
    unlike(repository)
    made = keep(repository, workspace)
    write(repository / "edited.txt", "edited.txt\nother\nedited.txt\n")
    write(repository / "large.bin", b"\0")
    (repository / "deleted.txt").unlink()
    (repository / "tool.sh").chmod(0o644)
    write(repository / "new.txt", "new\n")
    before = fingerprint(repository), fingerprint(workspace)
    found = report(workspace, made, "--diff")
    changes = {one["path"]: (one["letter"], one["note"]) for one in found["changes"]}
    assert changes == {
        "deleted.txt": ("A", None),
        "edited.txt": ("M", None),
        "large.bin": ("M", "too large to show"),
        "new.txt": ("D", "not in the snapshot: it is left alone"),
        "tool.sh": ("M", "permissions 644 become 755"),
    }
    (edited,) = [one["diff"] for one in found["changes"] if one["path"] == "edited.txt"]
    assert edited.endswith("\n edited.txt\n-other\n edited.txt\n+edited.txt")
    assert found["unchanged"] == len(contents(repository)) - 4
    text = restore(workspace, made, "--diff").out
    assert "M edited.txt\n" in text
    assert (fingerprint(repository), fingerprint(workspace)) == before


def test_diff_of_what_is_the_same_says_so(repository: Path, workspace: Path) -> None:
    made = keep(repository, workspace)
    assert restore(workspace, made, "--diff").out == f"{repository} is as snapshot {made} has it\n"


def test_diff_is_limited_to_the_paths_that_are_asked_for(repository: Path, workspace: Path) -> None:
    made = keep(repository, workspace)
    write(repository / "folder/inside.txt", "a")
    write(repository / "folder/new.txt", "b")
    write(repository / "kept.txt", "c")
    found = report(workspace, made, "folder", "--diff")
    assert {one["path"] for one in found["changes"]} == {"folder/inside.txt", "folder/new.txt"}


def test_diff_against_a_folder(repository: Path, workspace: Path, tmp_path: Path) -> None:
    made = keep(repository, workspace)
    found = report(workspace, made, "--diff", "--to", tmp_path / "back")
    assert {one["letter"] for one in found["changes"]} == {"A"}
    assert not (tmp_path / "back").exists()
    report(workspace, made, "--to", tmp_path / "back")
    assert report(workspace, made, "--diff", "--to", tmp_path / "back")["changes"] == []


def test_a_hostile_name_or_text_does_not_reach_the_terminal(
    repository: Path, workspace: Path
) -> None:
    write(repository / "a\x1b[2Jb", "x\x1b[2Jy\n\u202e\n")
    made = keep(repository, workspace)
    (repository / "a\x1b[2Jb").unlink()
    result = restore(workspace, made, "--diff")
    assert "\\x1b[2J" in result.out
    assert "\x1b" not in result.out + result.err
    assert "\u202e" not in result.out


def test_staged_versions_come_back_into_a_folder(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    write(repository / "kept.txt", "staged\n")
    write(repository / ".GIT", "staged too\n")
    write(repository / "edited.txt", "stashed\n")
    git(repository, "stash", "push", "-q", "edited.txt")
    git(repository, "add", "kept.txt")
    write(repository / "kept.txt", "unstaged\n")
    made = keep(repository, workspace)
    found = report(workspace, made, "--staged", "--to", tmp_path / "back")
    assert (tmp_path / "back/index/0/kept.txt").read_text() == "staged\n"
    assert (tmp_path / "back/stash/0/worktree/edited.txt").read_text() == "stashed\n"
    assert (tmp_path / "back/gitdir/HEAD").read_text() == "ref: refs/heads/main\n"
    assert found["files"] == len(contents(tmp_path / "back"))
    report(workspace, made, "index/0/kept.txt", "--staged", "--to", tmp_path / "one")
    assert set(contents(tmp_path / "one")) == {b"index/0/kept.txt"}


def test_progress_is_shown_on_a_terminal_when_it_takes_long(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    for number in range(4000):
        (repository / f"{number}.txt").write_text("x")
    keep(repository, workspace)
    ours, theirs = pty.openpty()
    words = ["--workspace", str(workspace), "restore", "latest", "--to", str(tmp_path / "back")]
    done = subprocess.run([sys.executable, "-m", "guard", *words], stderr=theirs, check=True)
    os.close(theirs)
    seen = os.read(ours, 65536).decode()
    os.close(ours)
    assert done.returncode == 0
    assert " of 4006 files" in seen
    assert seen.endswith("\r\x1b[K")


def test_a_short_restore_says_nothing_beside_its_result(
    repository: Path, workspace: Path, tmp_path: Path
) -> None:
    keep(repository, workspace)
    assert restore(workspace, "latest", "kept.txt", "--to", tmp_path / "back").err == ""


def test_killed_in_the_middle_every_file_is_old_or_new(repository: Path, workspace: Path) -> None:
    names = [f"many/{number}.bin" for number in range(60)]
    for name in names:
        write(repository / name, b"a" * 400_000)
    made = keep(repository, workspace)
    old, new = b"b" * 400_000, b"a" * 400_000
    seen: set[int] = set()
    for delay in (
        0.0,
        0.02,
        0.05,
        0.1,
        0.2,
    ) * 4:  # On a busy machine the first may all be too late.
        if len(seen) > 1 and delay == 0.0:
            break
        for name in names:
            write(repository / name, old)
        words = ["--workspace", str(workspace), "restore", made, "--in-place"]
        child = subprocess.Popen([sys.executable, "-m", "guard", *words], start_new_session=True)
        while child.poll() is None and (repository / names[0]).read_bytes() == old:
            time.sleep(0.002)
        time.sleep(delay)
        child.kill()
        child.wait()
        found = [(repository / name).read_bytes() for name in names]
        assert set(found) <= {old, new}
        seen.add(found.count(new))
    assert len(seen) > 1
    assert report(workspace, made, "--in-place")["not_restored"] == []
    assert not list(repository.rglob(".guard-restore-*"))
    assert {(repository / name).read_bytes() for name in names} == {new}
