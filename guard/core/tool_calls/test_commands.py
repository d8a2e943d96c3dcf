"""Tell whether a simple command runs tests: by its program, and through the launchers and task runners in front of it."""

import re
from itertools import pairwise

from guard.core.base.first_use import late_pattern
from guard.core.tool_calls.shell import base_name, program_words, word_set

_RUNNERS = word_set(
    """
    pytest py.test jest vitest mocha ava jasmine karma tox nox rspec phpunit pest ctest gotestsum ginkgo nosetests nose2 behave
    stestr trial bats busted cargo-nextest cucumber tap
    """
)
_TARGET = r"(?:.*[-_:.])?(?:tests?|spec)(?:[-_:.].*)?"
_WITH_VERB: dict[str, re.Pattern[str]] = {
    name: late_pattern(verbs)
    for names, verbs in (
        (
            """
            go deno dotnet swift mix flutter dart lein stack cabal bazel meson zig sbt playwright ng nx ember forge hardhat
            truffle anchor ant xcodebuild react-scripts craco artisan
            """,
            r"test",
        ),
        ("dune", r"test|runtest"),
        ("crystal", r"spec"),
        ("cmake", r"test|check"),
        ("cargo", r"t|test|nextest|llvm-cov"),
        ("cypress", r"run"),
        ("mvn mvnw gradle gradlew", r"test|verify|install|check|build|.*[Tt]est"),
        (
            "make gmake just task ninja rake rails invoke inv poe doit grunt gulp",
            rf"{_TARGET}|(?:.*[-_:])?check(?:[-_:].*)?",
        ),
        (
            "npm pnpm yarn bun turbo lerna composer",
            rf"t|tst|{_TARGET}|(?:.*[-_:])?(?:jest|vitest|mocha)",
        ),
        ("hatch pdm rye pixi mise poetry pipenv uv vue-cli-service wp-scripts", _TARGET),
        ("coverage", r"run"),
    )
    for name in names.split()
}
"""The verbs, targets or scripts by which a program runs tests."""
_BUILDS = word_set("mvn mvnw gradle gradlew")
_MAKES = word_set("make gmake just task ninja rake invoke inv poe doit grunt gulp")
_SCRIPTED = word_set("hatch pdm rye pixi mise poetry pipenv uv")
"""These run a script of the project only after `run`."""
_OTHER_TARGETS = late_pattern(
    r"(?:.*[-_:.])?(?:lint\w*|types?|type-?check\w*|tsc|mypy|pyright|flake8|pylint|ruff|black|isort|clippy|fmt|format\w*|style"
    r"|docs?|setup|spell\w*|links?|deps|audit|security|build|clean|install|watch-only|licen[cs]es?|pre-commit|packag\w+|prettier"
    r"|eslint)(?:[-_:.].*)?"
)
"""Targets that run no tests, even if their names have the word."""
_OTHER_VERBS = word_set(
    """
    install i add ci remove rm uninstall un ls list ll la view info show why outdated update upgrade up link unlink audit
    publish pack search docs home repo explain config set get init create cache prune dedupe rebuild version whoami lock sync
    export tree pip tool python build self env venv
    """
)
_MODULES = word_set("pytest unittest nose2 tox nox behave doctest coverage")
_PYTHON = late_pattern(r"(?:python|pypy|py)[\d.]*")
_INTERPRETERS = word_set("sh bash zsh dash ksh node tsx ruby php perl bun deno")
_SCRIPT = late_pattern(
    r"(?:run[-_]?)?(?:all[-_]?)?tests?(?:[-_.]\w+)*|test[-_]\w+(?:\.\w+)?|\w+[-_.](?:test|spec)\.\w+"
)
_NOT_RUN = late_pattern(
    r"--collect-only|--co|--help|-h|--version|--list|--list-?[tT]ests|--no-run|--dry-run|--just-print|--fixtures|--markers"
    r"|--setup-plan|--setup-only|--cache-show.*|--fixtures-per-test|--touch|--question|--ignore-errors|--show-?[cC]onfig|-DskipTests.*|-Dmaven\.test\.skip.*|--skip-tests|--if-present"
)
_NOT_RUN_BY = {
    "ctest": "-N",
    "pytest": "-V",
    "make": "-n -q -t -i",
    "gmake": "-n -q -t -i",
    "just": "-n",
    "nextest": "list",
    "vitest": "list",
    "tox": "-l",
    "nox": "-l",
    "go": "-c -list",
    "gradle": "-m",
    "gradlew": "-m",
}
"""What makes a program run no tests, or ignore their failure; elsewhere the same word may mean another thing."""
_CODE_RUNS = late_pattern(r"\b(?:pytest|unittest)\.main\(")


