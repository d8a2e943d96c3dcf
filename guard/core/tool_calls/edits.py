"""Tell whether a tool call edits code: by the tool and its path, or by the programs and redirections of a command line."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from guard.core.base.first_use import late_pattern
from guard.core.tool_calls.read import ToolCall
from guard.core.tool_calls.shell import base_name, program_words, word_set

_CODE = late_pattern(
    r"[\w./@+~-]+\.(?:py|js|jsx|ts|tsx|mjs|cjs|vue|svelte|go|rs|java|kt|scala|rb|php|c|h|cc|cpp|hpp|cs|swift|ex|exs|sh|sql)"
)
_DOCUMENTS = late_pattern(
    r"(?!.*(?:requirements|constraints)[^/]*\.txt$|.*cmakelists\.txt$).*\.(?:md|mdx|rst|txt|adoc)"
)
_ELSEWHERE = ("/tmp/", "/var/tmp/", "/dev/", "$", "~")  # noqa: S108
_MADE = word_set(
    "build dist out target node_modules coverage htmlcov tmp temp logs __pycache__ venv bin obj reports test-results"
)
"""Folders whose files can be made anew."""
_TOOLS = late_pattern(
    r"(?:.*_)?(?:edit|write|create|replace|insert|patch|delete|remove|rename|move|append|update)(?:_.*)?"
)
_GIT = word_set("apply am restore revert merge pull cherry-pick clean rm mv checkout switch")
_GIT_KEEPS = late_pattern(
    r"--(?:abort|quit|stat|check|staged|dry-run|create|force-create|orphan|cached)|-[a-zA-Z]*[bBcC]|-n"
)
"""Options with which git leaves the files alone."""
_STASH_KEEPS = word_set("list show create store drop clear")
_CHECKS = late_pattern(r"--(?:check|diff|dry-run|list-different|check-only)(?:=.*)?|-l|-d")
_FORMATTERS = word_set("black isort rustfmt autopep8 yapf gofumpt stylua")
_FORMATTER_VERBS = {"cargo": "fmt fix", "ruff": "format", "go": "fmt fix", "mix": "format"}
_FIXERS = word_set(
    "eslint prettier ruff biome stylelint gofmt goimports rubocop autoflake pyupgrade"
)
_FIXES = late_pattern(r"--(?:fix|write|in-place|auto-?correct(?:-all)?)|-w|-A")
_TARGETS = late_pattern(r"(?:.*[-_:.])?(?:fmt|format|fix|codegen)(?:[-_:.](?!check).*)?")
_WITH_TARGET = word_set("npm pnpm yarn bun make gmake just task")
_IN_PLACE = late_pattern(r"-(?![MI])[a-zA-Z]{0,4}i\S*|--in-place\S*|inplace")
_EDITORS = word_set("sed gsed perl ruby awk gawk")
_CHANGES = word_set("rm mv truncate unlink")
_COPIES = word_set("cp ln rsync install tee curl wget dd")
_INTERPRETERS = late_pattern(r"(?:python|pypy|node|deno|bun|ruby|perl|php)[\d.]*")
_WRITES = late_pattern(
    r"open\([^\n]{0,200}?['\"][rb]?[wax]\+?b?['\"]|\.write_(?:text|bytes)\(|[wW]rite(?:Text)?File|File\.write|file_put_contents"
    r"|appendFile|shutil\.(?:copy|move|rmtree)|\bos\.(?:remove|rename|replace|unlink)\(|\.unlink\("
)


def is_edit_of_code(call: ToolCall) -> bool:
    """Tell whether a tool other than a shell changed a file of code; a document is none."""
    tool, path = call.tool.casefold().rpartition("__")[2], call.path.casefold()
    if call.failed or _DOCUMENTS.fullmatch(path) or call.input.get("command") == "view":
        return False
    return call.edits or (_TOOLS.fullmatch(tool) is not None and _CODE.fullmatch(path) is not None)


def edits_code_by(words: Sequence[str], text: str) -> bool:
    """Tell whether a simple command of the command line `text` changes files of code."""
    if any(map(_is_code, _redirected(words))):
        return True
    return any(_is_edit(program[0], program[1:], text) for program in program_words(tuple(words)))


def _redirected(words: Sequence[str]) -> Iterator[str]:
    for mark, target in pairwise(words):
        if ">" in mark and not mark.strip("&>|"):
            yield target


def _is_code(word: str) -> bool:
    word = word.partition("=")[2] or word
    return _CODE.fullmatch(word) is not None and not word.startswith(_ELSEWHERE)


def _is_edit(program: str, rest: tuple[str, ...], text: str) -> bool:
    name, plain = base_name(program), [word for word in rest if not word.startswith("-")]
    if name == "git":
        return _git_edits(rest)
    if name in ("patch", "apply_patch", "ed"):
        return "--dry-run" not in rest
    if name in _EDITORS and any(map(_IN_PLACE.fullmatch, rest)):
        return True
    if name in ("find", "xargs"):
        return "-delete" in rest or _is_edit(*_executed(name, rest), text)
    if name in _CHANGES:
        return any(_is_code(word) or _is_folder(word) for word in plain)
    if name in _COPIES:
        return any(map(_is_code, plain if name in ("tee", "dd", "curl", "wget") else plain[-1:]))
    if _INTERPRETERS.fullmatch(name):
        inline = not rest or rest[0] in ("-", "-c", "-e", "-p", "--eval") or "<<" in rest[0]
        return inline and bool(_WRITES.search(text) and _CODE.search(text))
    return _formats(name, rest, plain)


def _executed(name: str, rest: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    # The program that runs on each file, with some file.
    if name == "find":
        words = rest[rest.index("-exec") + 1 :] if "-exec" in rest else ()
    else:
        words = rest[
            next((at for at, word in enumerate(rest) if not word.startswith("-")), len(rest)) :
        ]
    return (words[0], (*words[1:], "any.py")) if words else ("", ())


def _is_folder(word: str) -> bool:
    parts = word.strip("/").split("/")
    return not (
        word.startswith((*_ELSEWHERE, "/", "."))
        or set(parts) & _MADE
        or "." in parts[-1]
        or "*" in word
    )


def _git_edits(rest: tuple[str, ...]) -> bool:
    while rest[:1] and rest[0].startswith("-"):
        rest = rest[2 if rest[0] in ("-C", "-c", "--git-dir", "--work-tree") else 1 :]
    verb, options = (rest[0] if rest else ""), rest[1:]
    if verb == "stash":
        return not _STASH_KEEPS.intersection(options[:1])
    if verb == "reset":
        return not {"--hard", "--merge", "--keep"}.isdisjoint(options)
    if verb == "rebase":
        return {"--abort", "--quit"}.isdisjoint(options)
    return verb in _GIT and not any(map(_GIT_KEEPS.fullmatch, options))


def _formats(name: str, rest: tuple[str, ...], plain: list[str]) -> bool:
    if any(map(_CHECKS.fullmatch, rest)):
        return False
    verbs = _FORMATTER_VERBS.get(name, "").split()
    if name in _FORMATTERS or (plain and plain[0] in verbs):
        return True
    if name in _WITH_TARGET and any(map(_TARGETS.fullmatch, plain[:3])):
        return "check" not in " ".join(plain[:3])
    return any(word in ("--fix", "--write") for word in rest) or (
        name in _FIXERS and any(map(_FIXES.fullmatch, rest))
    )
