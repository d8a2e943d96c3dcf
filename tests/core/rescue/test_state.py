"""Whether the state of a repository allows a commit."""

from dataclasses import replace

import pytest

from guard.core.rescue.state import (
    RepositoryState,
    full_ref,
    is_mass_deletion,
    is_snapshot_only,
    obstacle,
)

PLAIN = RepositoryState(branch="refs/heads/main", baseline_branch="refs/heads/main")


@pytest.mark.parametrize(
    ("change", "word", "alone"),
    [
        ({}, None, False),
        ({"git_dir": False}, "no_git_dir", True),
        ({"misplaced": "core_worktree"}, "core_worktree", True),
        ({"misplaced": "core_bare"}, "core_bare", True),
        ({"operation": "rebase", "branch": None}, "rebase", False),
        ({"operation": "merge", "conflicts": True}, "merge", False),
        ({"index_damaged": True}, "index_damaged", False),
        ({"conflicts": True}, "conflicts", False),
        ({"branch": None}, "detached", False),
        ({"branch": None, "baseline_branch": None}, "detached", False),
        ({"branch": "refs/heads/other"}, "branch_changed", False),
        ({"baseline_branch": None}, "branch_changed", False),
        ({"elsewhere": True}, "checked_out_elsewhere", True),
        ({"lock": "index_lock"}, "index_lock", False),
        ({"git_dir": False, "operation": "merge"}, "no_git_dir", True),
        ({"operation": "merge", "misplaced": "core_bare"}, "core_bare", True),
    ],
    ids=str,
)
def test_only_a_plain_state_allows_a_commit(
    change: dict[str, str | bool | None], word: str | None, alone: bool
) -> None:
    state = replace(PLAIN, **change)  # type: ignore[arg-type]
    assert obstacle(state) == word
    assert word is None or is_snapshot_only(state, word) == alone


@pytest.mark.parametrize(
    ("deleted", "tracked", "verdict"),
    [
        (0, 0, False),
        (20, 20, False),
        (21, 21, True),
        (21, 69, True),
        (21, 70, False),
        (30, 100, False),
        (31, 100, True),
        (1000, 10_000, False),
    ],
)
def test_a_mass_deletion_is_many_files_and_a_large_part(
    deleted: int, tracked: int, verdict: bool
) -> None:
    assert is_mass_deletion(deleted, tracked) == verdict


@pytest.mark.parametrize(
    ("branch", "ref"),
    [(None, None), ("main", "refs/heads/main"), ("refs/heads/a/b", "refs/heads/a/b")],
)
def test_a_branch_by_its_full_name(branch: str | None, ref: str | None) -> None:
    assert full_ref(branch) == ref