def runs_tests(words: tuple[str, ...]) -> bool:
    """Tell whether a simple command runs tests, directly or through others such as `env`, `uv run` or `docker exec`."""
    return any(_is_run(list(program)) for program in program_words(words))


def _is_run(words: list[str]) -> bool:
    name, rest = base_name(words[0]), words[1:]
    if any(map(_NOT_RUN.fullmatch, rest)) or _only_tells([name, *rest]):
        return False
    if name in ("tox", "nox"):
        return not _runs_other_sessions(rest)
    if name in _RUNNERS or ("/" in words[0] and _SCRIPT.fullmatch(name)):
        return True
    if _PYTHON.fullmatch(name):
        return _is_python_run(rest)
    if name in _INTERPRETERS and _is_script_run(rest):
        return True
    return name in _WITH_VERB and _has_verb(name, rest)


def _only_tells(words: list[str]) -> bool:
    return any(
        not frozenset(words[at + 1 : at + 4]).isdisjoint(_NOT_RUN_BY.get(word, "").split())
        for at, word in enumerate(words[:2])
    )


def _runs_other_sessions(rest: list[str]) -> bool:
    # `tox -e lint,types`, `nox -s lint`.
    named = [
        name
        for flag, value in pairwise(rest)
        if flag in ("-e", "-s", "--env", "--session", "--sessions", "-m")
        for name in value.split(",")
    ]
    return bool(named) and all(map(_OTHER_TARGETS.fullmatch, named))


def _is_python_run(rest: list[str]) -> bool:
    if "-m" in rest:
        module = rest[rest.index("-m") + 1 :]
        name = module[0].partition(".")[0] if module else ""
        return name in _MODULES and (
            name not in ("tox", "nox", "coverage") or _is_run([name, *module[1:]])
        )
    if "-c" in rest:
        return _CODE_RUNS.search(" ".join(rest)) is not None
    scripts = [word for word in rest if not word.startswith("-")]
    if scripts[:1] and base_name(scripts[0]) in ("manage.py", "setup.py"):
        return "test" in scripts
    return bool(scripts) and _SCRIPT.fullmatch(base_name(scripts[0])) is not None


def _is_script_run(rest: list[str]) -> bool:
    if "--test" in rest:
        return True
    scripts = [word for word in rest if not word.startswith("-")]
    if scripts[:1] and base_name(scripts[0]).partition(".")[0] in _RUNNERS | {"artisan"}:
        return _is_run([base_name(scripts[0]).partition(".")[0], *scripts[1:]])
    return bool(scripts) and _SCRIPT.fullmatch(base_name(scripts[0])) is not None


def _has_verb(name: str, rest: list[str]) -> bool:
    if name in ("cypress", "coverage"):
        return rest[:1] == ["run"] and not _covers_another(rest[1:])
    given = [word for word in rest if not word.startswith("-")]
    verbs = _WITH_VERB[name]
    if name in _BUILDS:
        return ("-x", "test") not in pairwise(rest) and any(map(verbs.fullmatch, given))
    if given[:1] and given[0] in _OTHER_VERBS and name not in _MAKES:
        return False
    if name in _SCRIPTED and given[:1] != ["run"]:
        return name in ("hatch", "rye", "pdm") and given[:1] == ["test"]
    targets = [word for word in given if word not in ("run", "run-script", "exec", "workspace")]
    return any(
        verbs.fullmatch(word) is not None and _OTHER_TARGETS.fullmatch(word) is None
        for word in targets[:4]
    )


def _covers_another(rest: list[str]) -> bool:
    # `coverage run app.py` runs no tests.
    if "-m" in rest:
        return not _is_python_run(rest)
    scripts = [word for word in rest if not word.startswith("-")]
    return bool(scripts) and not _is_python_run(scripts)
