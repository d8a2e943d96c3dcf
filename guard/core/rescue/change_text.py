"""What the text of a change says: the names that it declares, and whether it fixes a fault or only reformats."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from guard.core.rescue.change import MOST_TEXT, Changed, ChangedFile

MOST_NAMES = 200
_LONGEST_LINE = 300
_LONGEST_NAME = 48
_WORD = r"[^\W\d][\w$]*"
_KEYWORD = re.compile(
    r"(?P<indent>[ \t]*)(?:(?:export|default|declare|abstract|async|pub(?:\([\w: ]{1,20}\))?|public|private"
    r"|protected|internal|static|final|sealed|open|data|override|inline|const|unsafe|suspend|partial|local"
    r"|virtual|case|readonly|extern)[ \t]+)*+"
    r"(?:class|interface|struct|enum|trait|protocol|record|object|actor|module|namespace|type|function\*?"
    r"|func|fun|fn|def|defmodule|defp|defmacro|sub|proc|union|mod|message|service|rpc|input|contract)[ \t]+"
    rf"(?:\([^()]{{0,80}}\)[ \t]*)?(?:{_WORD}(?:\.|::))*+(?P<name>{_WORD}[?!]?)"
    r"(?=[ \t]*(?:[(<:{=;\[,]|$|(?:extends|implements|where|struct|interface|func|do|is|returns)\b"
    r"|(?:int|string|float|bool|byte|error|map|chan)))"
)
_C_LIKE = re.compile(
    rf"(?P<indent>[ \t]*)(?!return\b|else\b|new\b|throw\b|await\b|using\b|case\b|goto\b)"
    rf"(?:{_WORD}[\w:<>,*&\[\]?. \t]{{0,100}}?)[ \t*&](?P<name>{_WORD})[ \t]*\([^;=]*$"
)
_EXTRA = {
    "c cc cpp cxx h hh hpp hxx m mm": (
        _C_LIKE,
        re.compile(rf"(?P<indent>)#[ \t]*define[ \t]+(?P<name>{_WORD})"),
    ),
    "java cs dart groovy": (_C_LIKE,),
    "js jsx ts tsx mjs cjs mts vue svelte astro": (
        re.compile(rf"(?P<indent>)export[ \t]+(?:const|let|var)[ \t]+(?P<name>{_WORD})"),
        re.compile(rf"(?P<indent>)(?:module\.)?exports\.(?P<name>{_WORD})[ \t]*="),
        re.compile(
            rf"(?P<indent>)const[ \t]+(?P<name>{_WORD})[ \t]*=[ \t]*(?:async\b|function\b|\()"
        ),
    ),
    "sh bash zsh fish": (re.compile(r"(?P<indent>)(?P<name>[A-Za-z_][\w-]*)[ \t]*\(\)"),),
    "sql": (
        re.compile(
            r"(?P<indent>)create[ \t]+(?:or[ \t]+replace[ \t]+)?(?:unique[ \t]+)?"
            r"(?:table|view|function|procedure|index|trigger|type|schema)[ \t]+(?:if[ \t]+not[ \t]+exists[ \t]+)?"
            rf"[\"`\[]?(?P<name>{_WORD})",
            re.IGNORECASE,
        ),
    ),
    "hs": (
        re.compile(rf"(?P<indent>)(?P<name>{_WORD})[ \t]*::"),
        re.compile(rf"(?P<indent>)(?:data|newtype)[ \t]+(?P<name>{_WORD})"),
    ),
    "clj cljs cljc": (
        re.compile(r"(?P<indent>)\((?:defn-?|defmacro|def)[ \t]+(?P<name>[\w?!*-]+)"),
    ),
    "r": (re.compile(r"(?P<indent>)(?P<name>[A-Za-z][\w.]*)[ \t]*<-[ \t]*function"),),
    "ml mli": (re.compile(rf"(?P<indent>)let[ \t]+(?:rec[ \t]+)?(?P<name>{_WORD})"),),
    "tf hcl": (re.compile(r'(?P<indent>)resource[ \t]+"[\w-]+"[ \t]+"(?P<name>[\w-]+)"'),),
    "zig": (
        re.compile(rf"(?P<indent>)(?:pub[ \t]+)?const[ \t]+(?P<name>{_WORD})[ \t]*=[ \t]*struct"),
    ),
}
_BY_EXTENSION = {
    extension: patterns for many, patterns in _EXTRA.items() for extension in many.split()
}
_NO_NAMES = re.compile(
    r"of|that|is|for|the|an?|to|in|and|with|which|this|tests?|if|while|switch|catch|return|main|constructor|default|setUp"
)
_HEADING = re.compile(r"(?:#{1,6}|={1,6})[ \t]+(?P<text>.*\S)")
_FENCE = re.compile(r"[ \t]*(?:```|~~~)")
_MARKUP = re.compile(r"[*_`]{1,2}(?=\S)|(?<=\S)[*_`]{1,2}|<[^>]*>|\[([^\]]*)\]\([^)]*\)|#+$")
_TRAILER = re.compile(r"[\w-]+-[\w-]+[ \t]*:")
_NO_TOPICS = re.compile(
    r"\W*(?:unreleased|added|changed|fixed|removed|deprecated|security|overview|introduction|summary"
    r"|notes?|examples?|usage|v?\d[\w.-]*(?:\W.*)?)\W*",
    re.IGNORECASE,
)
_VERSION = r"[\^~<>=*!]*[ \t]*v?\d|[\^~<>=*!]{1,3}|workspace:|npm:|file:|git|latest"
_PACKAGE = tuple(
    re.compile(pattern)
    for pattern in (
        rf'\s*"(?P<name>[@\w./-]+)"\s*:\s*"(?:{_VERSION})',
        r'\s*[\w-]*(?:=\s*\[)?\s*"(?P<name>[A-Za-z][\w.-]*)(?:\[[\w, -]*\])?\s*[<>=~!]=?',
        rf'\s*"?(?P<name>[A-Za-z][\w.-]*)"?\s*=\s*(?:"(?:{_VERSION})|\{{.*(?:version|path|git|workspace)\s*=)',
        r"(?P<name>[A-Za-z][\w.-]*)(?:\[[\w, -]*\])?\s*[<>=~!]=",
        r"\s*gem\s+[\"'](?P<name>[\w-]+)",
        r"\s*(?:require\s+)?[\w.-]+\.[a-z]+/(?:[\w./-]*?/)?(?P<name>[\w.-]+?)(?:/v\d+)?\s+v\d",
        r"\s*<artifactId>(?P<name>[\w.-]+)</artifactId>",
        r"\s*<PackageReference\s+Include=\"(?P<name>[\w.-]+)",
        r"\s*\w*(?:[iI]mplementation|[aA]pi|[cC]ompileOnly|[rR]untimeOnly)\s*\(?[\"'][\w.-]+:(?P<name>[\w.-]+)",
    )
)
_NO_PACKAGES = frozenset(
    ["version", "requires-python", "python", "edition", "rust-version", "node"]
)


def declared_names(extension: str, text: bytes) -> tuple[str, ...]:
    """The public names of functions and types, those of the outermost level if there are any, in their order."""
    patterns = (_KEYWORD, *_BY_EXTENSION.get(extension.lower(), ()))
    found: list[tuple[str, str]] = []
    for line in _lines(text):
        match = _first_match(patterns, line)
        name = match["name"] if match else ""
        if match and not _NO_NAMES.fullmatch(name) and len(name) <= _LONGEST_NAME:
            found.append((match["indent"], name))
    public = [declaration for declaration in found if not declaration[1].startswith("_")]
    outer = [name for indent, name in public if not indent] or [name for _indent, name in public]
    return tuple(islice(dict.fromkeys(outer), MOST_NAMES))


def headings(text: bytes) -> tuple[str, ...]:
    found = []
    is_code = False
    for line in _lines(text):
        if _FENCE.match(line):
            is_code = not is_code
        heading = None if is_code else _HEADING.match(line)
        topic = _topic(heading["text"]) if heading else ""
        if topic:
            found.append(topic)
    return tuple(islice(dict.fromkeys(found), MOST_NAMES))


def _topic(heading: str) -> str:
    text = " ".join(_MARKUP.sub(r"\1", heading).split()).strip(" .:#=")
    if not text or len(text) > _LONGEST_NAME or _NO_TOPICS.fullmatch(text) or _TRAILER.match(text):
        return ""
    first, space, rest = text.partition(" ")
    return (first.lower() if first[1:].islower() else first) + space + rest


def package_names(text: bytes) -> tuple[str, ...]:
    found = (match["name"] for line in _lines(text) if (match := _first_match(_PACKAGE, line)))
    named = (name for name in found if name not in _NO_PACKAGES and len(name) <= _LONGEST_NAME)
    return tuple(islice(dict.fromkeys(named), MOST_NAMES))


def _first_match(patterns: Sequence[re.Pattern[str]], line: str) -> re.Match[str] | None:
    return next((found for pattern in patterns if (found := pattern.match(line))), None)


def _lines(text: bytes) -> Iterator[str]:
    lines = text.decode(errors="replace").split("\n")
    return (line.rstrip("\r \t") for line in lines if len(line) <= _LONGEST_LINE)


_MOST_LINES = 60
_COMMENT = re.compile(
    r"\s*(?:#|//|/?\*|--|;|<!--|\"\"\")\s*(?P<text>.+)|.*?\s(?:#|//)\s(?P<behind>.+)"
)
_SAYS_FIX = re.compile(
    r"\b(?:fix(?:e[sd])?(?:\s+(?:for|the|a|an|bug|issue)\b|\s*:?\s*(?:#|gh-)\d)"
    r"|(?:bug|issue|regression)\s*(?:#|gh-)?\d+|regression\s+(?:test|in|of|from|:)|bugfix\b|hotfix\b)",
    re.IGNORECASE,
)
_LATER = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")
_TESTS_FIX = re.compile(
    r"(?:def|fn|func|fun|void|it|test|describe|should)\b.{0,40}?(?:regression|_issue_?\d|_bug|bugfix"
    r"|no_longer|no longer|does_not_crash|doesn't crash|does not crash)",
    re.IGNORECASE,
)
_NAMED_FIX = re.compile(r"(?:^|[/_.-])(?:regressions?|bugfix|hotfix|issue[_-]?\d+)(?:[/_.-]|$)")
_INDENT_COUNTS = re.compile(
    r".*(?:\.(?:py|pyi|pyx|ya?ml|coffee|haml|hs|fs|nim|pug|sass|slim|mk|md|rst|txt)|[Mm]akefile)"
)


def is_fix(pieces: Sequence[ChangedFile]) -> bool:
    """Tell whether a small change to existing code says of itself, or by its tests, that it fixes something."""
    texts = [piece.change.added.decode(errors="replace").split("\n") for piece in pieces]
    code = [piece.place.role == "source" for piece in pieces]
    if sum(len(lines) for lines, is_code in zip(texts, code, strict=True) if is_code) > _MOST_LINES:
        return False
    return any(
        _NAMED_FIX.search(piece.place.path)
        or any(map(_TESTS_FIX.search if not is_code else _says_fix, _short_lines(lines)))
        for piece, lines, is_code in zip(pieces, texts, code, strict=True)
    )


def _short_lines(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if len(line) <= 200]


def _says_fix(line: str) -> bool:
    comment = _COMMENT.match(line)
    text = (comment["text"] or comment["behind"]) if comment else ""
    return bool(text and _SAYS_FIX.search(text) and not _LATER.search(text))


def is_layout(change: Changed) -> bool:
    """Tell whether only blanks and line breaks differ, where they mean nothing."""
    if change.letter != "M" or not change.added or not change.removed:
        return False
    if max(len(change.added), len(change.removed)) >= MOST_TEXT:
        return False
    name = change.path.rpartition(b"/")[2].decode(errors="replace")
    if not _INDENT_COUNTS.fullmatch(name):
        return change.added.split() == change.removed.split()
    return _indented_lines(change.added) == _indented_lines(change.removed)


def _indented_lines(text: bytes) -> list[bytes]:
    return [line.rstrip() for line in text.split(b"\n") if line.strip()]
