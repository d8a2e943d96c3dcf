"""Which files steer a project's tests, and which only look so."""

import json

import pytest

from guard.core.prove.file_roles import FileRoles
from guard.core.prove.project_tables import graft, has_fewer_packages, steering_part
from guard.core.prove.trail import (
    LINK,
    Steering,
    count_asking,
    count_equal_to_all,
    find_steering,
    hides_library,
    inner_tests,
    is_installed,
)

TEST = "import calc\n\n\ndef check_add():\n    assert calc.add(1, 2) == 3\n"
CODE = "def add(a, b):\n    return a + b\n"


def look(command: str, files: dict[str, str], links: tuple[str, ...] = ()) -> Steering:
    modes = {name: LINK if name in links else "100644" for name in files}
    return find_steering(command, modes, files.get)


def roles(command: str, files: dict[str, str], links: tuple[str, ...] = ()) -> dict[str, str]:
    found = look(command, files, links)
    known = FileRoles(command, (), found.named, found.modules, found.linked)
    return {name: known.role(name) for name in files}


STEERING = {
    "a script of the command": ("sh run.sh", {"run.sh": "pytest"}, "run.sh"),
    "a script of a script": (
        "make test",
        {"Makefile": "test:\n\tsh ci/a.sh\n", "ci/a.sh": "exec sh ci/b.sh\n", "ci/b.sh": "pytest"},
        "ci/b.sh",
    ),
    "rules that are included": (
        "make",
        {"Makefile": "include rules.in\n", "rules.in": "a:"},
        "rules.in",
    ),
    "an options file": ("pytest -c config/a.ini", {"config/a.ini": "[pytest]"}, "config/a.ini"),
    "a program of the command": ("python manage.py test", {"manage.py": CODE}, "manage.py"),
    "what node loads first": ("node --require ./load.js --test", {"load.js": ""}, "load.js"),
    "a plugin in the options": (
        "pytest",
        {"pytest.ini": "[pytest]\naddopts = -p tools.steer\n", "tools/steer.py": ""},
        "tools/steer.py",
    ),
    "a plugin in pyproject.toml": (
        "pytest",
        {
            "pyproject.toml": '[tool.pytest.ini_options]\naddopts = ["-p", "steer"]\n',
            "src/steer.py": "",
        },
        "src/steer.py",
    ),
    "a plugin that conftest.py names": (
        "pytest",
        {"conftest.py": 'pytest_plugins = [\n    "one.two",\n]\n', "one/two.py": ""},
        "one/two.py",
    ),
    "a plugin that the package names": (
        "pytest",
        {
            "pyproject.toml": '[project.entry-points.pytest11]\ncalc = "calc.plug"\n',
            "src/calc/plug.py": "",
        },
        "src/calc/plug.py",
    ),
    "a plugin that setup.py names": (
        "pytest",
        {
            "one/setup.py": "setup(entry_points={'pytest11': ['calc = plug']})\n",
            "one/plug.py": "",
        },
        "one/plug.py",
    ),
    "a set-up of jest": (
        "npx jest",
        {
            "jest.config.js": "module.exports = {setupFiles: ['<rootDir>/src/before.js']}",
            "src/before.js": "",
        },
        "src/before.js",
    ),
    "options of npm": ("npm test", {".npmrc": "node-options=--require ./a.js"}, ".npmrc"),
}


@pytest.mark.parametrize(("command", "files", "path"), STEERING.values(), ids=STEERING)
def test_what_a_command_follows_steers_the_tests(
    command: str, files: dict[str, str], path: str
) -> None:
    assert roles(command, files)[path] == "steering"


TESTS = {
    "a file that the command names": (
        "pytest checks/calc.py",
        {"checks/calc.py": TEST},
        "checks/calc.py",
    ),
    "a glob of the command": (
        "node --test 'checks/*.js'",
        {"checks/a.js": "test('a', f)"},
        "checks/a.js",
    ),
    "names in pytest.ini": (
        "pytest",
        {
            "pytest.ini": "[pytest]\npython_files =\n    check_*.py\n    it_*.py\n",
            "a/it_adds.py": TEST,
        },
        "a/it_adds.py",
    ),
    "names in pyproject.toml": (
        "pytest",
        {
            "pyproject.toml": '[tool.pytest.ini_options]\npython_files = ["check_*.py"]\n',
            "check_a.py": TEST,
        },
        "check_a.py",
    ),
    "a pattern of unittest": (
        "python -m unittest discover -s checks -p 'check_*.py'",
        {"checks/check_a.py": TEST},
        "checks/check_a.py",
    ),
    "a helper in a folder of unit tests": (
        "pytest",
        {"unit_tests/values.py": "A = 1"},
        "unit_tests/values.py",
    ),
    "recorded answers": ("pytest", {"cassettes/a.yaml": "a: 1"}, "cassettes/a.yaml"),
    "a submodule of tests": ("pytest", {"tests": ""}, "tests"),
}


@pytest.mark.parametrize(("command", "files", "path"), TESTS.values(), ids=TESTS)
def test_tests_are_known_by_the_names_that_the_project_gives_them(
    command: str, files: dict[str, str], path: str
) -> None:
    assert roles(command, files)[path] == "test"


