"""What paths and texts of many languages say, and the subjects that are made of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.rescue.change import Changed, parse_change, parse_path, scope
from guard.core.rescue.change_text import declared_names, headings, is_fix, is_layout, package_names
from guard.core.rescue.commit_message import (
    KINDS,
    MOST_SUBJECT,
    CommitKind,
    commit_message,
    is_conventional,
    list_lines,
    write_subject,
)
from tests.support.cost import cpu_limit

ROLES = {
    "source": "src/a.py a.go lib/x.rb web/App.vue cmd/x/main.go Sources/App/App.swift bin/run app/latest.py",
    "test": "tests/test_a.py a_test.go x.test.ts x.spec.tsx spec/x_spec.rb src/__tests__/x.js FooTest.java"
    " FooTests.cs FooSpec.scala src/test/java/A.java test/a.exs a_tests.rs tests/conftest.py run.test.mjs shop/tests.py",
    "fixture": "tests/data.json src/__snapshots__/x.test.ts.snap pkg/testdata/in.txt tests/fixtures/a.md a.snap",
    "docs": "README.md docs/conf.py LICENSE CHANGELOG.rst tasks.md specs/x/tasks.md guide.adoc packages/x/README",
    "manifest": "package.json packages/x/package.json Cargo.toml pyproject.toml requirements-dev.txt go.mod Makefile"
    " requirements/dev.txt pom.xml build.gradle.kts x.csproj CMakeLists.txt Dockerfile compose.yaml vite.config.ts",
    "lock": "package-lock.json yarn.lock Cargo.lock uv.lock poetry.lock go.sum x/Gemfile.lock pnpm-lock.yaml",
    "ci": ".github/workflows/ci.yml .gitlab-ci.yml Jenkinsfile .circleci/config.yml .github/actions/x/index.js",
    "config": ".gitignore .editorconfig tsconfig.json .eslintrc.js .pre-commit-config.yaml ruff.toml config/app.yml"
    " .env.example .vscode/settings.json eslint.config.mjs CODEOWNERS tox.ini mkdocs.yml",
    "generated": "gen/user_pb2.py api/user.pb.go lib/model.g.dart src/__generated__/q.ts public/app.min.js",
    "migration": "shop/migrations/0001_initial.py db/migrate/20240101_add.rb prisma/migrations/1/migration.sql",
    "asset": "logo.svg data/cities.csv locales/de.json schemas/x.schema.json",
}


@pytest.mark.parametrize(
    ("path", "role"), [(path, role) for role, many in ROLES.items() for path in many.split()]
)
def test_roles(path: str, role: str) -> None:
    assert parse_path(path.encode()).role == role


SCOPES = {
    "a.py": None,
    "src/a.py": None,
    "src/parser/a.py": "parser",
    "guard/core/a.py": "core",
    "packages/web/src/ui/a.ts": "web",
    "crates/store/src/lib.rs": "store",
    "apps/shop/a.ts": "shop",
    "cmd/tool/main.go": "tool",
    "internal/store/a.go": "store",
    "src/main/java/com/acme/db/A.java": "db",
    "tests/core/test_a.py": "core",
    ".hidden/a.py": "hidden",
    "with space/a.py": "with-space",
    "a)(: b/a.py": None,
    "x" * 50 + "/a.py": None,
}


@pytest.mark.parametrize(("path", "expected"), SCOPES.items())
def test_scopes(path: str, expected: str | None) -> None:
    assert scope(parse_path(path.encode()).parts) == expected


TESTED = {
    "test_dates.py": "dates",
    "dates_test.go": "dates",
    "dates.test.ts": "dates",
    "dates.spec.js": "dates",
    "dates_spec.rb": "dates",
    "DatesTest.java": "Dates",
    "TestDates.cs": "Dates",
    "DatesSpec.scala": "Dates",
    "dates-test.js": "dates",
    "conftest.py": "conftest",
    "latest.py": "latest",
}


@pytest.mark.parametrize(("name", "expected"), TESTED.items())
def test_what_a_test_tests(name: str, expected: str) -> None:
    assert parse_path(name.encode()).tested_stem == expected


DECLARED = {
    "Python": ("py", "class A(B):\n    def m(self):\nasync def f():\ndef _private():\n", "A f"),
    "Python, methods only": ("py", "    def m(self):\n    def _n(self):\n", "m"),
    "Python prose": ("py", '"""A\nclass of things that\nfunction of\ntype that\n', ""),
    "TypeScript": (
        "ts",
        "export interface A {\nexport type B<T> =\nexport const c = 1\nexport default class D {\n",
        "A B c D",
    ),
    "JavaScript": (
        "js",
        "const f = async () => {\nmodule.exports.g = 1\nfunction* h() {\n",
        "f g h",
    ),
    "Go": ("go", "func A() {\nfunc (r *R) B(x int) {\ntype C struct {\ntype D int\n", "A B C D"),
    "Rust": ("rs", "pub struct A;\npub(crate) async fn b<T>() {\nimpl A {\nenum C {\n", "A b C"),
    "Java": ("java", "public final class A<T> {\n    public int size() {\n", "A"),
    "Java, methods only": (
        "java",
        "    public static Map<K, V> copy(K k) {\n    return f(x)\n",
        "copy",
    ),
    "Kotlin": ("kt", "data class A(val x: Int)\nsuspend fun b() {\nobject C {\n", "A b C"),
    "Swift": ("swift", "public protocol A {\nfunc b() {\n", "A b"),
    "C": ("c", "static int load(void)\nstruct b {\n#define C 1\nreturn f(x)\n", "load b C"),
    "C++": ("cpp", "std::vector<int> load(int x) {\nnamespace b {\n", "load b"),
    "C#": ("cs", "public sealed record A(int X);\n", "A"),
    "Ruby": ("rb", "class A < B\nmodule C::D\ndef self.e?\n", "A D e?"),
    "PHP": ("php", "final class A\nfunction b($x)\n", "A b"),
    "Elixir": ("ex", "defmodule A.B do\ndef c(x) do\n", "B c"),
    "Scala": ("scala", "case class A(x: Int)\ntrait B {\ndef c: Int = 1\n", "A B c"),
    "Haskell": ("hs", "data A = B\nf :: Int\n", "A f"),
    "Clojure": ("clj", "(defn load-all [x])\n", "load-all"),
    "shell": ("sh", "setup() {\nfunction b {\n", "setup b"),
    "SQL": ("sql", "CREATE TABLE IF NOT EXISTS users (\ncreate index i on t\n", "users i"),
    "protocol buffers": ("proto", "message A {\nservice B {\n  rpc C(A) returns (A);\n", "A B"),
    "Terraform": ("tf", 'resource "aws_s3_bucket" "logs" {\n', "logs"),
    "Lua": ("lua", "local function load()\nfunction M.b()\n", "load b"),
    "R": ("r", "fit.all <- function(x) {\n", "fit.all"),
    "Zig": ("zig", "pub const A = struct {\npub fn b() void {\n", "A b"),
    "long names": ("py", f"def {'x' * 100}():\n", ""),
}


