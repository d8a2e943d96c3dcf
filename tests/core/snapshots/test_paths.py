"""Names that git refuses, folders that a tool rebuilds, and paths below the root."""

import pytest

from guard.core.snapshots.paths import (
    is_environment_part,
    is_refused_by_git,
    is_relative,
    may_be_environment,
    tree_path,
    why_rebuilt,
)


@pytest.mark.parametrize(
    "name",
    [
        *(".git", ".GIT", ".gIt", "git~1", "GIT~1", ".git ", ".git.", ".git . .", ".git:stream"),
        *(".git::$INDEX_ALLOCATION", ".g\u200cit", "\ufeff.git", "a\\.git", "a\\git~1\\b"),
    ],
)
def test_names_that_git_takes_for_its_own(name: str) -> None:
    assert is_refused_by_git(name.encode())
    assert tree_path(b"x/" + name.encode() + b"/y") != b"x/" + name.encode() + b"/y"


@pytest.mark.parametrize(
    "name",
    [
        *(b".gitignore", b".gitmodules", b".github", b"git", b"git~2", b".git2", b"x.git"),
        *(b"lat\xe9", b"...git", b"%2e", b"back\\slash"),
    ],
)
def test_names_that_only_look_like_it(name: bytes) -> None:
    assert not is_refused_by_git(name)
    assert tree_path(name) == name


def test_no_two_paths_have_one_place() -> None:
    names = [b".git", b".GIT", b"escaped%.git", b"escaped%escaped%.git", b"a\\.git", b"a%5c.git"]
    names += [b"escaped%a%255c.git", b"escaped%a%5c.git", b"escaped%"]
    places = [tree_path(name) for name in names]
    assert len(set(places)) == len(names)
    assert not any(is_refused_by_git(place) for place in places)


@pytest.mark.parametrize(
    ("name", "inside", "what"),
    [
        ("node_modules", (), "installed packages"),
        ("__pycache__", (), "a cache"),
        ("node_modules", (".git",), None),
        ("Node_Modules", (), None),
        (".venv", ("pyvenv.cfg", "bin"), None),
        ("target", ("CACHEDIR.TAG",), "a cache"),
        ("target", ("main.rs",), None),
        ("src", ("CACHEDIR.TAG",), None),
        ("build", (), None),
    ],
)
def test_what_a_tool_makes_anew(name: str, inside: tuple[str, ...], what: str | None) -> None:
    assert why_rebuilt(name.encode(), [one.encode() for one in inside]) == what


@pytest.mark.parametrize(
    ("inside", "is_one"),
    [
        (("pyvenv.cfg", "bin"), True),
        (("pyvenv.cfg", "Scripts"), True),
        (("pyvenv.cfg", "main.py"), False),
        (("notes.txt", "bin"), False),
    ],
)
def test_what_may_be_a_virtual_environment(inside: tuple[str, ...], is_one: bool) -> None:
    assert may_be_environment([one.encode() for one in inside]) == is_one


@pytest.mark.parametrize(
    ("name", "in_library", "is_part"),
    [
        ("bin", False, True),
        ("Scripts", False, True),
        ("include", False, True),
        ("lib", False, False),
        ("src", False, False),
        ("share", False, False),
        ("python3.13t", True, True),
        ("pypy3.10", True, True),
        ("site-packages", True, True),
        ("python-notes", True, False),
        ("bin", True, False),
    ],
)
def test_the_parts_of_an_environment(name: str, in_library: bool, is_part: bool) -> None:
    assert is_environment_part(name.encode(), in_library=in_library) == is_part


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
