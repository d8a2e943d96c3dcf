"""States that a repository can be left in, each built for real; a builder returns what the iteration left in it."""

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.support import commit, git, write

Left = list[bytes | str]


@dataclass(frozen=True)
class State:
    """How to get there, and what a rescue must say of it."""

    build: Callable[[Path], Left]
    reason: str = "rescued"
    on_branch: bool = False
    """Whether the work ends up on a branch of its own."""


def start(root: Path) -> None:
    """A commit with a few files, one of them the user's to edit."""
    for name in ("kept.txt", "edited.txt", "deleted.txt", "tool.sh", "mine.txt"):
        write(root / name, f"{name}\n" * 3)
    write(root / "folder/inside.txt", "inside\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "Start")


def dirty(root: Path) -> Left:
    write(root / "edited.txt", "edited\n")
    write(root / "new.txt", "new\n")
    return ["edited.txt", "new.txt"]


def every_kind(root: Path) -> Left:
    write(root / "edited.txt", "unstaged\n")
    write(root / "staged.txt", "staged\n")
    git(root, "add", "staged.txt")
    (root / "deleted.txt").unlink()
    (root / "tool.sh").chmod(0o755)
    (root / "link").symlink_to("nowhere at all")
    git(root, "mv", "kept.txt", "renamed.txt")
    write(root / "deep/er/new.txt", "new\n")
    return [
        *("edited.txt", "staged.txt", "deleted.txt", "tool.sh", "link"),
        *("kept.txt", "renamed.txt", "deep/er/new.txt"),
    ]


def odd_names(root: Path) -> Left:
    names = [
        *(b"new\nline", b"lat\xe9n", b"-rf", b":(top)x", b"*", b'quo"te', b"back\\slash", b"tab\t"),
        *(b" space ", "smile \U0001f600".encode(), b"n" * 255, b"\x1b[31mred", b"a:b", b"%41"),
    ]
    for name in names:
        with open(os.path.join(os.fsencode(root), name), "wb") as file:
            file.write(name)
    return [*names]


def staged_differs(root: Path) -> Left:
    write(root / "edited.txt", "staged version\n")
    git(root, "add", "edited.txt")
    write(root / "edited.txt", "version on disk\n")
    return ["edited.txt"]


def swapped_kinds(root: Path) -> Left:
    """A file becomes a folder, a folder a file, a file a link, a folder a link."""
    (root / "kept.txt").unlink()
    write(root / "kept.txt/now.txt", "a folder\n")
    shutil.rmtree(root / "folder")
    write(root / "folder", "a file\n")
    (root / "edited.txt").unlink()
    (root / "edited.txt").symlink_to("mine.txt")
    return ["kept.txt", "kept.txt/now.txt", "folder/inside.txt", "folder", "edited.txt"]


def folder_to_link(root: Path) -> Left:
    shutil.move(root / "folder", root / "moved")
    (root / "folder").symlink_to("moved")
    return ["folder/inside.txt", "folder", "moved/inside.txt"]


def new_folder(root: Path) -> Left:
    write(root / ".gitignore", "*.log\n")
    git(root, "add", ".gitignore")
    git(root, "commit", "-q", "-m", "Ignore logs")
    write(root / "package/one.py", "one\n")
    write(root / "package/sub/two.py", "two\n")
    write(root / "package/noise.log", "noise\n")
    return ["package/"]


def unborn(root: Path) -> Left:
    git(root, "checkout", "-q", "--orphan", "fresh")
    git(root, "rm", "-q", "-r", "--cached", ".")
    git(root, "branch", "-q", "-D", "main")
    git(root, "symbolic-ref", "HEAD", "refs/heads/main")
    names = git(root, "ls-files", "--others", "-z").split("\0")
    return [*names[:-1]]


def hostile_hooks(root: Path) -> Left:
    names = ("pre-commit", "commit-msg", "post-commit", "reference-transaction")
    for name in (*names, "post-index-change", "prepare-commit-msg", "post-rewrite"):
        hook = write(
            root / f".git/hooks/{name}", "#!/bin/sh\nrm -rf ./*.txt\ntouch ../ran\nexit 1\n"
        )
        hook.chmod(0o755)
    return dirty(root)


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


def line_ends(root: Path) -> Left:
    git(root, "config", "core.autocrlf", "true")
    write(root / "edited.txt", b"one\r\ntwo\r\n")
    write(root / "mixed.txt", b"one\r\ntwo\n")
    write(root / "binary.bin", b"\0\r\n\0")
    return ["edited.txt", "mixed.txt", "binary.bin"]


def line_ends_committed_as_they_are(root: Path) -> Left:
    write(root / "dos.txt", b"one\r\n")
    git(root, "add", "dos.txt")
    git(root, "commit", "-q", "-m", "Add dos.txt")
    git(root, "config", "core.autocrlf", "true")
    write(root / "dos.txt", b"one\r\ntwo\r\n")
    return ["dos.txt"]


def other_encoding(root: Path) -> Left:
    write(root / ".gitattributes", "*.utf16 working-tree-encoding=UTF-16LE\n*.id ident\n")
    write(root / "wide.utf16", "wide\n".encode("utf-16-le"))
    write(root / "who.id", "$Id: something else $\n")
    return [".gitattributes", "wide.utf16", "who.id"]


def sparse(root: Path) -> Left:
    git(root, "sparse-checkout", "set", "--no-cone", "/edited.txt", "/new.txt")
    write(root / "folder/outside.txt", "outside the cone\n")
    return [*dirty(root), "folder/outside.txt"]


def other_index_formats(root: Path) -> Left:
    git(root, "update-index", "--index-version", "4")
    git(root, "update-index", "--split-index")
    return dirty(root)


def flags_that_hide(root: Path) -> Left:
    git(root, "update-index", "--assume-unchanged", "edited.txt")
    git(root, "update-index", "--skip-worktree", "kept.txt")
    write(root / "kept.txt", "hidden\n")
    return [*dirty(root), "kept.txt"]


def intent_to_add(root: Path) -> Left:
    left = dirty(root)
    git(root, "add", "--intent-to-add", "new.txt")
    return left


def case_folding(root: Path) -> Left:
    git(root, "config", "core.ignoreCase", "true")
    write(root / "Edited.TXT", "another file\n")
    return [*dirty(root), "Edited.TXT"]


def modes_ignored(root: Path) -> Left:
    git(root, "config", "core.fileMode", "false")
    (root / "edited.txt").chmod(0o755)
    return dirty(root)


def tracked_packages(root: Path) -> Left:
    write(root / "node_modules/vendored.js", "vendored\n")
    git(root, "add", "-f", "node_modules")
    git(root, "commit", "-q", "-m", "Vendor")
    write(root / "node_modules/vendored.js", "patched\n")
    return ["node_modules/vendored.js"]


def missing_index(root: Path) -> Left:
    left = dirty(root)
    (root / ".git/index").unlink()
    return left


def detached(root: Path) -> Left:
    git(root, "checkout", "-q", "--detach")
    return dirty(root)


def two_sides(root: Path) -> str:
    """A commit on another branch that conflicts with one on main; its id."""
    git(root, "checkout", "-q", "-b", "side")
    side = commit(root, "edited.txt", "side\n")
    git(root, "checkout", "-q", "main")
    commit(root, "edited.txt", "main\n")
    return side


def stopped(root: Path, *words: str) -> Left:
    """Git stops at a conflict; a new file lies beside it."""
    subprocess.run(["git", *words], cwd=root, check=False, capture_output=True)
    write(root / "new.txt", "new\n")
    return ["edited.txt", "new.txt"]


def merge(root: Path) -> Left:
    return stopped(root, "merge", two_sides(root))


def merge_resolved(root: Path) -> Left:
    left = merge(root)
    write(root / "edited.txt", "resolved\n")
    git(root, "add", "edited.txt")
    write(root / "edited.txt", "resolved, and edited again\n")
    return left


def rebase(root: Path) -> Left:
    return stopped(root, "rebase", two_sides(root))


def cherry_pick(root: Path) -> Left:
    return stopped(root, "cherry-pick", two_sides(root))


def several_picks(root: Path) -> Left:
    two_sides(root)
    git(root, "checkout", "-q", "side")
    commit(root, "later.txt")
    git(root, "checkout", "-q", "main")
    stopped(root, "cherry-pick", "main..side")
    write(root / "edited.txt", "picked\n")
    git(root, "add", "edited.txt")
    git(root, "commit", "-q", "--no-edit")
    return ["new.txt"]


def revert(root: Path) -> Left:
    commit(root, "edited.txt", "first\n")
    commit(root, "edited.txt", "second\n")
    return stopped(root, "revert", "--no-edit", "HEAD~1")


def mailbox(root: Path) -> Left:
    two_sides(root)
    patch = write(root.parent / "side.patch", git(root, "format-patch", "-1", "side", "--stdout"))
    return stopped(root, "am", "--3way", str(patch))


def bisect(root: Path) -> Left:
    for number in range(4):
        commit(root, f"{number}.txt")
    git(root, "bisect", "start", "HEAD", "HEAD~3")
    return dirty(root)


def conflicts_alone(root: Path) -> Left:
    write(root / "edited.txt", "stashed\n")
    git(root, "stash")
    commit(root, "edited.txt", "committed\n")
    return stopped(root, "stash", "pop")


def index_lock(root: Path) -> Left:
    left = dirty(root)
    write(root / ".git/index.lock", "")
    return left


def head_lock(root: Path) -> Left:
    left = dirty(root)
    write(root / ".git/HEAD.lock", "")
    return left


def branch_changed(root: Path) -> Left:
    git(root, "checkout", "-q", "-b", "another")
    return dirty(root)


def elsewhere(root: Path) -> Left:
    git(root, "worktree", "add", "-q", "--force", str(root.parent / "linked"), "main")
    return dirty(root)


def mass_deletion(root: Path) -> Left:
    names = [f"many/{number}.txt" for number in range(40)]
    for name in names:
        write(root / name, name)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "Many")
    shutil.rmtree(root / "many")
    return [*dirty(root), *names]