@pytest.mark.parametrize(("extension", "text", "names"), DECLARED.values(), ids=DECLARED)
def test_declared(extension: str, text: str, names: str) -> None:
    assert " ".join(declared_names(extension, text.encode())) == names


def test_headings_are_topics() -> None:
    text = b"# How it **works**\n## Retries\n### Added\n## 1.2.0 - 2024\n```\n# code\n```\n## API of `x`\n"
    assert headings(text) == ("how it works", "retries", "API of x")
    assert headings(b"# Signed-off-by: x\n# Guard-Rescue : y\n#none\n") == ()


PACKAGES = {
    "package.json": (
        '    "react": "^18.2.0",\n    "test": "jest",\n  "version": "1.2.3",\n',
        "react",
    ),
    "pyproject.toml": ('  "click>=8.2",\nversion = "1"\nhttpx = {version = "1"}\n', "click httpx"),
    "requirements.txt": ("flask[async]==2.0\n# x\nuvicorn>=1\n", "flask uvicorn"),
    "Cargo.toml": (
        'serde = { version = "1", features = ["derive"] }\nlibc = "0.2"\n',
        "serde libc",
    ),
    "go.mod": ("\tgithub.com/spf13/cobra v1.8.0\nrequire example.org/x/y/v2 v2.1.0\n", "cobra y"),
    "Gemfile": ('gem "rails", "~> 7"\n', "rails"),
    "pom.xml": ("  <artifactId>guava</artifactId>\n", "guava"),
    "build.gradle": ('    testImplementation("org.junit:junit:5")\n', "junit"),
    "x.csproj": ('<PackageReference Include="Moq" Version="4" />\n', "Moq"),
}


