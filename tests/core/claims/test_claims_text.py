"""What a message claims, as tables: files, tests, numbers, phrases; and that hostile text costs no more than its length."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.claims.file_names import PathIndex, find_paths, path_tails
from guard.core.claims.files import claimed_files, named_paths
from guard.core.claims.numbers import claimed_counts, report_files
from guard.core.claims.phrases import evidence_words, judged_texts, suspicious_phrases
from guard.core.claims.settings import ClaimsSettings
from guard.core.claims.tests import claimed_tests
from guard.core.claims.validate import validate
from tests.core.claims.test_claims import evidence
from tests.support.cost import cpu_limit

PATHS: dict[str, list[str]] = {
    "src/a.py": ["src/a.py"],
    "`./src/a.py`": ["src/a.py"],
    "(src/a.py),": ["src/a.py"],
    "**src/a.py**:": ["src/a.py"],
    "src/a.py:12": ["src/a.py"],
    "src/a.py:12:5": ["src/a.py"],
    "src/a.py:12-20": ["src/a.py"],
    "src/a.py#L10-L20": ["src/a.py"],
    "tests/test_a.py::test_b[x-1]": ["tests/test_a.py"],
    "src\\win\\a.cs": ["src/win/a.cs"],
    "C:\\code\\a.cs": ["C:/code/a.cs"],
    "/home/me/a.py": ["/home/me/a.py"],
    "a.py.": ["a.py"],
    "a.py's": ["a.py"],
    "a.py,b.py": ["a.py", "b.py"],
    "src/{a,b}.ts": ["src/a.ts", "src/b.ts"],
    "app/(auth)/[id]/page.tsx": ["app/(auth)/[id]/page.tsx"],
    "src/auth/": ["src/auth/"],
    "src/auth": ["src/auth"],
    "src/*.py": ["src/*.py"],
    "README": ["README"],
    "Dockerfile": ["Dockerfile"],
    ".gitignore": [".gitignore"],
    ".github/workflows/ci.yml": [".github/workflows/ci.yml"],
    "https://example.com/a.py": [],
    "www.example.com/a.html": [],
    "example.com": [],
    "me@example.com": [],
    "3.11": [],
    "v1.2.3": [],
    "e.g.": [],
    "i.e.,": [],
    "node.js": [],
    "Next.js": [],
    "and/or": [],
    "CI/CD": [],
    "24/7": [],
    "12/12": [],
    "read/write": [],
    "docs/tests": [],
    "application/json": [],
    "feature/login": [],
    "origin/main": [],
    "/api/users": [],
    "@types/node": [],
    "json.dumps": [],
    "os.path": [],
    "*.py": [],
    "...": [],
    "x" * 600 + ".py": [],
}


@pytest.mark.parametrize(("word", "paths"), PATHS.items(), ids=[word[:40] for word in PATHS])
def test_what_names_a_file(word: str, paths: list[str]) -> None:
    assert find_paths(word) == paths


CHANGED: dict[str, tuple[str, ...]] = {
    "Created src/a.py and updated `lib/b.ts:12`.": ("src/a.py", "lib/b.ts"),
    "Wrote `a.md`, `b.md`, and c.py": ("a.md", "b.md", "c.py"),
    "Fixed the crash in src/a.py caused by src/b.py.": ("src/a.py",),
    "src/a.py: added retries": ("src/a.py",),
    "`src/a.py` was rewritten": ("src/a.py",),
    "The bug in src/a.py is fixed": ("src/a.py",),
    "I verified that src/a.py was updated": ("src/a.py",),
    "src/a.py now handles it": ("src/a.py",),
    "Add retry logic to src/a.py": ("src/a.py",),
    "Had to update src/a.py": ("src/a.py",),
    "The logic is in a.go (new), b.go (updated)": ("a.go", "b.go"),
    "It lives in src/a.py, which was created for it": ("src/a.py",),
    "The cause was in src/a.py, which I've rewritten": ("src/a.py",),
    "a.ts: memoized": ("a.ts",),
    "package.json no longer lists it": ("package.json",),
    "wheel.c was written for 100 Hz": (),
    "There is no src/a.py": (),
    "a.ts unsubscribes in `close()` now.": ("a.ts",),
    "New module `src/a.py` does the matching": ("src/a.py",),
    "I considered touching src/a.py": (),
    "src/a.py was changed in that release": (),
    "a.ts: the retry added in this branch is wrong": (),
    "Fixed it by updating src/a.py": ("src/a.py",),
    "Made changes to src/a.py": ("src/a.py",),
    "Added tests for src/a.py in tests/test_a.py": ("tests/test_a.py",),
    "After reading a.py, I updated b.py": ("b.py",),
    "Moved the parser from a.py to b.py": ("a.py", "b.py"),
    "Renamed a.py → b.py": ("a.py", "b.py"),
    "Fixed a.py.\n=>": ("a.py",),
    "Updated the README and the changelog": ("README", "changelog"),
    "I did not touch a.py, only updated b.py.": ("b.py",),
    "Did not change a.py but fixed b.py": ("b.py",),
    "Update(src/a.py)": ("src/a.py",),
    "• Edited src/a.py (+12 -3)": ("src/a.py",),
    "Files changed:\n- src/a.py\n- `src/b.py` — uses src/c.py": ("src/a.py", "src/b.py"),
    "## Changes\n\n1. `src/a.py`: retries\n2. Client (`src/b.py`): pool": ("src/a.py", "src/b.py"),
    "Implemented the API.\n\n- src/a.py — the routes": ("src/a.py",),
    "| File | Change |\n|---|---|\n| `src/a.py` | Retries |": ("src/a.py",),
    "Created:\n```\nsrc/a.py\nsrc/b.py\n```": ("src/a.py", "src/b.py"),
    "```\n M src/a.py\n?? b.py\n```": ("src/a.py", "b.py"),
    "```\n src/a.py | 12 ++--\n```": (),
    "[a.py](src/a.py#L3) was changed": ("a.py",),
    "Read src/a.py and src/b.py": (),
    "Did not touch src/a.py": (),
    "No changes to src/a.py or src/b.py.": (),
    "No changes were made to src/a.py": (),
    "src/a.py was not changed": (),
    "Left src/a.py untouched": (),
    "Fixed it without modifying src/a.py": (),
    "You should add config.yaml": (),
    "If you want, I can update src/a.py": (),
    "Next steps:\n- Update docs/x.md\n- Add config.yaml": (),
    "Reviewed files:\n- src/a.py\n- src/b.py": (),
    "Run `python src/a.py` to see": (),
    "See src/a.py for what it does": (),
    "```python\nimport x  # added in src/a.py\n```": (),
    "Added support for config.yaml": (),
    "Implemented it according to docs/spec.md": (),
    "response.json() was changed": (),
    "I traced it to the one that made src/a.py poll": (),
    "src/a.py: done. src/b.py: done. All of it is implemented.": ("src/a.py", "src/b.py"),
    "src/a.py: implemented. b.py: fixed. c.py: updated. d.py: added": (
        "src/a.py",
        "b.py",
        "c.py",
        "d.py",
    ),
    "Reviewed both. src/a.py: done. src/b.py: done.": (),
    "src/a.py: done. src/b.py: not done yet.": ("src/a.py",),
    "Retries are implemented. Files: src/a.py (loop), README.md (docs)": ("src/a.py", "README.md"),
    "It is complete.\n\nFiles:\n- src/a.py — the bucket\n- src/b.py: settings": (
        "src/a.py",
        "src/b.py",
    ),
    "It is complete.\n\nFiles:\n- src/a.py\n- src/b.py": (),
    "It is complete. Files: src/a.py, src/b.py": (),
    "It is complete. Files: src/a.py (unchanged), src/b.py (loop)": ("src/b.py",),
    "Reviewed it. Files: src/a.py (a leak), src/b.py (a race)": (),
    "Files: src/a.py (the leak), src/b.py (the race)": (),
    "Changed files: src/a.py, src/b.py": ("src/a.py", "src/b.py"),
    "Files changed: src/a.py, src/b.py": ("src/a.py", "src/b.py"),
    "Modified: src/a.py, src/b.py": ("src/a.py", "src/b.py"),
}


@pytest.mark.parametrize(("message", "changed"), CHANGED.items(), ids=[m[:50] for m in CHANGED])
def test_what_is_claimed_to_be_changed(message: str, changed: tuple[str, ...]) -> None:
    assert claimed_files(message).changed == changed


def test_every_path_is_named_once_to_be_looked_for() -> None:
    message = "Read ./src/a.py and src/a.py:3. Did not touch b.py, and will add c.py. Fixed `d.py`."
    assert named_paths(message) == ("src/a.py", "b.py", "c.py", "d.py")
    assert named_paths("C:\\w\\src\\a.py") == ("C:/w/src/a.py", "w/src/a.py", "src/a.py")
    assert claimed_files(message) == (("d.py",), ("src/a.py",), ("b.py", "c.py"))


MATCHES: dict[str, tuple[str, bool]] = {
    "the same": ("src/auth/login.py", True),
    "its name": ("login.py", True),
    "its last parts": ("auth/login.py", True),
    "half of a part": ("gin.py", False),
    "another case": ("SRC/Auth/Login.py", True),
    "another folder": ("lib/login.py", False),
    "a parent that is not there": ("old/src/auth/login.py", False),
    "an absolute path": ("/home/me/repo/src/auth/login.py", True),
    "its folder": ("src/auth/", True),
    "a folder inside": ("auth", True),
    "another folder's name": ("src/aut/", False),
    "a glob": ("src/**/*.py", True),
    "a glob that matches nothing": ("src/*.rs", False),
    "the readme without its ending": ("README", True),
    "the changelog, which is not there": ("CHANGELOG", False),
    "a name with a space": ("notes.md", True),
}


@pytest.mark.parametrize(("claimed", "has"), MATCHES.values(), ids=MATCHES)
def test_a_claimed_file_is_found_however_it_is_spelled(claimed: str, has: bool) -> None:
    assert PathIndex(["src/auth/login.py", "Readme.md", "docs/my notes.md"]).has(claimed) is has


RUN = """
All tests pass.
ran pytest, 42 passed
The test suite is green
Verified by tests.
Added 5 tests, all passing
`pytest -q` → 12 passed in 3s
Tested thoroughly.
CI is green.
I ran the full test suite and everything passes
All 128 unit tests are passing ✅
npm test passes
test result: ok. 12 passed; 0 failed
Tests: 42/42
No test failures.
The tests were run and came back clean
Everything passes now
Did not change the API, all tests pass
As you can see, the suite passes
tests/test_a.py passes
Executed the integration tests
Confirmed with the existing test suite
mvn test: BUILD SUCCESS
The test suite runs through without problems
Unit tests: ✓
`go test ./...` shows ok for every package
tests/test_big.py is slow. It passes.
Test results: 55/55.
""".strip().splitlines()
NOT_RUN = """
tests not run
I did not run the tests
Added tests
Wrote 5 tests in tests/test_a.py
Tests should pass
Run `pytest` to verify
Could not run pytest here
It is untested
No tests were run.
Tested manually in the browser
To make the tests pass you need a token
ruff: All checks passed!
If tests pass, merge it
Nothing was tested.
I haven't tested it
The tests pass a null value to the parser
Added tests and ran the formatter
3 arguments passed to the function
The tests need a database
Tests look fine to me
It reports 2 changed, 0 failed
The tests mock it, so they'd pass with anything
""".strip().splitlines()


@pytest.mark.parametrize("message", RUN)
def test_a_run_of_tests_is_claimed(message: str) -> None:
    assert claimed_tests(message).run


@pytest.mark.parametrize("message", NOT_RUN)
def test_no_run_of_tests_is_claimed(message: str) -> None:
    assert claimed_tests(message) == (False, False)


@pytest.mark.parametrize(
    "message", ["41 passed, 1 failed", "Ran the tests: 2 tests still fail, 40 passed"]
)
def test_a_run_that_failed_is_not_claimed_to_have_passed(message: str) -> None:
    assert claimed_tests(message) == (True, False)


COUNTS: dict[str, tuple[int, int]] = {
    "Modified 7 files": (7, 0),
    "Created three new files and updated 2 files": (3, 0),
    "5 files changed, 120 insertions(+)": (5, 0),
    "12 source files were updated": (12, 0),
    "Analyzed 15 files": (0, 0),
    "No files were modified": (0, 0),
    "Did not modify 3 files": (0, 0),
    "Committed as abc1234": (0, 1),
    "All work is committed and pushed to origin": (0, 1),
    "Made 3 commits": (0, 3),
    "Split into four small commits": (0, 4),
    "Commit: `1a2b3c4d`": (0, 1),
    "The work is in commit 3f2a9bc": (0, 1),
    "The fix is pushed": (0, 1),
    "git commit done": (0, 1),
    "Merged it to main": (0, 1),
    "Opened a pull request": (0, 1),
    "Implemented in five separate commits": (0, 5),
    "Nothing was committed": (0, 0),
    "I did not commit": (0, 0),
    "The changes are not committed yet": (0, 0),
    "Ready to be committed": (0, 0),
    "The bug came in with commit abc1234": (0, 0),
    "Reviewed the last 30 commits": (0, 0),
    "We are committed to quality": (0, 0),
    "uncommitted": (0, 0),
    "Added the pool; 3 commits, each builds": (0, 3),
    "Tokens expire now, done. 3 small commits, ready for review.": (0, 3),
    "Implemented it (2 commits)": (0, 2),
    "Implemented it; no commits, as asked": (0, 0),
    "Implemented it. The rest is planned: 4 commits, 10 files": (0, 0),
    "Fixed it. Next, 3 commits, one for each module": (0, 0),
    "Reviewed the branch, 14 commits, and fixed nothing": (0, 0),
    "The branch has 14 commits. Fixed the first": (0, 0),
    "It began between v2.3 and v2.4: 41 commits, 118 files changed": (0, 0),
}


@pytest.mark.parametrize(("message", "counts"), COUNTS.items(), ids=COUNTS)
def test_numbers_that_are_claimed(message: str, counts: tuple[int, int]) -> None:
    assert claimed_counts(message) == counts


def test_a_report_is_a_changed_document() -> None:
    assert report_files(["src/a.py", "docs/B.MD", "Makefile", "notes.txt"]) == (
        "docs/B.MD",
        "notes.txt",
    )


PHRASES: dict[str, list[str]] = {
    "It should work now": ["should work"],
    "I think it is right": ["I think"],
    "TODO: caching": ["TODO"],
    "Left a FIXME": ["TODO"],
    "mostly done": ["mostly done"],
    "partially implemented": ["partially"],
    "I'll add the rest later": ["will … later"],
    "uses a mock implementation": ["stub implementation"],
    "has a placeholder": [],
    "there is a placeholder": ["placeholder"],
    "not tested": ["not tested"],
    "It wasn't tested": ["not tested"],
    "as an AI I cannot": ["as an AI"],
    "Left as an exercise": ["left as an exercise"],
    "Flawless, production-ready, 100%": ["perfect", "100%", "production-ready"],
    "Everything works": ["everything works"],
    "no TODOs left": [],
    "Removed the TODO": [],
    "Replaced all placeholders": [],
    "built the todo app": [],
    "updated TODO.md": [],
    "no stub implementations": [],
    "not perfect": [],
    "100% coverage": [],
    "a 100% discount": [],
    "so that release.sh can use it later on": [],
    "It doesn't work yet": ["does not work yet"],
    "Skipped the two failing tests": ["failing tests skipped"],
    "tested": [],
    "The tests use a mock server": [],
    "imperfect": [],
    "```\n# TODO: perfect\n```": [],
}


@pytest.mark.parametrize(("message", "found"), PHRASES.items(), ids=PHRASES)
def test_phrases_that_are_suspicious(message: str, found: list[str]) -> None:
    assert [phrase.name for phrase in suspicious_phrases(judged_texts(message), ())] == found


EVIDENCE: dict[str, tuple[str, ...]] = {
    "Created a.py, verified and TESTED it": ("created", "verified", "tested"),
    "created, created": ("created",),
    "not tested, never verified": (),
    "untested, recreated, pre-tested": (),
    "I didn't change it, but fixed b": ("fixed",),
    "```\ncreated\n```": (),
}


@pytest.mark.parametrize(("message", "found"), EVIDENCE.items(), ids=EVIDENCE)
def test_words_of_evidence(message: str, found: tuple[str, ...]) -> None:
    assert evidence_words(judged_texts(message), ()) == found


HOSTILE = {
    "verbs": "created ",
    "paths": "src/a.py ",
    "different paths": "",
    "globs": "created src/*a*a*a*a*b.py ",
    "denials": "not no never ",
    "wills": "will x ",
    "brackets": "((((((((",
    "closed brackets": "[a](",
    "braces": "src/{a,b,c,d}.py ",
    "brace in brace": "{a,",
    "backticks": "`a",
    "numbers": "1 2 3 files ",
    "one long word": "a",
    "one long path": "a/",
    "dots": ".",
    "sentences": "a. ",
    "lines": "\n",
    "items": "- src/a.py\n",
    "fences": "```\n",
    "headings": "**a",
    "spaces": " ",
    "tests": "tests all pass not ",
    "phrases": "partially will not been yet fully ",
    "colons": ":1:1",
    "commits": "one two three commits into ",
    "surrogates": "\udcff",
    "stars": "*",
    "labels": "Files:\n- src/a.py (done)\n",
    "labels in a list": "- done, Files:\n- Files:\n",
    "drives": "C:/a/b/c/d/e/f/g/h/i/a.py ",
    "findings": "documented all 3 a b ",
}


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_read_in_bounded_time(piece: str) -> None:
    many = "created " + " ".join(f"d{number}/a.py" for number in range(7000))
    text = (piece * (65536 // len(piece)) if piece else many)[:65536]
    with cpu_limit():
        validate(evidence(message=text), ClaimsSettings())


@given(st.text(max_size=400))
def test_any_text_can_be_read(text: str) -> None:
    found = claimed_files(text)
    said = {*found.changed, *found.named, *found.supposed}
    assert set(named_paths(text)) == said | {tail for path in said for tail in path_tails(path)}
