"""HEAD, branches and operations in progress."""

from dataclasses import replace
from pathlib import Path

from tests.rescue.states_start import (
    ANYTHING,
    Left,
    State,
    after,
    attempted,
    before,
    dirty,
    stage_and_edit,
    stopped,
    two_sides,
)
from tests.support import commit, git, write


def unborn(root: Path) -> Left:
    git(root, "checkout", "-q", "--orphan", "fresh")
    git(root, "rm", "-q", "-r", "--cached", ".")
    git(root, "branch", "-q", "-D", "main")
    git(root, "symbolic-ref", "HEAD", "refs/heads/main")
    names = git(root, "ls-files", "--others", "-z").split("\0")
    return [*names[:-1]]


def unborn_and_staged(root: Path) -> Left:
    left = unborn(root)
    stage_and_edit(root, "staged before the first commit\n", "and edited again\n")
    return left


def detached(root: Path) -> Left:
    git(root, "checkout", "-q", "--detach")
    return dirty(root)


def detached_with_commits(root: Path) -> Left:
    git(root, "checkout", "-q", "--detach")
    commit(root, "committed.txt", "on no branch\n")
    return dirty(root)


def detached_at_a_tag(root: Path) -> None:
    git(root, "tag", "-a", "-m", "Release", "v1")
    git(root, "checkout", "-q", "v1")


def merge(root: Path) -> Left:
    return stopped(root, "merge", two_sides(root))


def merge_resolved(root: Path) -> Left:
    left = merge(root)
    stage_and_edit(root, "resolved\n", "resolved, and edited again\n")
    return left


def commit_beside(root: Path, name: str) -> None:
    """A commit of this file on a branch `side`."""
    git(root, "checkout", "-q", "-b", "side")
    commit(root, name, "theirs\n")
    git(root, "checkout", "-q", "main")


def merge_not_committed(root: Path) -> Left:
    commit_beside(root, "theirs.txt")
    commit(root, "ours.txt", "ours\n")
    git(root, "merge", "-q", "--no-commit", "side")
    return [*dirty(root), "theirs.txt"]


def merge_squashed(root: Path) -> Left:
    commit_beside(root, "theirs.txt")
    git(root, "merge", "-q", "--squash", "side")
    return [*dirty(root), "theirs.txt"]


def merge_both_added(root: Path) -> Left:
    commit_beside(root, "both.txt")
    commit(root, "both.txt", "ours\n")
    attempted(root, "merge", "side")
    return [*dirty(root), "both.txt"]


def merge_deleted(root: Path) -> Left:
    commit_beside(root, "edited.txt")
    git(root, "rm", "-q", "edited.txt")
    git(root, "commit", "-q", "-m", "Delete it")
    return stopped(root, "merge", "side")


def merge_with_autostash(root: Path) -> Left:
    """The work is in no ref: only MERGE_AUTOSTASH names it."""
    side = two_sides(root)
    write(root / "mine.txt", "put aside by the merge\n")
    return stopped(root, "merge", "--autostash", side)


def rebase(root: Path) -> Left:
    return stopped(root, "rebase", two_sides(root))


def rebase_by_patches(root: Path) -> Left:
    return stopped(root, "rebase", "--apply", two_sides(root))


def rebase_with_autostash(root: Path) -> Left:
    """The work is in no ref: only rebase-merge/autostash names it."""
    side = two_sides(root)
    write(root / "mine.txt", "put aside by the rebase\n")
    return stopped(root, "rebase", "--autostash", side)


def rebase_to_edit(root: Path) -> Left:
    commit(root, "first.txt")
    commit(root, "second.txt")
    editor = ("-c", "sequence.editor=sed -i 1s/pick/edit/")
    attempted(root, *editor, "rebase", "-i", "HEAD~2")
    assert (root / ".git/rebase-merge").is_dir()
    return dirty(root)


def rebase_stopped_by_a_command(root: Path) -> Left:
    commit(root, "first.txt")
    attempted(root, "rebase", "--exec", "false", "HEAD~1")
    assert (root / ".git/rebase-merge").is_dir()
    return dirty(root)


def cherry_pick(root: Path) -> Left:
    return stopped(root, "cherry-pick", two_sides(root))


def cherry_pick_not_committed(root: Path) -> Left:
    commit_beside(root, "theirs.txt")
    git(root, "cherry-pick", "--no-commit", "side")
    return [*dirty(root), "theirs.txt"]


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


def several_picks_in_conflict(root: Path) -> Left:
    two_sides(root)
    git(root, "checkout", "-q", "side")
    commit(root, "later.txt")
    git(root, "checkout", "-q", "main")
    return stopped(root, "cherry-pick", "main..side")


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