@pytest.mark.parametrize(("text", "names"), PACKAGES.values(), ids=PACKAGES)
def test_packages(text: str, names: str) -> None:
    assert " ".join(package_names(text.encode())) == names


FIXES = {
    "a comment": ("M a.py", "x = 1  # fixes #12\n", True),
    "a comment in words": ("M a.js", "// Fix the race between both\n", True),
    "an issue": ("M a.go", "// see issue 7\n", True),
    "a name": ("M tests/test_issue_12.py", "", True),
    "a test": ("M tests/test_a.py", "def test_does_not_crash_on_empty():\n", True),
    "a fixed size": ("M a.c", "// fixed size of blocks\n", False),
    "a plan": ("M a.py", "# TODO: fix the parser\n# FIXME\n", False),
    "a prefix": ("M a.py", "prefix = 'the'\n", False),
    "code": ("M a.py", "fix(the)\n", False),
    "many lines": ("M a.py", "# fixes #1\n" + "x\n" * 100, False),
}


@pytest.mark.parametrize(("spec", "added", "verdict"), FIXES.values(), ids=FIXES)
def test_fixes(spec: str, added: str, verdict: bool) -> None:
    letter, path = spec.split(" ")
    assert is_fix([parse_change(Changed(letter, path.encode(), None, added.encode()))]) == verdict


LAYOUTS = {
    "an indent": ("a.js", "{\n  x\n}", "{\nx\n}", True),
    "line ends": ("a.py", "x\ny\n", "x\r\ny\r\n", True),
    "an indent in Python": ("a.py", "  x", "x", False),
    "another word": ("a.js", "x y", "xy", False),
    "nothing known": ("a.js", "", "", False),
    "perhaps cut": ("a.js", "x " * 10_000, "x\n" * 10_000, False),
}


@pytest.mark.parametrize(("name", "added", "removed", "verdict"), LAYOUTS.values(), ids=LAYOUTS)
def test_layout(name: str, added: str, removed: str, verdict: bool) -> None:
    assert is_layout(Changed("M", name.encode(), None, added.encode(), removed.encode())) == verdict


SUBJECTS: dict[str, tuple[CommitKind, list[Changed], str]] = {
    "a large module": (
        "code",
        [Changed("A", b"core/a.py", None, b"".join(b"def f%d():\n" % n for n in range(9)))],
        "feat(core): add a.py with f0, f1, f2 and 6 more",
    ),
    "a long name": (
        "code",
        [Changed("A", b"core/" + b"x" * 200 + b".py")],
        f"feat(core): add {'x' * 39}…",
    ),
    "a changed version": (
        "build",
        [Changed("M", b"package.json", None, b'"a": "^2"', b'"a": "^1"')],
        "build: change a",
    ),
    "a package less": (
        "build",
        [Changed("M", b"go.mod", None, b"", b"\tx.org/y v1")],
        "build: remove y",
    ),
    "a lock alone": ("build", [Changed("M", b"web/yarn.lock")], "build(web): update yarn.lock"),
    "names that are gone": (
        "code",
        [Changed("M", b"a/b.py", None, b"", b"def old():\n")],
        "feat(a): remove old",
    ),
    "much data": (
        "tests",
        [Changed("A", b"tests/data/%d.json" % n) for n in range(9)],
        "test(data): add 9 files in tests/data",
    ),
    "a document of a member": (
        "docs",
        [Changed("A", b"packages/x/README.md")],
        "docs(x): add README.md",
    ),
    "a picture": ("code", [Changed("A", b"web/logo.png")], "chore(web): add logo.png"),
    "a migration": (
        "code",
        [
            Changed("M", b"shop/models.py", None, b"    paid = Field()\n"),
            Changed("A", b"shop/migrations/0004_paid.py", None, b"class Migration(M):\n"),
        ],
        "feat(shop): add migration 0004_paid",
    ),
    "a package marker": (
        "code",
        [Changed("A", b"a/__init__.py"), Changed("A", b"a/b.py")],
        "feat(a): add b.py",
    ),
}


