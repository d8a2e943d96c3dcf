"""Where the repository is, and what it lacks: nested ones, other git directories, clones, damage."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

from tests.rescue.states_start import (
    Left,
    State,
    after,
    before,
    configured,
    dirty,
    identify,
    in_removed_repository,
    in_repository,
    set_aside,
    start,
)
from tests.support import commit, git, write


def nested(root: Path, *, commits: bool) -> Left:
    inner = root / "vendor/lib"
    inner.mkdir(parents=True)
    git(inner, "init", "-q")
    identify(inner)
    if commits:
        commit(inner, "old.c", "first\n")
        commit(inner, "code.c", "committed inside\n")
        write(inner / "old.c", "staged inside\n")
        git(inner, "add", "old.c")
    write(inner / "code.c", "edited inside\n")
    return [*dirty(root), "vendor/lib/" if commits else "vendor/lib/code.c"]


def submodule(root: Path) -> Path:
    library = root.parent / "library"
    library.mkdir()
    git(library, "init", "-q", "-b", "main")
    identify(library)
    commit(library, "code.c", "first\n")
    allow = ("-c", "protocol.file.allow=always")
    git(root, *allow, "submodule", "--quiet", "add", str(library), "lib")
    git(root, "commit", "-q", "-m", "Add the library")
    identify(root / "lib")
    return root / "lib"


def submodule_dirty(root: Path) -> Left:
    inner = submodule(root)
    write(inner / "code.c", "edited inside\n")
    write(inner / "new.c", "new inside\n")
    return [*dirty(root), "lib"]


def submodule_ahead(root: Path) -> Left:
    inner = submodule(root)
    commit(inner, "code.c", "committed inside, not pushed\n")
    write(inner / "code.c", "and edited again\n")
    return [*dirty(root), "lib"]


def submodule_gone(root: Path) -> Left:
    shutil.rmtree(submodule(root))
    return [*dirty(root), "lib"]


def broken_modules(root: Path) -> Left:
    write(root / ".gitmodules", "[submodule\nbroken")
    return [*dirty(root), ".gitmodules"]


def bare_inside(root: Path) -> Left:
    git(root, "init", "-q", "--bare", "fixtures/remote.git")
    names = [path for path in (root / "fixtures").rglob("*") if path.is_file()]
    return [*dirty(root), *(path.relative_to(root).as_posix() for path in names)]


def vanished(root: Path) -> None:
    shutil.rmtree(root / ".git")


def vanished_inside_another(root: Path) -> Left:
    """A commit made carelessly would land in the repository around it."""
    git(root.parent, "init", "-q", "-b", "main")
    identify(root.parent)
    write(root.parent / ".gitignore", "/*\n!/project/\n")
    shutil.rmtree(root / ".git")
    return dirty(root)


def pointer(root: Path, target: Path) -> Left:
    """The git directory is elsewhere, and `.git` is a file that names this target."""
    (root / ".git").rename(root.parent / "real.git")
    write(root / ".git", f"gitdir: {target}\n")
    return dirty(root)


def pointer_elsewhere(root: Path) -> Left:
    return pointer(root, root.parent / "real.git")


def linked_git_dir(root: Path) -> Left:
    (root / ".git").rename(root.parent / "real.git")
    (root / ".git").symlink_to(root.parent / "real.git")
    return dirty(root)


def foreign_pointer(root: Path) -> Left:
    """The repository that `.git` names by now is another one than guard saw."""
    other = root.parent / "other"
    other.mkdir()
    git(other, "init", "-q", "-b", "main")
    identify(other)
    commit(other, "other.txt")
    return pointer(root, other / ".git")


def dangling_pointer(root: Path) -> Left:
    return pointer(root, root.parent / "nowhere")


def linked_work_tree(root: Path) -> Left:
    primary = set_aside(root, "primary")
    git(primary, "worktree", "add", "-q", "-b", "feature", str(root))
    write(root / "edited.txt", "staged version\n")
    git(root, "add", "edited.txt")
    return dirty(root)


def linked_to_a_bare_one(root: Path) -> Left:
    primary = set_aside(root, "primary")
    git(primary, "config", "core.bare", "true")
    git(primary, "worktree", "add", "-q", "-b", "feature", str(root))
    return dirty(root)


def pruned_work_tree(root: Path) -> Left:
    """What the linked work tree had in the git directory was deleted."""
    primary = set_aside(root, "primary")
    git(primary, "worktree", "add", "-q", "-b", "feature", str(root))
    shutil.rmtree(primary / ".git/worktrees")
    return dirty(root)


def work_tree_elsewhere(root: Path) -> None:
    (root.parent / "else").mkdir()
    git(root, "config", "core.worktree", str(root.parent / "else"))


def config_per_work_tree(root: Path) -> None:
    git(root, "config", "extensions.worktreeConfig", "true")
    git(root, "config", "--worktree", "core.ignoreCase", "false")


def shallow(root: Path) -> Left:
    commit(root, "later.txt")
    origin = set_aside(root)
    git(root.parent, "clone", "-q", "--depth=1", f"file://{origin}", root.name)
    identify(root)
    return dirty(root)


def partial(root: Path) -> Left:
    """A clone without the blobs of old commits, whose origin is gone."""
    commit(root, "edited.txt", "later\n")
    origin = set_aside(root)
    git(origin, "config", "uploadpack.allowFilter", "true")
    git(root.parent, "clone", "-q", "--filter=blob:none", f"file://{origin}", root.name)
    identify(root)
    (origin / ".git").rename(origin / "gone.git")
    return dirty(root)


def partial_and_sparse(root: Path) -> Left:
    """Not even the last commit has all of its blobs here."""
    commit(root, "deep/file.txt", "outside of the cone\n")
    origin = set_aside(root)
    git(origin, "config", "uploadpack.allowFilter", "true")
    words = ("clone", "-q", "--filter=blob:none", "--sparse", f"file://{origin}")
    git(root.parent, *words, root.name)
    identify(root)
    (origin / ".git").rename(origin / "gone.git")
    return dirty(root)


def lender_gone(root: Path) -> Left:
    """A clone that borrows its objects, from a repository that is gone."""
    origin = set_aside(root)
    git(root.parent, "clone", "-q", "--shared", str(origin), root.name)
    identify(root)
    (origin / ".git").rename(origin / "gone.git")
    return dirty(root)


def missing_blob(root: Path) -> None:
    """Of a file that git knows by its times to be unchanged, so that no `git add` reads it again."""
    os.utime(root / "kept.txt", (1_000_000_000, 1_000_000_000))
    git(root, "update-index", "--refresh")
    oid = git(root, "rev-parse", "HEAD:kept.txt").strip()
    (root / ".git/objects" / oid[:2] / oid[2:]).unlink()


def missing_tree(root: Path) -> None:
    oid = git(root, "rev-parse", "HEAD^{tree}").strip()
    (root / ".git/objects" / oid[:2] / oid[2:]).unlink()


def missing_commit(root: Path) -> None:
    oid = git(root, "rev-parse", "HEAD").strip()
    (root / ".git/objects" / oid[:2] / oid[2:]).unlink()


def missing_objects(root: Path) -> None:
    shutil.rmtree(root / ".git/objects")


def packed(root: Path) -> None:
    commit(root, "later.txt")
    git(root, "gc", "-q")


def cut_pack(root: Path) -> None:
    git(root, "gc", "-q")
    [pack] = (root / ".git/objects/pack").glob("*.pack")
    data = pack.read_bytes()
    pack.chmod(0o600)
    pack.write_bytes(data[: len(data) // 2])


def other_hash(root: Path) -> Left:
    shutil.rmtree(root / ".git")
    git(root, "init", "-q", "-b", "main", "--object-format=sha256")
    identify(root)
    start(root)
    write(root / "edited.txt", "staged version\n")
    git(root, "add", "edited.txt")
    return dirty(root)


def replaced(root: Path) -> None:
    """The last commit is shown as another one."""
    old = git(root, "rev-parse", "HEAD").strip()
    new = commit(root, "later.txt")
    git(root, "replace", new, old)


def grafted(root: Path) -> None:
    commit(root, "later.txt")
    write(root / ".git/info/grafts", git(root, "rev-parse", "HEAD"))


def nested_state(build: object, path: str, status: str, folder: str) -> State:
    assert callable(build)
    held = {path: in_repository(folder)}
    return State(build, held=held, remains=(status,), naive_loses=True)


def unreadable(build: object, reason: str = "not_plain:git", skipped: str = "") -> State:
    assert callable(build)
    named = (skipped,) if skipped else ()
    return State(build, reason, naive_loses=True, sound=False, skipped=named)


def without_git_dir(build: object) -> State:
    assert callable(build)
    return State(build, "not_plain:no_git_dir", known=True, naive_loses=True)


LOST = "index/0/edited.txt: its object is missing"
PLACES = {
    "nested repository": nested_state(
        lambda root: nested(root, commits=True), "vendor/lib", "?? vendor/lib/", "vendor/lib"
    ),
    "nested repository without commits": nested_state(
        lambda root: nested(root, commits=False),
        "vendor/lib/code.c",
        "?? vendor/lib/",
        "vendor/lib",
    ),
    "submodule dirty": nested_state(submodule_dirty, "lib", " M lib", "lib"),
    "submodule ahead": nested_state(submodule_ahead, "lib", " M lib", "lib"),
    "submodule gone": State(
        submodule_gone,
        held={"lib": in_removed_repository("lib")},
        remains=(" D lib",),
    ),
    ".gitmodules broken": State(broken_modules),
    "bare repository inside": State(bare_inside),
    ".git gone": without_git_dir(before(vanished)),
    ".git gone, inside another repository": without_git_dir(vanished_inside_another),
    ".git is a file": State(pointer_elsewhere),
    ".git became a file": State(
        pointer_elsewhere, "not_plain:no_git_dir", known=True, naive_loses=False
    ),
    ".git is a link": State(linked_git_dir),
    ".git names another repository": replace(without_git_dir(foreign_pointer), naive_loses=False),
    ".git names nothing": without_git_dir(dangling_pointer),
    "linked work tree": State(linked_work_tree, branch="feature", naive_loses=True),
    "linked work tree of a bare repository": State(linked_to_a_bare_one, branch="feature"),
    "linked work tree that was pruned": State(
        pruned_work_tree, "not_plain:no_git_dir", naive_loses=True
    ),
    "core.worktree elsewhere": State(
        after(work_tree_elsewhere), "not_plain:core_worktree", naive_loses=True
    ),
    "core.bare": State(configured(core__bare="true"), "not_plain:core_bare", naive_loses=True),
    "settings of the work tree": State(after(config_per_work_tree)),
    "config broken": unreadable(after(lambda root: write(root / ".git/config", "[core\nbroken"))),
    "config missing": State(after(lambda root: (root / ".git/config").unlink()), naive_loses=True),
    "a format of tomorrow": unreadable(configured(core__repositoryFormatVersion="99")),
    "an extension of tomorrow": unreadable(
        configured(core__repositoryFormatVersion="1", extensions__tomorrow="true")
    ),
    "shallow clone": State(shallow),
    "partial clone, its origin gone": State(partial),
    "partial clone, sparse": State(partial_and_sparse),
    "borrowed objects, their lender gone": unreadable(lender_gone, "refused", LOST),
    "blob missing": State(after(missing_blob), naive_loses=True, sound=False),
    "tree missing": unreadable(after(missing_tree), "refused"),
    "commit missing": unreadable(after(missing_commit), "refused"),
    "objects missing": unreadable(after(missing_objects), skipped=LOST),
    "packed": State(after(packed)),
    "pack cut": unreadable(after(cut_pack), "refused", LOST),
    "sha256": State(other_hash, naive_loses=True),
    "replaced commit": State(after(replaced)),
    "grafted history": State(after(grafted), sound=False),
    "refs packed": State(after(lambda root: git(root, "pack-refs", "--all"))),
}