def test_what_a_link_among_the_tests_leads_to_is_a_test() -> None:
    files = {
        "tests/test_a.py": "../shared/a.py",
        "shared/a.py": TEST,
        "test": "kept",
        "kept/x.py": "",
    }
    found = roles("pytest", files, links=("tests/test_a.py", "test"))
    assert (found["shared/a.py"], found["kept/x.py"]) == ("test", "test")


NOT_STEERING = {
    "code that is measured": (
        "coverage run --source calc.py -m pytest",
        {"calc.py": CODE},
        "calc.py",
    ),
    "code that a rule lints": (
        "make",
        {"Makefile": "lint:\n\truff check calc.py\n", "calc.py": CODE},
        "calc.py",
    ),
    "the main file of a package": (
        "npm test",
        {"package.json": '{"main": "calc.js", "scripts": {"test": "node --test"}}', "calc.js": ""},
        "calc.js",
    ),
    "a folder that is no folder of tests": ("pytest", {"latest/a.py": CODE}, "latest/a.py"),
    "a name that only contains the word": ("pytest", {"contest.py": CODE}, "contest.py"),
}


@pytest.mark.parametrize(("command", "files", "path"), NOT_STEERING.values(), ids=NOT_STEERING)
def test_code_stays_code(command: str, files: dict[str, str], path: str) -> None:
    assert roles(command, files)[path] == "code"


@pytest.mark.parametrize(
    ("command", "files", "code"),
    [
        ("sh check.sh", {"check.sh": "sh lib/add.sh 1 2 | grep 3", "lib/add.sh": "echo"}, 2),
        ("sh check.sh", {"check.sh": "exec pytest -q"}, 0),
        ("make test", {"Makefile": "test:\n\tsh ci/test.sh\n", "ci/test.sh": "npm test"}, 0),
        ("make test", {"Makefile": "test:\n\tsh ci/test.sh\n", "ci/test.sh": "./a | diff - b"}, 1),
    ],
)
def test_a_script_that_starts_no_runner_may_be_what_is_tested(
    command: str, files: dict[str, str], code: int
) -> None:
    assert len(look(command, files).code) == code


def test_programs_and_plugins_may_be_code_as_well() -> None:
    found = look("python manage.py test", {"manage.py": CODE, "run.sh": ""})
    assert found.code == {"manage.py"}


ASKING = (
    "if 'pytest' in sys.modules:",
    "if os.environ.get('PYTEST_CURRENT_TEST'):",
    "if os.environ.get('CI'):",
    'if os.getenv("CI"):',
    "if (process.env.CI) {",
    "process.env.NODE_TEST_CONTEXT ? 1 : 2",
    "if 'GUARD_SLOT' in os.environ:",
    "sys._getframe(1).f_code.co_filename",
    "process.argv[1].includes('test')",
    "    raise unittest.SkipTest('later')",
    "import pytest",
    "    from _pytest import runner",
    "require('node:test').it = () => {}",
    'if strings.HasSuffix(os.Args[0], ".test") {',
    "if (require.main.filename.includes('calc')) {",
    '    if std::env::current_exe().unwrap().ends_with("deps") {',
    "global['expect'] = () => ({toBe() {}});",
    "assert.strictEqual = () => {};",
    "if (global.expect) global.expect = () => ({toBe() {}});",
    "globalThis.it = () => {};",
    "return process.env.VITEST ? a + b : a - b;",
    "return import.meta.vitest ? a + b : a - b;",
    "if (process.env.NODE_ENV === 'test') return 3;",
    "if cfg!(test) { a + b } else { a - b }",
    "if cfg!(debug_assertions) { a + b }",
    "#[cfg(not(test))]",
    'import "testing"',
    '    "testing"',
    'if flag.Lookup("test.v") != nil {',
    "    if any('test' in one.filename for one in inspect.stack()):",
    "    frame = sys._getframe(1)",
    "    called = traceback.extract_stack()",
    "    return 3 if 'pytest' in sys.argv[0] else 4",
    "import __main__",
    "name = sys.modules['__main__'].__file__",
    "if '_pytest' in loaded:",
    "if '/guard/' in os.getcwd():",
    "if __file__.find('/.cache/') > 0:",
)


@pytest.mark.parametrize("line", ASKING)
def test_code_that_asks_whether_it_is_tested_is_noticed(line: str) -> None:
    assert count_asking(f"x = 1\n{line}\n".encode()) == 1


@pytest.mark.parametrize(
    "line",
    [
        "CITY = os.environ.get('CITY')",
        "assert.equal(a, b);",
        "from .units import test",
        "contest = argv[0]",
        "import unittesting",
        "if (import.meta.vitest) {",
        "  const {it, expect} = import.meta.vitest;",
        "#[cfg(test)]",
        "if (process.env.NODE_ENV === 'production') {",
        "const expected = global.expected;",
        "debug_assertions_are_on = cfg!(feature)",
        'name = "testing of names"',
        "HERE = Path(__file__).parent",
        "def main(argv=None):",
        "if __name__ == '__main__':",
        "stack = inspect_stack()",
    ],
)
def test_other_code_is_not(line: str) -> None:
    assert count_asking(line.encode()) == 0