@pytest.mark.parametrize(("kind", "changes", "expected"), SUBJECTS.values(), ids=SUBJECTS)
def test_subjects(kind: CommitKind, changes: list[Changed], expected: str) -> None:
    assert write_subject(kind, [parse_change(change) for change in changes]) == expected


@given(
    st.sampled_from(KINDS), st.sampled_from("AMDR"), st.binary(max_size=30), st.binary(max_size=90)
)
def test_any_change_has_a_subject(kind: CommitKind, letter: str, path: bytes, text: bytes) -> None:
    old = path[::-1] if letter == "R" else None
    line = write_subject(kind, [parse_change(Changed(letter, path, old, text, text[::-1]))])
    assert is_conventional(line)
    assert len(line) <= MOST_SUBJECT
    assert len(line.splitlines()) == 1


CONVENTIONAL = {
    "feat: x": True,
    "feat(api)!: x": True,
    "fix(a,b): x": True,
    "refactor(@scope/pkg): x y": True,
    "feat:x": False,
    "feat : x": False,
    "feat(): x": False,
    "Feat: x": False,
    "feat: ": False,
    "feat: x\n": False,
    "feat: x ": False,
    "Signed-off-by: x": False,
}


@pytest.mark.parametrize(("line", "verdict"), CONVENTIONAL.items())
def test_conventional(line: str, verdict: bool) -> None:
    assert is_conventional(line) == verdict


@pytest.mark.parametrize("piece_", ["a/", "-/", ".", "_", "/", "requirements-", "a.b/", "Test"])
def test_a_long_path_of_anything_is_read_in_seconds(piece_: str) -> None:
    with cpu_limit():
        parse_path((piece_ * 4096)[:4096].encode()).tested_stem.strip()


@pytest.mark.parametrize("word", ["a ", "a.", "a::", "pub ", "(", "def ", "* ", "a<", '"a', "a/"])
def test_a_long_text_of_anything_is_read_in_seconds(word: str) -> None:
    with cpu_limit(20):
        text = ((word * 300)[:299] + "\n").encode() * 50
        for extension in ("py", "cpp", "ts", "sql"):
            declared_names(extension, text)
        headings(text), package_names(text)
        is_fix([parse_change(Changed("M", b"a.py", None, text[:5000]))])


def test_a_message_lists_the_files_and_ends_with_the_trailer() -> None:
    text = commit_message("feat: add\x1b", "A a.py\nD b.py\n", "run-1", 3).decode()
    assert text == "feat: add\\x1b\n\nA a.py\nD b.py\n\nGuard-Rescue: run-1/3\n"
    assert commit_message("fix: x", "", "r", 1) == b"fix: x\n\nGuard-Rescue: r/1\n"


def test_a_message_lists_at_most_fifty_files() -> None:
    text = list_lines([f"A {number}" for number in range(60)])
    assert text.count("A ") == 50
    assert text.endswith("\nand 10 more files")


@pytest.mark.parametrize("message", ["", "  \n\t", "\n\n"])
def test_an_empty_message_is_none(message: str) -> None:
    assert commit_message(message, "", "r", 1).startswith(b"chore: rescue")
