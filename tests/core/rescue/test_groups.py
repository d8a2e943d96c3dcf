"""Changes in commits: what goes together, what it is called, and what holds of any changes at all."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guard.core.base.text import escape
from guard.core.rescue.commit_message import MOST_SUBJECT, is_conventional
from guard.core.rescue.groups import MOST_GROUPS, Changed, Group, group_changes, untangle


def change(spec: str, added: str = "", removed: str = "") -> Changed:
    """`A path`, `M path`, `D path`, or `R old new`."""
    letter, *paths = spec.split(" ")
    old = paths[0].encode() if letter == "R" else None
    return Changed(letter, paths[-1].encode(), old, added.encode(), removed.encode())


def told(groups: list[Group]) -> dict[str, list[str]]:
    return {one.subject: [entry.path.decode() for entry in one.changes] for one in groups}


STORIES: dict[str, tuple[list[Changed], dict[str, list[str]]]] = {
    "a Python module with its tests": (
        [
            change(
                "A src/parser/dates.py", "class DateError(ValueError):\ndef parse_dates(text):\n"
            ),
            change("A tests/parser/test_dates.py", "def test_leap_year():\n"),
        ],
        {
            "feat(parser): add DateError and parse_dates": [
                "src/parser/dates.py",
                "tests/parser/test_dates.py",
            ]
        },
    ),
    "a Go file with its test beside it": (
        [
            change(
                "A internal/store/index.go", "type Index struct {\nfunc (i *Index) Load() error {\n"
            ),
            change("A internal/store/index_test.go", "func TestLoad(t *testing.T) {\n"),
        ],
        {
            "feat(store): add Index and Load": [
                "internal/store/index.go",
                "internal/store/index_test.go",
            ]
        },
    ),
    "TypeScript with a test, a snapshot and a style sheet": (
        [
            change("A web/src/Button/Button.tsx", "export function Button(props: Props) {\n"),
            change("A web/src/Button/Button.test.tsx", "it('renders', () => {\n"),
            change("A web/src/Button/__snapshots__/Button.test.tsx.snap", "exports[`x`]\n"),
            change("A web/src/Button/Button.css", ".button {\n"),
        ],
        {
            "feat(Button): add Button": [
                "web/src/Button/Button.css",
                "web/src/Button/Button.test.tsx",
                "web/src/Button/Button.tsx",
                "web/src/Button/__snapshots__/Button.test.tsx.snap",
            ],
        },
    ),
    "a Jest test in its folder": (
        [
            change("M packages/api/src/client.ts", "export const retry = () => {\n"),
            change("M packages/api/src/__tests__/client.ts", "test('retries')\n"),
        ],
        {
            "feat(api): add retry": [
                "packages/api/src/__tests__/client.ts",
                "packages/api/src/client.ts",
            ]
        },
    ),
    "Java under its long folders": (
        [
            change("A src/main/java/com/acme/store/Cache.java", "public class Cache {\n"),
            change("A src/test/java/com/acme/store/CacheTest.java", "class CacheTest {\n"),
        ],
        {
            "feat(store): add Cache": [
                "src/main/java/com/acme/store/Cache.java",
                "src/test/java/com/acme/store/CacheTest.java",
            ]
        },
    ),
    "Ruby with its spec": (
        [
            change("A lib/billing/invoice.rb", "module Billing\n  class Invoice\n"),
            change("A spec/billing/invoice_spec.rb", "describe Invoice do\n"),
        ],
        {"feat(billing): add Billing": ["lib/billing/invoice.rb", "spec/billing/invoice_spec.rb"]},
    ),
    "a crate with its manifest and the lock of all": (
        [
            change("M crates/store/src/lib.rs", "pub fn open(path: &Path) -> Store {\n"),
            change("M crates/store/Cargo.toml", 'memmap2 = "0.9"\n'),
            change("M Cargo.lock", 'name = "memmap2"\n'),
        ],
        {
            "build: add memmap2": ["Cargo.lock", "crates/store/Cargo.toml"],
            "feat(store): add open": ["crates/store/src/lib.rs"],
        },
    ),
    "a rename with those who import it, in any folder": (
        [
            change("R api/client.py api/http_client.py", "class HttpClient:\n"),
            change(
                "M jobs/sync.py", "from api.http_client import C\n", "from api.client import C\n"
            ),
            change("M jobs/other.py", "retries = 3\n", "retries = 2\n"),
        ],
        {
            "refactor: rename client.py to http_client.py": ["api/http_client.py", "jobs/sync.py"],
            "feat(jobs): update other.py": ["jobs/other.py"],
        },
    ),
    "a move": (
        [change("R src/a/x.py src/b/x.py"), change("R src/a/y.py src/b/y.py")],
        {"refactor(b): move x.py and y.py to src/b": ["src/b/x.py", "src/b/y.py"]},
    ),
    "build, config and CI first, documents last": (
        [
            change("M README.md", "## Retries\n\nIt retries.\n"),
            change("A .github/workflows/release.yml", "on: push\n"),
            change("M .gitignore", "dist/\n"),
            change("M package.json", '    "left-pad": "^1.3.0",\n'),
            change("M package-lock.json", '"left-pad"\n'),
            change("A src/pad.js", "export function pad(s) {\n"),
            change("A test/unrelated.test.js", "it('x')\n"),
        ],
        {
            "build: add left-pad": ["package-lock.json", "package.json"],
            "chore: update .gitignore": [".gitignore"],
            "ci: add release.yml": [".github/workflows/release.yml"],
            "feat: add pad": ["src/pad.js"],
            "test: cover unrelated": ["test/unrelated.test.js"],
            "docs: describe retries in README.md": ["README.md"],
        },
    ),
    "a Django model with its migration": (
        [
            change("M shop/models.py", "class Coupon(models.Model):\n"),
            change("A shop/migrations/0007_coupon.py", "class Migration(migrations.Migration):\n"),
        ],
        {"feat(shop): add Coupon": ["shop/migrations/0007_coupon.py", "shop/models.py"]},
    ),
    "what a compiler made of a schema": (
        [
            change("M proto/user.proto", "message Avatar {\n"),
            change("M gen/user_pb2.py", "x\n"),
            change("M gen/user.pb.go", "type Avatar struct {\n"),
        ],
        {"feat(proto): add Avatar": ["gen/user.pb.go", "gen/user_pb2.py", "proto/user.proto"]},
    ),
    "a fix that says so": (
        [
            change(
                "M store/index.py", "    if not rows:  # fixes #42\n        return None\n", "x\n"
            ),
            change("M tests/store/test_index.py", "def test_empty():\n"),
        ],
        {"fix(store): correct store/index.py": ["store/index.py", "tests/store/test_index.py"]},
    ),
    "a fix by its test": (
        [
            change("M store/load.py", "    rows = rows or []\n", "x\n"),
            change("M tests/test_load.py", "def test_regression_empty_file():\n"),
        ],
        {"fix(store): correct load.py": ["store/load.py", "tests/test_load.py"]},
    ),
    "layout only": (
        [change("M src/a.js", "if (x) {\n  y();\n}\n", "if (x) {\n      y();\n   }\n")],
        {"style: reformat a.js": ["src/a.js"]},
    ),
    "an indent that means something": (
        [change("M a.py", "  y()\n", "y()\n")],
        {"feat: update a.py": ["a.py"]},
    ),
    "deleted code": (
        [change("D src/legacy/old.py", removed="def old():\n"), change("D src/legacy/older.py")],
        {"chore(legacy): remove old.py and older.py": ["src/legacy/old.py", "src/legacy/older.py"]},
    ),
    "a new module beside the one that uses it": (
        [
            change("A app/mail.py", "def send(to):\n"),
            change("M app/jobs.py", "from app.mail import send\n"),
            change("M app/other.py", "x = 1\n", "x = 2\n"),
        ],
        {
            "feat(app): add send": ["app/jobs.py", "app/mail.py"],
            "feat(app): update other.py": ["app/other.py"],
        },
    ),
    "a C function, its header and its test": (
        [
            change("M src/net/socket.c", "int sock_open(const char *host)\n{\n"),
            change("M src/net/socket.h", "int sock_open(const char *host);\n"),
            change("A tests/test_socket.c", "void test_open(void)\n"),
        ],
        {
            "feat(net): add sock_open": [
                "src/net/socket.c",
                "src/net/socket.h",
                "tests/test_socket.c",
            ]
        },
    ),
    "a test of what remains beside what was deleted": (
        [
            change("D shop/legacy.py"),
            change("M shop/views.py", "def checkout(request):\n"),
            change("M shop/tests.py", "class CheckoutTests(TestCase):\n"),
        ],
        {
            "chore(shop): remove legacy.py": ["shop/legacy.py"],
            "feat(shop): add checkout": ["shop/tests.py", "shop/views.py"],
        },
    ),
    "code that was deleted with its test": (
        [change("D src/old.py"), change("D tests/test_old.py")],
        {"chore: remove old.py": ["src/old.py", "tests/test_old.py"]},
    ),
    "tests alone": (
        [change("A tests/parser/test_dates.py"), change("M tests/parser/test_times.py")],
        {
            "test(parser): cover dates and times": [
                "tests/parser/test_dates.py",
                "tests/parser/test_times.py",
            ]
        },
    ),
    "a test that says the folder too": (
        [
            change("M guard/classify/claude.py", "def limits(text):\n"),
            change("M tests/test_classify_claude.py"),
        ],
        {
            "feat(classify): add limits": [
                "guard/classify/claude.py",
                "tests/test_classify_claude.py",
            ]
        },
    ),
    "Rust with its integration test": (
        [
            change("M src/lib.rs", "pub mod lexer;\n"),
            change("A src/lexer.rs", "pub enum Token {\npub struct Lexer<'a> {\n"),
            change("A tests/lexer.rs", "fn lexes_numbers() {\n"),
        ],
        {"feat: add Token and Lexer": ["src/lexer.rs", "src/lib.rs", "tests/lexer.rs"]},
    ),
    "nothing": ([], {}),
}


@pytest.mark.parametrize(("changes", "expected"), STORIES.values(), ids=STORIES)
def test_stories(changes: list[Changed], expected: dict[str, list[str]]) -> None:
    assert list(told(group_changes(changes)).items()) == list(expected.items())


def test_a_body_lists_the_files() -> None:
    (group,) = group_changes(
        [change("R a/old.py a/new.py"), change("M a/z.py", "import new\n", "import old\n")]
    )
    assert group.body == "R a/old.py -> a/new.py\nM a/z.py"
    (group,) = group_changes([change(f"A docs/{n}.md") for n in range(60)])
    assert group.body.endswith("\nand 10 more files")


def test_a_thousand_folders_are_a_few_commits() -> None:
    changes = [change(f"A src/m{n}/f{n}.py", f"def f{n}():\n") for n in range(1000)]
    changes += [change(f"A tests/m{n}/test_f{n}.py") for n in range(1000)]
    groups = group_changes(changes)
    assert len(groups) <= MOST_GROUPS
    assert sum(len(group.changes) for group in groups) == 2000


HOSTILE = [
    Changed("A", b"a\nGuard-Rescue: r/1.py", None, b"def f():\n"),
    Changed("A", b"Signed-off-by: x <x@y>\n\n.md", None, b"# Guard-Rescue: r/1\n"),
    Changed("M", b"README.md", None, b"# Co-authored-by: x\n## \x1b[31mred\x07\n"),
    Changed("M", b"\xff\xfe/\x80.py", None, b"class \xe2\x80\xaex(:\n"),
    Changed("A", b"x" * 4000, None, b"\0" * 100),
    Changed("R", b"new\r\n", b"old\n\nFixes: 1", b"", b""),
    Changed("A", b": x", None, b""),
    Changed("A", b"", None, b""),
]


def test_hostile_names_stay_in_their_lines() -> None:
    for group in group_changes(HOSTILE):
        assert group.subject.isprintable()
        assert all(line.isprintable() for line in group.body.split("\n"))
        assert not any(
            line.startswith(("Guard-", "Signed", "Fixes")) for line in group.body.split("\n")
        )


names = st.sampled_from(
    [
        *("src", "tests", "lib", "packages", "x", "a.py", "test_a.py", "a_test.go", "b.ts"),
        *("b.test.ts", "README.md", "package.json", "yarn.lock", "__snapshots__", "é", "\n"),
        *("migrations", "models.py"),
    ]
)
paths = st.one_of(
    st.lists(names, min_size=1, max_size=5).map("/".join).map(str.encode), st.binary(max_size=20)
)
texts = st.one_of(
    st.binary(max_size=60),
    st.sampled_from(
        [b"def a():\n", b"import b\n", b"# fixes #1\n", b"# Heading\n", b'"x": "^1"\n']
    ),
)
changes = st.lists(
    st.builds(
        lambda letter, path, old, added, removed: Changed(
            letter, path, old if letter == "R" else None, added, removed
        ),
        st.sampled_from("AMDR"),
        paths,
        paths,
        texts,
        texts,
    ),
    max_size=30,
)


@given(changes, st.integers())
@settings(deadline=None)
def test_any_changes_are_each_in_one_commit_whatever_their_order(
    many: list[Changed], seed: int
) -> None:
    groups = group_changes(many)
    assert sorted(map(repr, (one for group in groups for one in group.changes))) == sorted(
        map(repr, many)
    )
    assert len(groups) <= MOST_GROUPS
    for group in groups:
        assert is_conventional(group.subject)
        assert len(group.subject) <= MOST_SUBJECT
        assert escape(group.subject) == group.subject
    shuffled = list(many)
    Random(seed).shuffle(shuffled)
    assert group_changes(shuffled) == groups


UNTANGLED = {
    "nothing to do": ([["A a", "M b"], ["D c"]], [["A a", "M b"], ["D c"]]),
    "a file became a folder": ([["A a/b"], ["M x"], ["D a"]], [["A a/b", "D a"], ["M x"]]),
    "a folder became a file": ([["D a/b/c"], ["D a/d"], ["A a"]], [["D a/b/c", "D a/d", "A a"]]),
    "a file moved into its own place": ([["R a b"], ["A a/c"]], [["R a b", "A a/c"]]),
    "two of them": ([["D a"], ["D b"], ["A b/x"], ["A a/x"]], [["D a", "A a/x"], ["D b", "A b/x"]]),
    "a name that only begins alike": ([["D a"], ["A ab/c"]], [["D a"], ["A ab/c"]]),
}


@pytest.mark.parametrize(("before", "after"), UNTANGLED.values(), ids=UNTANGLED)
def test_what_stands_in_the_same_place_is_in_one_commit(
    before: list[list[str]], after: list[list[str]]
) -> None:
    groups = [Group(f"chore: {at}", "", tuple(map(change, some))) for at, some in enumerate(before)]
    found = untangle(groups)
    assert [list(one.changes) for one in found] == [list(map(change, some)) for some in after]
    assert {one.subject for one in found} <= {one.subject for one in groups}


@given(changes)
@settings(deadline=None)
def test_untangled_keeps_every_change(many: list[Changed]) -> None:
    found = untangle([Group("chore: x", "", (one,)) for one in many])
    assert sorted(map(repr, (one for group in found for one in group.changes))) == sorted(
        map(repr, many)
    )
