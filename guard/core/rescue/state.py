"""Decide by the state of a repository whether a commit may be made on its branch."""

from guard.core.base.first_use import dataclass


@dataclass(frozen=True)
class RepositoryState:
    """What decides whether a commit may be made in a repository."""

    git_dir: bool = True
    branch: str | None = None
    """The ref that HEAD names, spelled; None if it is detached."""
    baseline_branch: str | None = None
    operation: str | None = None
    """A merge, rebase or the like that is in progress."""
    misplaced: str | None = None
    """The setting by which the repository says that its work tree is elsewhere."""
    conflicts: bool = False
    lock: str | None = None
    index_damaged: bool = False
    elsewhere: bool = False
    """Whether the branch is checked out in another work tree too."""


def obstacle(state: RepositoryState) -> str | None:
    """Why no commit may be made on the branch, in a word; None if the state is plain."""
    answers: tuple[tuple[bool, str], ...] = (
        (not state.git_dir, "no_git_dir"),
        (state.misplaced is not None, f"{state.misplaced}"),
        (state.operation is not None, f"{state.operation}"),
        (state.index_damaged, "index_damaged"),
        (state.conflicts, "conflicts"),
        (state.branch is None, "detached"),
        (state.branch != state.baseline_branch, "branch_changed"),
        (state.elsewhere, "checked_out_elsewhere"),
        (state.lock is not None, f"{state.lock}"),
    )
    return next((word for holds, word in answers if holds), None)


def is_snapshot_only(state: RepositoryState, what: str) -> bool:
    """Tell whether even a rescue branch would be wrong: the repository is not what it seems, or not this work tree's alone."""
    return not state.git_dir or what in (state.misplaced, "checked_out_elsewhere", "mass_deletion")


def is_mass_deletion(deleted: int, tracked: int) -> bool:
    """Tell whether more than 20 files go, and more than 30 % of those that the last commit has."""
    return deleted > 20 and deleted * 10 > tracked * 3


def full_ref(branch: str | None) -> str | None:
    return branch if branch is None or branch.startswith("refs/") else f"refs/heads/{branch}"