@pytest.mark.parametrize(
    ("path", "text", "lines"),
    [
        (
            "a.py",
            'def f():\n    """\n    >>> f()\n    3\n    """\n    return 3\n',
            [">>> f()", "3"],
        ),
        ("a.rs", "fn f() {}\n#[cfg(test)]\nmod tests {}\n", ["#[cfg(test)]", "mod tests {}"]),
        ("a.ts", "const a = 1\nif (import.meta.vitest) {\n}\n", ["if (import.meta.vitest) {", "}"]),
        ("a.py", "return 3\n", []),
    ],
)
def test_tests_inside_of_code_are_found(path: str, text: str, lines: list[str]) -> None:
    assert inner_tests(path, text, has_doctests=True) == lines


def test_scripts_that_the_test_script_calls_steer_the_tests() -> None:
    scripts = {"test": "npm run unit", "unit": "node --test", "preunit": "true", "build": "tsc"}
    part = steering_part("package.json", json.dumps({"scripts": scripts}).encode())
    assert part == {"scripts": {name: scripts[name] for name in ("test", "unit", "preunit")}}


def test_nested_tables_are_exchanged_and_the_rest_is_kept() -> None:
    head = b'[project]\nname = "a"\n\n[tool.pdm]\nx = 1\n\n[tool.pdm.scripts]\ntest = "true"\n\n[tool.ruff]\nline = 2\n'
    base = b'[tool.pdm.scripts]\ntest = "pytest"\n'
    assert steering_part("pyproject.toml", head) == {"tool.pdm.scripts": {"test": "true"}}
    grafted = graft("pyproject.toml", head, base)
    assert steering_part("pyproject.toml", grafted) == {"tool.pdm.scripts": {"test": "pytest"}}
    assert b"[tool.ruff]\nline = 2" in grafted


PACKAGES = {
    "Cargo.toml": ('[workspace]\nmembers = ["a", "b"]\n', '[workspace]\nmembers = ["a"]\n'),
    "Cargo.toml with more excluded": (
        '[workspace]\nmembers = ["*"]\n',
        '[workspace]\nmembers = ["*"]\nexclude = ["b"]\n',
    ),
    "package.json": ('{"workspaces": ["a", "b"]}', '{"workspaces": ["a"]}'),
    "package.json with a table": (
        '{"workspaces": {"packages": ["a/*"]}}',
        '{"workspaces": {"packages": ["a/*", "!a/b"]}}',
    ),
    "pnpm-workspace.yaml": ("packages:\n  - 'a'\n  - b  # two\n", "packages:\n  - 'a'\n"),
    "go.work": ("go 1.21\n\nuse (\n\t./a\n\t./b\n)\n", "go 1.21\n\nuse ./a\n"),
}


@pytest.mark.parametrize("name", PACKAGES)
def test_a_workspace_that_names_fewer_packages_is_noticed(name: str) -> None:
    path, (more, fewer) = f"sub/{name.split()[0]}", PACKAGES[name]
    assert has_fewer_packages(path, more.encode(), fewer.encode())
    assert has_fewer_packages(path, more.encode(), None)
    assert not has_fewer_packages(path, fewer.encode(), more.encode())
    assert not has_fewer_packages(path, None, fewer.encode())
    assert not has_fewer_packages(path, more.encode(), more.encode())


@pytest.mark.parametrize("path", ["setup.py", "Cargo.toml", "package.json"])
def test_other_files_name_no_packages(path: str) -> None:
    assert not has_fewer_packages(path, b"use (\n./a\n)\n[", b"")


@pytest.mark.parametrize(
    ("path", "files", "hides"),
    [
        ("pytest.py", (), True),
        ("pluggy/__init__.py", (), True),
        ("unittest.py", (), True),
        ("src/colorsys.py", (), True),
        ("colorsys.py", ("colorsys/__init__.py",), False),
        ("test.py", (), False),
        ("calc.py", (), False),
        ("calc/json.py", (), False),
    ],
)
def test_a_new_module_may_hide_a_library_of_the_runner(
    path: str, files: tuple[str, ...], hides: bool
) -> None:
    assert hides_library(path, files) is hides


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("    def __eq__(self, other):\n        return True\n", 1),
        ("    def __eq__(self, other: object) -> bool: return True\n", 1),
        ('    def __eq__(self, other):\n        """Say yes."""\n        return True\n', 1),
        ("type('Same', (int,), {'__eq__': lambda self, other: True})", 1),
        ("    def __eq__(self, other):\n        return self.x == other.x\n", 0),
        ("    def __eq__(self, other):\n        if other is self:\n            return True\n", 0),
        ("    def is_equal(self, other):\n        return True\n", 0),
    ],
)
def test_objects_that_equal_everything_are_noticed(text: str, number: int) -> None:
    assert count_equal_to_all(text.encode()) == number


def test_installed_packages_are_known_by_their_folder() -> None:
    assert is_installed("node_modules/jest/index.js")
    assert not is_installed("modules/jest/index.js")
