"""Which paths are meant, which may be written, and what a difference looks like."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.snapshots.paths import tree_path, work_tree_path
from guard.core.snapshots.restore import (
    UnknownPath,
    is_asked_for,
    refuse_unknown,
    resolve_path,
    text_diff,
    why_unsafe,
    why_unsafe_nested,
)

names = st.binary(min_size=1, max_size=30).filter(lambda name: not {0, 0x2F} & set(name))
refused = st.sampled_from(
    [b".git", b".GIT", b"git~1", b"escaped%", b".git\\x", b"escaped%25", b"%5c"]
)


@given(st.lists(names | refused, min_size=1, max_size=4))
def test_every_name_has_a_way_back(parts: list[bytes]) -> None:
    path = b"/".join(parts)
    assert work_tree_path(tree_path(path)) == path


@pytest.mark.parametrize(
    ("here", "word", "path"),
    [
        ("/p", "a/b", b"a/b"),
        ("/p/src", "a", b"src/a"),
        ("/p/src", "../a", b"a"),
        ("/p/src", ".", b"src"),
        ("/p/src", "..", b""),
        ("/p", "a/", b"a"),
        ("/p", "./a//b/../c", b"a/c"),
        ("/elsewhere", "src/a", b"src/a"),
        ("/project", "a", b"a"),
        ("/elsewhere", "/p/src/a", b"src/a"),
        ("/p", "-rf", b"-rf"),
        ("/p", "\udcff", b"\xff"),
    ],
)
def test_a_path_is_taken_from_the_current_folder_in_the_work_tree_else_from_its_root(
    here: str, word: str, path: bytes
) -> None:
    assert resolve_path("/p", here, word) == path


@pytest.mark.parametrize("word", ["..", "../x", "/etc/passwd", "a/../../x"])
def test_a_path_that_leads_out_is_refused(word: str) -> None:
    with pytest.raises(UnknownPath, match="leads out of the work tree"):
        resolve_path("/p", "/p", word)


@pytest.mark.parametrize(
    ("path", "wanted", "meant"),
    [
        (b"a/b", [], True),
        (b"a/b", [b""], True),
        (b"a/b", [b"a"], True),
        (b"a/b", [b"a/b"], True),
        (b"ab", [b"a"], False),
        (b"a", [b"a/b"], False),
        (b"a/b", [b"x", b"a"], True),
    ],
)
def test_a_folder_means_all_that_is_in_it(path: bytes, wanted: list[bytes], meant: bool) -> None:
    assert is_asked_for(path, wanted) is meant


@pytest.mark.parametrize(
    ("word", "near"),
    [(b"src/man.py", "src/main.py"), (b"main.py", "src/main.py"), (b"qqqqqqqq", None)],
)
def test_an_unknown_path_is_refused_with_those_that_are_near(word: bytes, near: str | None) -> None:
    with pytest.raises(UnknownPath) as caught:
        refuse_unknown([word], [b"src/main.py", b"docs/index.md"])
    assert ("did you mean" in str(caught.value)) == (near is not None)
    assert near is None or near in str(caught.value)


@pytest.mark.parametrize(
    ("path", "safe"),
    [
        (b"a/b", True),
        (b"lib/.git", True),
        (b".GIT/config", True),
        (b"git~1", True),
        (b"-rf", True),
        (b"../a", False),
        (b"/etc/passwd", False),
        (b"a/../../b", False),
        (b"a//b", False),
        (b"./a", False),
        (b".git", False),
        (b".git/hooks/post-commit", False),
        (b"lib/.git/config", False),
        (b"nul\0", False),
        (b"", False),
    ],
)
def test_what_may_be_written(path: bytes, safe: bool) -> None:
    assert (why_unsafe(path) is None) is safe


@pytest.mark.parametrize(
    ("path", "safe"),
    [
        (b"lib/.git/HEAD", True),
        (b".github/x/.git/HEAD", True),
        (b"lib/.git", False),
        (b"lib/code.c", False),
        (b".git/HEAD", False),
        (b".git/x/.git/HEAD", False),
        (b"../lib/.git/HEAD", False),
        (b"lib/.git/../../x", False),
    ],
)
def test_what_may_be_written_of_nested_repositories(path: bytes, safe: bool) -> None:
    assert (why_unsafe_nested(path) is None) is safe


def test_a_difference_goes_from_what_is_there_to_the_snapshot() -> None:
    shown = text_diff(b"a", b"one\ntwo\n", b"one\nthree")
    assert shown is not None
    assert shown.splitlines() == [
        *("--- now/a", "+++ snapshot/a", "@@ -1,2 +1,2 @@", " one", "-two", "+three"),
        "\\ No newline at end of file",
    ]


def test_bytes_that_are_no_text_have_no_diff_and_a_long_one_is_cut() -> None:
    assert text_diff(b"a", b"x\0", b"x") is None
    long = text_diff(b"a", b"", b"line\n" * 50_000)
    assert long is not None
    assert (len(long) < 61_000, long.endswith("…")) == (True, True)
