"""Which globs may name the same file, and which tasks therefore do not run at once."""

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.plan.touches import common_path, overlap
from guard.core.prove.file_roles import matches_glob

OVERLAP = [
    ("src/api/**", "src/api/orders.py"),
    ("src/api/**", "src/**/orders.py"),
    ("src/api", "src/api/v1/orders.py"),
    ("docs/", "docs/guide/a.md"),
    ("docs/", "./docs"),
    ("*.lock", "web/yarn.lock"),
    ("CHANGELOG.md", "CHANGELOG.md"),
    ("README.md", "packages/one/README.md"),
    ("src/*/a?.py", "src/x/ab.py"),
    ("src/a*", "src/*b"),
    ("src/[ab].py", "src/c.py"),
    ("Src/A.py", "src/a.py"),
    ("**", "x"),
]
APART = [
    ("src/api/**", "src/web/**"),
    ("docs/", "src/docs/"),
    ("src/a*.py", "src/b*.py"),
    ("*.lock", "yarn.toml"),
    ("/CHANGELOG.md", "docs/CHANGELOG.md"),
    ("src/?.py", "src/ab.py"),
]


@pytest.mark.parametrize(("one", "other"), OVERLAP)
def test_globs_that_may_name_one_file_overlap(one: str, other: str) -> None:
    assert overlap(one, other)
    assert overlap(other, one)


@pytest.mark.parametrize(("one", "other"), APART)
def test_globs_that_name_no_common_file_do_not_overlap(one: str, other: str) -> None:
    assert not overlap(one, other)
    assert not overlap(other, one)


NAMES = st.text("ab", min_size=1, max_size=3)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
GLOBS = st.lists(
    st.one_of(NAMES, st.just("**"), st.text("ab*?", min_size=1, max_size=3)), min_size=2, max_size=4
).map("/".join)


@given(PATHS, GLOBS, GLOBS)
def test_a_file_that_two_globs_match_makes_them_overlap(path: str, one: str, other: str) -> None:
    if matches_glob(path, one) and matches_glob(path, other):
        assert overlap(one, other)


@given(st.text("ab*?", max_size=6), st.text("ab*?", max_size=6), st.text("ab", max_size=6))
def test_names_that_two_patterns_match_make_them_overlap(one: str, other: str, name: str) -> None:
    if name and fnmatchcase(name, one) and fnmatchcase(name, other):
        assert overlap(f"x/{one}", f"x/{other}")


def test_the_common_path_is_named() -> None:
    assert common_path(("docs/", "src/api/**"), ("src/api/a.py",)) == "src/api/**"
    assert common_path(("docs/",), ("src/",)) is None
    assert common_path((), ("src/",)) is None
