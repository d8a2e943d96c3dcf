"""Split a shell command line into simple commands, as far as reading it without running it allows."""

import re
import shlex
from collections.abc import Callable, Iterator
from typing import NamedTuple

from guard.core.base.first_use import late_pattern


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LONGEST = 20_000
_MOST_DEPTH = 3
_MOST_WORDS, _MOST_READ = 12, 200
_HERE = late_pattern(r"<<-?\s*(['\"]?)(\w+)\1([^\n]*)\n.*?^\s*\2\s*$", re.DOTALL | re.MULTILINE)
_SHELLS = ("sh", "bash", "zsh", "dash", "ksh")
_COMMENT = late_pattern(r"(?:^|(?<=\s))#[^\n]*", re.MULTILINE)
_MARKS = frozenset("();|&\n")
_ASSIGNMENT = late_pattern(r"\w+=[^$`]*|\w+=\$|PATH=.*")
"""Also the beginning of `name=$(command)`."""
_KEYWORDS = word_set("then do else if while until {")
_PLAIN = word_set(
    "env time nice timeout gtimeout sudo nohup stdbuf xvfb-run command exec npx bunx uvx cross-env dotenv ionice setsid"
    " c8 nyc busybox watchexec xargs"
)
"""Programs that run the first word that is no option, value or assignment."""
_LAUNCHERS = {
    name: tuple(verbs.split())
    for names, verbs in (
        ("uv poetry pipenv pdm hatch rye pixi conda mamba micromamba pipx", "run"),
        ("docker podman docker-compose kubectl oc", "exec run"),
        ("bundle direnv mise asdf nix-shell flatpak devcontainer", "exec --run"),
        ("npm pnpm yarn bun", "exec dlx x"),
        ("doppler op infisical guard", "run test"),
        ("opam", "exec"),
        ("devbox", "run"),
        ("nix", "-c --command"),
        ("ssh", ""),
    )
    for name in names.split()
}
"""Programs that run another one after a verb, maybe in a container or elsewhere."""
_PLAIN_VALUES = word_set("-n -s -u -k -g -c -p --signal --user --kill-after")
_VALUES = word_set(
    "-w -u -e -f -n -p -v -l -i -C --workdir --user --env --name --with --group --extra --python --file --network --volume -t"
    " --entrypoint --workspace-folder --project --package"
)
_OTHERS = word_set(
    """
    grep rg ag ack cat ls echo printf which type whereis find head tail less more man vim nano code sed awk cp mv rm mkdir touch
    pip pip3 apt apt-get apk brew dnf yum git kill pkill pgrep ps true wc tee xargs install add show logs
    """
)
"""Programs that are certainly no test runner, though one may be named after them."""


class SimpleCommand(NamedTuple):
    words: tuple[str, ...]
    before: str
    """What stands between the command before and this one: `&&`, `||`, `;`, `|`, `&`, or nothing."""
    after: str


def base_name(word: str) -> str:
    return word.rpartition("/")[2]


def without_documents(text: str) -> str:
    """Return the command line without the text of its here-documents."""
    return _HERE.sub(r"\3", text[:_LONGEST])


def split_commands(text: str, depth: int = 0) -> list[SimpleCommand]:
    """Return the simple commands in their order, also those inside `bash -c`; none if the text is no command line."""
    found: list[SimpleCommand] = []
    shown = without_documents(text)
    try:
        pieces = list(_pieces(shown))
    except ValueError:
        # A comment may have an apostrophe.
        try:
            pieces = list(_pieces(_COMMENT.sub("", shown)))
        except ValueError:
            return []
    before = ""
    for words, after in pieces:
        inner = _inner_command(words)
        if inner is not None and depth < _MOST_DEPTH:
            nested = split_commands(inner, depth + 1)
            found += _join(nested, before, after)
        elif words:
            found.append(SimpleCommand(words, before, after))
        before = after if words else before
    return found


def _pieces(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    words: list[str] = []
    is_comment = False
    for token in lexer:
        if token and _MARKS.issuperset(token):
            if token.strip("()"):
                yield tuple(words), _kind(token)
                words, is_comment = [], False
        elif token.startswith("#"):
            is_comment = True
        elif not is_comment:
            words.append(token)
    if words:
        yield tuple(words), ""


def _kind(mark: str) -> str:
    return next((kind for kind in ("&&", "||", "|", "&") if kind in mark), ";")


def _inner_command(words: tuple[str, ...]) -> str | None:
    """Return the command line that a shell, here or behind a launcher, is given as one word."""
    for program in program_words(words):
        name = base_name(program[0])
        if name in _SHELLS:
            flags = [at for at, word in enumerate(program) if re.fullmatch(r"-[a-z]*c", word)]
            return program[flags[0] + 1] if flags and flags[0] + 1 < len(program) else None
        if name == "eval" and len(program) > 1:
            return " ".join(program[1:])
        if len(program) == 1 and " " in name and base_name(words[0]) in ("ssh", "nix-shell"):
            return program[0]
    return None


def program_words(words: tuple[str, ...], depth: int = 0) -> Iterator[tuple[str, ...]]:
    """Yield the words of the programs that a command may run: its own, and those behind the launchers in front.

    Where the values of a launcher's options cannot be told from the program, each word may begin it.
    """
    words = _skip(
        words[:_MOST_READ], lambda word: bool(_ASSIGNMENT.fullmatch(word)) or word in _KEYWORDS
    )
    if not words or words[0] == "!":
        return
    yield words
    name = base_name(words[0])
    if name in _PLAIN and depth < _MOST_DEPTH:
        if name != "command" or words[1:2] not in (("-v",), ("-V",)):
            yield from program_words(_behind_options(words[1:], _PLAIN_VALUES), depth + 1)
        return
    verbs = _LAUNCHERS.get(name)
    if verbs is None:
        return
    at = next((at for at, word in enumerate(words[:_MOST_WORDS]) if word in verbs), None)
    if verbs != () and at is None:
        return
    yield from _behind_verb(words[(at or 0) + 1 :])


def _behind_verb(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    rest = _behind_options(words, _VALUES)
    for at, word in enumerate(rest[:_MOST_WORDS]):
        if base_name(word) in _OTHERS:
            return
        if not word.startswith("-") and (at == 0 or rest[at - 1] not in _VALUES):
            yield rest[at:]


def _behind_options(words: tuple[str, ...], values: frozenset[str]) -> tuple[str, ...]:
    # Skips options, their values, numbers such as a time limit, and assignments.
    while words:
        if words[0] == "--":
            return words[1:]
        if words[0] in values:
            words = words[2:]
        elif words[0].startswith("-") or re.fullmatch(r"[\d.]+[smhd]?|\w+=.*", words[0]):
            words = words[1:]
        else:
            return words
    return ()


def _skip(words: tuple[str, ...], is_skipped: Callable[[str], bool]) -> tuple[str, ...]:
    while words and is_skipped(words[0]):
        words = words[1:]
    return words


def _join(nested: list[SimpleCommand], before: str, after: str) -> list[SimpleCommand]:
    if nested:
        nested[0] = nested[0]._replace(before=before)
        nested[-1] = nested[-1]._replace(after=after)
    return nested