def branch_changed(root: Path) -> None:
    git(root, "checkout", "-q", "-b", "another")


def orphan(root: Path) -> None:
    git(root, "checkout", "-q", "--orphan", "another")


def branch_deleted(root: Path) -> None:
    git(root, "update-ref", "-d", "refs/heads/main")


def branch_is_a_symbolic_ref(root: Path) -> None:
    git(root, "branch", "-m", "real")
    git(root, "symbolic-ref", "refs/heads/main", "refs/heads/real")
    git(root, "symbolic-ref", "HEAD", "refs/heads/main")


def ambiguous_names(root: Path) -> None:
    """A tag and a branch that could be taken for the branch and for HEAD."""
    old = git(root, "rev-parse", "HEAD").strip()
    commit(root, "later.txt")
    git(root, "tag", "main", old)
    git(root, "update-ref", "refs/heads/HEAD", old)


def checked_out_elsewhere(root: Path) -> None:
    git(root, "worktree", "add", "-q", "--force", str(root.parent / "linked"), "main")


def rewound(root: Path) -> Left:
    """The commits of the iteration were taken back, and lie in the work tree."""
    commit(root, "committed.txt", "committed and taken back\n")
    git(root, "reset", "-q", "--mixed", "HEAD~1")
    return [*dirty(root), "committed.txt"]


def head_file(text: str) -> State:
    spoiled = before(lambda root: write(root / ".git/HEAD", text))
    return State(spoiled, "not_plain:git", naive_loses=True, sound=False)


def ref_file(text: str) -> State:
    spoiled = before(lambda root: write(root / ".git/refs/heads/main", text))
    return State(spoiled, "not_plain:git", naive_loses=True, sound=False)


def on_branch(build: object, what: str, *, loses: bool = False) -> State:
    assert callable(build)
    return State(build, f"not_plain:{what}", on_branch=True, naive_loses=loses)


HEADS = {
    "no commit yet": State(unborn),
    "no commit yet, staged and on disk differ": State(unborn_and_staged, naive_loses=True),
    "detached": on_branch(detached, "detached", loses=True),
    "detached, with commits": on_branch(detached_with_commits, "detached", loses=True),
    "detached at a tag": on_branch(after(detached_at_a_tag), "detached", loses=True),
    "merge": on_branch(merge, "merge"),
    "merge partly resolved": on_branch(merge_resolved, "merge", loses=True),
    "merge not committed": on_branch(merge_not_committed, "merge"),
    "merge squashed": State(merge_squashed),
    "merge, both added": on_branch(merge_both_added, "merge"),
    "merge, deleted here": on_branch(merge_deleted, "merge"),
    "merge with autostash": on_branch(merge_with_autostash, "merge", loses=True),
    "rebase with autostash": on_branch(rebase_with_autostash, "rebase", loses=True),
    "rebase": on_branch(rebase, "rebase", loses=True),
    "rebase by patches": on_branch(rebase_by_patches, "rebase", loses=True),
    "rebase to edit": on_branch(rebase_to_edit, "rebase", loses=True),
    "rebase stopped by a command": on_branch(rebase_stopped_by_a_command, "rebase", loses=True),
    "cherry-pick": on_branch(cherry_pick, "cherry_pick"),
    "cherry-pick not committed": State(cherry_pick_not_committed),
    "several picks": on_branch(several_picks, "sequencer"),
    "several picks in conflict": on_branch(several_picks_in_conflict, "cherry_pick"),
    "revert": on_branch(revert, "revert"),
    "am": on_branch(mailbox, "rebase"),
    "bisect": on_branch(bisect, "bisect", loses=True),
    "another branch": on_branch(after(branch_changed), "branch_changed"),
    "orphan branch": on_branch(after(orphan), "branch_changed"),
    "branch deleted": State(after(branch_deleted), remains=ANYTHING),
    "branch is a symbolic ref": on_branch(after(branch_is_a_symbolic_ref), "branch_changed"),
    "names that are ambiguous": State(after(ambiguous_names)),
    "commit taken back": State(rewound),
    "checked out elsewhere": State(after(checked_out_elsewhere), "not_plain:checked_out_elsewhere"),
    "HEAD empty": head_file(""),
    "HEAD garbage": head_file("garbage\n"),
    "HEAD zeros": replace(head_file("0" * 40 + "\n"), reason="not_plain:detached", on_branch=True),
    "HEAD out of the repository": head_file("ref: ../../elsewhere\n"),
    "ref empty": ref_file(""),
    "ref zeros": ref_file("\0" * 41),
    "ref to a missing commit": replace(ref_file("1234567890" * 4 + "\n"), reason="refused"),
}