def work_tree_elsewhere(root: Path) -> Left:
    (root.parent / "else").mkdir()
    git(root, "config", "core.worktree", str(root.parent / "else"))
    return dirty(root)


def made_bare(root: Path) -> Left:
    git(root, "config", "core.bare", "true")
    return dirty(root)


def broken_config(root: Path) -> Left:
    write(root / ".git/config", "[core\nnonsense")
    return dirty(root)


def empty_head(root: Path) -> Left:
    write(root / ".git/HEAD", "")
    return dirty(root)


def empty_ref(root: Path) -> Left:
    write(root / ".git/refs/heads/main", "")
    return dirty(root)


def cut_index(root: Path) -> Left:
    left = dirty(root)
    data = (root / ".git/index").read_bytes()
    write(root / ".git/index", data[: len(data) // 2])
    return left


STATES = {
    "plain": State(dirty),
    "every kind of change": State(every_kind),
    "odd names": State(odd_names),
    "staged and on disk differ": State(staged_differs),
    "kinds swapped": State(swapped_kinds),
    "folder became a link": State(folder_to_link),
    "new folder": State(new_folder),
    "no commit yet": State(unborn),
    "hooks that destroy": State(hostile_hooks),
    "settings that run programs": State(hostile_settings),
    "no identity": State(no_identity),
    "autocrlf": State(line_ends),
    "autocrlf and a file committed with CRLF": State(line_ends_committed_as_they_are),
    "working-tree-encoding and ident": State(other_encoding),
    "sparse checkout": State(sparse),
    "split index of version 4": State(other_index_formats),
    "assume-unchanged and skip-worktree": State(flags_that_hide),
    "intent to add": State(intent_to_add),
    "ignorecase": State(case_folding),
    "fileMode off": State(modes_ignored),
    "tracked file among installed packages": State(tracked_packages),
    "index missing": State(missing_index),
    "detached": State(detached, "not_plain:detached", on_branch=True),
    "merge": State(merge, "not_plain:merge", on_branch=True),
    "merge partly resolved": State(merge_resolved, "not_plain:merge", on_branch=True),
    "rebase": State(rebase, "not_plain:rebase", on_branch=True),
    "cherry-pick": State(cherry_pick, "not_plain:cherry_pick", on_branch=True),
    "several picks": State(several_picks, "not_plain:sequencer", on_branch=True),
    "revert": State(revert, "not_plain:revert", on_branch=True),
    "am": State(mailbox, "not_plain:rebase", on_branch=True),
    "bisect": State(bisect, "not_plain:bisect", on_branch=True),
    "conflicts of a stash": State(conflicts_alone, "not_plain:conflicts", on_branch=True),
    "index.lock": State(index_lock, "not_plain:index_lock", on_branch=True),
    "HEAD.lock": State(head_lock, "not_plain:head_lock", on_branch=True),
    "another branch": State(branch_changed, "not_plain:branch_changed", on_branch=True),
    "checked out elsewhere": State(elsewhere, "not_plain:checked_out_elsewhere"),
    "mass deletion": State(mass_deletion, "not_plain:mass_deletion"),
    "core.worktree elsewhere": State(work_tree_elsewhere, "not_plain:core_worktree"),
    "core.bare": State(made_bare, "not_plain:core_bare"),
    "config broken": State(broken_config, "not_plain:git"),
    "HEAD empty": State(empty_head, "not_plain:git"),
    "index cut": State(cut_index, "not_plain:index_damaged", on_branch=True),
    "ref empty": State(empty_ref, "not_plain:git"),
}
