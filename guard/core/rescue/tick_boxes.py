"""Tick the boxes of a task file whose named files are all committed, and change nothing else in it.

Only evidence ticks: a task that names no file is left to the agent, and one that names a folder, a pattern or a file that
was not committed stays open.
"""

import codecs
import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from guard.core.base.taskfile import Box, boxes

_MOST_BYTES = 16 * 1024 * 1024
_EXTENSIONS = (
    "adoc|astro|bash|bat|c|cc|cfg|cjs|clj|conf|cpp|cs|css|csv|cxx|dart|exs?|fs|go|gql|gradle|graphql"
    "|h|hcl|hpp|hs|html?|hxx|ini|ipynb|java|jl|json|jsx?|kts?|less|lock|lua|m|md|mjs|mli?|mm|nix|php"
    "|p[lm]|proto|ps1|pyi?|r|rb|rs|rst|sass|scala|scss|sh|snap|sql|svelte|svg|swift|tf|toml|tsx?|txt"
    "|vue|xml|ya?ml|zig"
)
_LONGEST = 2000
"""A longer line is no task; the patterns here may take the square of its length."""
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_BACKTICKED = re.compile(r"(`+)(.+?)(?<!`)\1(?!`)")
_URL = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://\S+", re.IGNORECASE)
_BARE = re.compile(
    r"(?<![\w./\\@~*{}-])(?:"
    r"[\w.@~+*{},-]*/[\w./@+*{},-]*"
    rf"|[\w.+*{{}}-]+\.(?:{_EXTENSIONS})(?![\w/-]|\.\w))"
)
_PLACE_BEHIND = re.compile(r"(?:::?|#L?)[\w:.-]*$")
_PATH = re.compile(
    rf"[^\s/]*(?:/[^\s/]*)+|[^\s/]+\.(?:{_EXTENSIONS})"
    r"|\.[a-z][\w.-]+|(?:Docker|Make|Gem|Proc|Jenkins|Pip|Vagrant|Rake)file|LICENSE|CODEOWNERS"
)
_BOLD = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_PROSE = re.compile(
    r"and/or|either/or|he/she|his/her|n/a|i/o|w/o|input/output|read/write|yes/no|on/off|true/false"
    r"|client/server|pass/fail|open/close|start/stop|get/set|tcp/ip|ci/cd|add/remove|up/down"
    r"|(?:node|vue|next|nuxt|react|express|three|d3)\.js",
    re.IGNORECASE,
)


_UNPROVABLE = re.compile(
    r"\b(?:delete|remove|drop|never|(?:do|does|must|should|may)(?: not|n't)|don't|without)\b",
    re.IGNORECASE,
)
"""A file that was committed proves nothing of a task that wants it gone, or left alone."""
_ABOUT_TESTS = re.compile(r"\b(?:unit |integration )?tests?\b", re.IGNORECASE)


class _Committed:
    """Committed paths, found by their whole or by their end where that is one path's only."""

    def __init__(self, paths: Collection[str]) -> None:
        self._by_name: dict[str, list[str]] = {}
        for path in dict.fromkeys(paths):
            self._by_name.setdefault(path.rpartition("/")[2], []).append(path)

    def has(self, named: str) -> bool:
        alike = self._by_name.get(named.rpartition("/")[2], [])
        return named in alike or sum(path.endswith(f"/{named}") for path in alike) == 1


class _Text(NamedTuple):
    """What a file says, and how to turn that back into its bytes."""

    mark: bytes
    codec: str
    text: str

    def encode(self, text: str) -> bytes:
        errors = "surrogateescape" if self.codec == "utf-8" else "strict"
        return self.mark + text.encode(self.codec, errors=errors)


def tick_boxes(text: bytes, committed: Collection[str]) -> tuple[bytes, tuple[str, ...]]:
    """The task file with boxes ticked whose named files are all committed, and what those tasks say."""
    read = _decode(text) if committed and len(text) <= _MOST_BYTES else None
    if read is None:
        return text, ()
    lines = _LINE.findall(read.text)
    chosen = _boxes_to_tick(boxes(read.text), lines, _Committed(committed))
    for box in chosen:
        line = lines[box.line - 1]
        lines[box.line - 1] = f"{line[: box.mark]}x{line[box.mark + 1 :]}"
    return read.encode("".join(lines)), tuple(box.text for box in chosen)


def _decode(data: bytes) -> _Text | None:
    marks = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"))
    for mark, codec in (*marks, (codecs.BOM_UTF16_BE, "utf-16-be"), (b"", "utf-8")):
        if data.startswith(mark):
            errors = "surrogateescape" if codec == "utf-8" else "strict"
            try:
                return _Text(mark, codec, data[len(mark) :].decode(codec, errors=errors))
            except UnicodeDecodeError:
                return None
    return None


def _boxes_to_tick(found: Sequence[Box], lines: Sequence[str], committed: _Committed) -> list[Box]:
    """The open boxes to tick: children first, because one that stays open keeps its parent open."""
    kept_open: set[int | None] = set()
    chosen = []
    for box, end in zip(reversed(found), _ends(found, len(lines)), strict=True):
        named = (
            [] if box.done else _named_files(box, lines[box.line : end - 1], lines[box.line - 1])
        )
        if named and box.line not in kept_open and all(map(committed.has, named)):
            chosen.append(box)
        elif not box.done:
            kept_open.add(box.parent)
        if box.line in kept_open:
            kept_open.add(box.parent)
    return chosen[::-1]


def _ends(found: Sequence[Box], last: int) -> list[int]:
    """For each box, from the last to the first, the line before which what belongs to it ends."""
    return [last + 1, *(box.line for box in reversed(found[1:]))][: len(found)]


def _named_files(box: Box, below: Sequence[str], line: str) -> list[str]:
    """The files that a task names, in its own line and in those that go on with it; none if its own line has none."""
    named = _paths(box.text) if len(line) <= _LONGEST else []
    if not named or _UNPROVABLE.search(box.text):
        return []
    if _ABOUT_TESTS.search(box.text) and not any("test" in path.lower() for path in named):
        return []
    indent = _indent(line)
    for more in below:
        if not more.strip() or _indent(more) <= indent:
            break
        if len(more) > _LONGEST:
            return []
        named += _paths(more)
    return named


def _indent(line: str) -> int:
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip(" "))


def _paths(text: str) -> list[str]:
    text = _URL.sub(" ", text)
    quoted = [found[2].strip() for found in _BACKTICKED.finditer(text)]
    whole = [span for span in quoted if _PATH.fullmatch(_PLACE_BEHIND.sub("", span))]
    rest = _BOLD.sub(r"\2", _BACKTICKED.sub(_unquote, text))
    bare = [found[0].rstrip(".,-") for found in _BARE.finditer(rest)]
    paths = (_PLACE_BEHIND.sub("", path).removeprefix("./") for path in (*whole, *bare))
    return [path for path in paths if path.strip("/.") and not _PROSE.fullmatch(path)]


def _unquote(found: re.Match[str]) -> str:
    """Of a quoted command its words are looked at; a quoted path was read as a whole."""
    return f" {found[2]} " if " " in found[2].strip() else " "
