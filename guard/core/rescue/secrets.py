"""Find secrets in what an iteration added, by rules precise enough that a hit is worth keeping a file out of a commit.

The value that was found is never shown: a rule and a line number are enough to find it again.
"""

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from typing import NamedTuple

from guard.core.rescue.secret_rules import RULES, Rule

SENSITIVE_NAME = "sensitive_name"
_MOST_HITS = 1000
_MOST_TOLD = 8


class Secret(NamedTuple):
    """One hit; the value is kept for comparing, not for showing."""

    rule: str
    offset: int
    value: bytes


class Hit(NamedTuple):
    """One hit as it may be shown."""

    rule: str
    line: int


def find_secrets(data: bytes) -> Iterator[Secret]:
    """Find what looks like a secret, rule by rule; an offset is one in the text as UTF-8."""
    text = _as_utf8(data)
    folded = text.lower()
    for rule in RULES:
        for needle in rule.needles:
            yield from _of_rule(rule, needle, text, folded if rule.ignores_case else text)


def _of_rule(rule: Rule, needle: bytes, text: bytes, searched: bytes) -> Iterator[Secret]:
    at = searched.find(needle)
    while at >= 0:
        end = at + len(needle)
        found = rule.pattern.match(text, at)
        if found is not None and rule.genuine(found):
            yield Secret(rule.name, at, found[0])
            end = max(end, found.end())
        at = searched.find(needle, end)


def _as_utf8(data: bytes) -> bytes:
    """UTF-16 shows by its mark, or by a beginning in which every second byte is zero."""
    head = data[:512]
    if head.startswith(b"\xff\xfe") or (len(head) >= 16 and not any(head[1:64:2])):
        data = data.decode("utf-16-le", "replace").encode()
    elif head.startswith(b"\xfe\xff") or (len(head) >= 16 and not any(head[0:64:2])):
        data = data.decode("utf-16-be", "replace").encode()
    return data.removeprefix(b"\xef\xbb\xbf")


def find_added_secrets(data: bytes, *before: bytes) -> list[Hit]:
    """The secrets that were in none of the texts before, each once by rule and line, in the order of the lines."""
    if next(find_secrets(data), None) is None:
        return []
    known = {secret.value for text in before for secret in find_secrets(text)}
    added = (secret for secret in find_secrets(data) if secret.value not in known)
    hits: dict[Hit, None] = {}
    text, line, counted = _as_utf8(data), 1, 0
    for secret in sorted(islice(added, _MOST_HITS), key=lambda secret: secret.offset):
        line += text.count(b"\n", counted, secret.offset)
        counted = secret.offset
        hits[Hit(secret.rule, line)] = None
    return list(hits)


def describe_hits(hits: Sequence[Hit]) -> str:
    lines = [f"{hit.rule}, line {hit.line}" for hit in hits[:_MOST_TOLD]]
    more = len(hits) - len(lines)
    return "; ".join([*lines, f"and {more} more"] if more else lines)


_NAMES = re.compile(
    rb"\.env(?:\.[^/]+)?|[._]netrc|\.pgpass|\.pypirc|\.git-credentials|\.my\.cnf|\.s3cfg|\.htpasswd"
    rb"|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|[^/]+\.(?:p12|pfx|jks|keystore|kdbx|ppk)",
    re.IGNORECASE,
)
_PLACES = re.compile(
    rb"(?:.*/)?(?:\.aws/credentials|\.kube/config|\.docker/config\.json)", re.DOTALL
)
_TEMPLATES = re.compile(
    rb"\.env\.(?:.*[._-])?(?:example|sample|template|tmpl|tpl|dist|defaults?|schema|test|ci)(?:\..*)?",
    re.IGNORECASE,
)


def has_sensitive_name(path: bytes) -> bool:
    """Tell whether a new file of this name is for secrets, whatever it holds by now."""
    name = path.rpartition(b"/")[2]
    if _TEMPLATES.fullmatch(name):
        return False
    return _NAMES.fullmatch(name) is not None or _PLACES.fullmatch(path) is not None


def has_new_sensitive_name(path: bytes, allowed: str) -> bool:
    """Tell whether a commit that adds a file at this path is to be warned of, whatever the file holds."""
    return has_sensitive_name(path) and bool(drop_allowed([Hit(SENSITIVE_NAME, 0)], path, allowed))


def drop_allowed(hits: Sequence[Hit], path: bytes, allowed: str) -> list[Hit]:
    if not allowed:
        return list(hits)
    # It takes its time to load, and a commit waits for this.
    from guard.core.base.paths import spell

    return [hit for hit in hits if not is_allowed(hit.rule, spell(path), allowed)]


def is_allowed(rule: str, path: str, allowed: str) -> bool:
    """Tell whether the user lets this rule pass at this path: `rule:glob` after `rule:glob`, `*` for any rule."""
    pairs = (entry.strip().partition(":") for entry in allowed.split(","))
    return any(name in (rule, "*") and fnmatchcase(path, glob) for name, _, glob in pairs if glob)
