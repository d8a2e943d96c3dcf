"""Decisions of snapshot and rescue, as tables."""

from dataclasses import replace

import pytest

from guard.core.events.snapshot import (
    MOST_NAMED,
    HeldBack,
    Skipped,
    State,
    capped_held,
    capped_lines,
    commit_message,
    full_ref,
    is_mass_deletion,
    is_relative,
    listed,
    obstacle,
    rebuilt,
    refused_by_git,
    shown,
    snapshot_only,
    tree_path,
)

PLAIN = State(branch="refs/heads/main", baseline_branch="refs/heads/main")


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
    assert word is None or snapshot_only(state, word) == alone


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
    "name",
    [
        *(".git", ".GIT", ".gIt", "git~1", "GIT~1", ".git ", ".git.", ".git . .", ".git:stream"),
        *(".git::$INDEX_ALLOCATION", ".g\u200cit", "\ufeff.git", "a\\.git", "a\\git~1\\b"),
    ],
)
def test_names_that_git_takes_for_its_own(name: str) -> None:
    assert refused_by_git(name.encode())
    assert tree_path(b"x/" + name.encode() + b"/y") != b"x/" + name.encode() + b"/y"


@pytest.mark.parametrize(
    "name",
    [
        *(b".gitignore", b".gitmodules", b".github", b"git", b"git~2", b".git2", b"x.git"),
        *(b"lat\xe9", b"...git", b"%2e", b"back\\slash"),
    ],
)
def test_names_that_only_look_like_it(name: bytes) -> None:
    assert not refused_by_git(name)
    assert tree_path(name) == name


def test_no_two_paths_have_one_place() -> None:
    names = [b".git", b".GIT", b"escaped%.git", b"escaped%escaped%.git", b"a\\.git", b"a%5c.git"]
    names += [b"escaped%a%255c.git", b"escaped%a%5c.git", b"escaped%"]
    places = [tree_path(name) for name in names]
    assert len(set(places)) == len(names)
    assert not any(refused_by_git(place) for place in places)


@pytest.mark.parametrize(
    ("name", "inside", "what"),
    [
        ("node_modules", (), "installed packages"),
        ("__pycache__", (), "a cache"),
        (".venv", ("pyvenv.cfg", "bin"), "a virtual environment"),
        ("anything", ("pyvenv.cfg", "Scripts"), "a virtual environment"),
        ("src", ("pyvenv.cfg", "main.py"), None),
        (".venv", ("notes.txt",), None),
        ("target", ("CACHEDIR.TAG",), "a cache"),
        ("target", ("main.rs",), None),
        ("src", ("CACHEDIR.TAG",), None),
        ("build", (), None),
    ],
)
def test_what_a_tool_makes_anew(name: str, inside: tuple[str, ...], what: str | None) -> None:
    assert rebuilt(name.encode(), [one.encode() for one in inside]) == what


@pytest.mark.parametrize(
    ("path", "verdict"),
    [
        (b"a", True),
        (b"a/b", True),
        (b"...", True),
        (b"", False),
        (b"/etc/passwd", False),
        (b"../x", False),
        (b"a/../b", False),
        (b"./a", False),
        (b"a//b", False),
        (b"a/", False),
        (b"a\0b", False),
    ],
)
def test_paths_below_the_root(path: bytes, verdict: bool) -> None:
    assert is_relative(path) == verdict


@pytest.mark.parametrize(
    ("branch", "ref"),
    [(None, None), ("main", "refs/heads/main"), ("refs/heads/a/b", "refs/heads/a/b")],
)
def test_a_branch_by_its_full_name(branch: str | None, ref: str | None) -> None:
    assert full_ref(branch) == ref


def test_a_message_lists_the_files_and_ends_with_the_trailer() -> None:
    text = commit_message("feat: add\x1b", "A a.py\nD b.py\n", "run-1", 3).decode()
    assert text == "feat: add\\x1b\n\nA a.py\nD b.py\n\nGuard-Rescue: run-1/3\n"
    assert commit_message("fix: x", "", "r", 1) == b"fix: x\n\nGuard-Rescue: r/1\n"


def test_a_message_lists_at_most_fifty_files() -> None:
    text = listed([f"A {number}" for number in range(60)])
    assert text.count("A ") == 50
    assert text.endswith("\nand 10 more files")


@pytest.mark.parametrize("message", ["", "  \n\t", "\n\n"])
def test_an_empty_message_is_none(message: str) -> None:
    assert commit_message(message, "", "r", 1).startswith(b"chore: rescue")


@pytest.mark.parametrize("count", [0, MOST_NAMED, MOST_NAMED + 1, MOST_NAMED + 50])
def test_lists_are_capped_and_say_so(count: int) -> None:
    lines = capped_lines([Skipped(path=f"{n}", why="x") for n in range(count)])
    held = capped_held([HeldBack(path=f"{n}", why="x") for n in range(count)])
    more = max(0, count - MOST_NAMED)
    assert len(lines) == len(held) == count - more + bool(more)
    assert not more or f"{more} more path" in lines[-1]
    assert not more or f"{more} more path" in held[-1].why


def test_a_path_for_people_fits_a_line() -> None:
    assert len(shown(b"\xff" * 4096)) == 512
    assert shown("\u202ex".encode()) == "\\u202ex"
