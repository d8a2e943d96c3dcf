"""Secrets in what an iteration added, by patterns precise enough that a hit is worth keeping a file out of a commit.

Every pattern begins with fixed text that is looked for first, and repeats only single character classes, so that time stays
linear in the size of the file. What was found is never shown: a rule and a line number are enough to find it again.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple


class Secret(NamedTuple):
    """One hit; the value is kept for comparing, not for showing."""

    rule: str
    offset: int
    value: bytes


class _Rule(NamedTuple):
    name: str
    needle: bytes
    pattern: re.Pattern[bytes]


def _rule(name: str, needle: bytes, pattern: bytes) -> _Rule:
    return _Rule(name, needle, re.compile(rb"(?<![A-Za-z0-9_-])" + pattern))


_WORD = rb"[A-Za-z0-9_-]"
_RULES = (
    _rule("anthropic", b"sk-ant-", rb"sk-ant-" + _WORD + rb"{24,256}"),
    _rule("openai_project", b"sk-proj-", rb"sk-proj-" + _WORD + rb"{24,256}"),
    _rule("openai", b"T3BlbkFJ", rb"sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}"),
    _rule("github", b"gh", rb"gh[pousr]_[A-Za-z0-9]{36,255}"),
    _rule("github_fine_grained", b"github_pat_", rb"github_pat_[A-Za-z0-9_]{60,255}"),
    _rule("gitlab", b"glpat-", rb"glpat-" + _WORD + rb"{20,64}"),
    _rule("aws_access_key", b"AKIA", rb"AKIA[A-Z2-7]{16}(?![A-Za-z0-9])"),
    _rule("aws_session_key", b"ASIA", rb"ASIA[A-Z2-7]{16}(?![A-Za-z0-9])"),
    _rule("slack", b"xox", rb"xox[abeprs]-[0-9A-Za-z-]{10,250}"),
    _rule("slack_webhook", b"hooks.slack.com", rb"hooks\.slack\.com/services/T[A-Z0-9]{8,12}/B"),
    _rule("google", b"AIza", rb"AIza" + _WORD + rb"{35}"),
    _rule("npm", b"npm_", rb"npm_[A-Za-z0-9]{36}"),
    _rule("pypi", b"pypi-AgEIcHlwaS5vcmc", rb"pypi-AgEIcHlwaS5vcmc" + _WORD + rb"{50,1000}"),
    _rule("stripe", b"_live_", rb"[sr]k_live_[A-Za-z0-9]{20,100}"),
    _rule("hugging_face", b"hf_", rb"hf_[A-Za-z0-9]{34}"),
    _rule(
        "jwt",
        b"eyJ",
        rb"eyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{20,1000}",
    ),
    _rule(
        "private_key",
        b"PRIVATE KEY",
        rb"-----BEGIN (?:[A-Z]{2,10} ){0,2}PRIVATE KEY(?: BLOCK)?-----",
    ),
    _rule(
        "url_with_password",
        b"://",
        rb"[a-z][a-z0-9+.]{1,20}://[^\s:/@'\"<>$%{}]{1,64}:[^\s:/@'\"<>${}*]{3,128}@[A-Za-z0-9]",
    ),
)
_EXAMPLES = frozenset((b"password", b"passwd", b"pass", b"secret", b"xxx", b"changeme", b"example"))


def secrets_in(data: bytes) -> Iterator[Secret]:
    """What looks like a secret, rule by rule."""
    for rule in _RULES:
        if rule.needle not in data:
            continue
        for found in rule.pattern.finditer(data):
            if rule.name == "url_with_password" and _is_example(found[0]):
                continue
            yield Secret(rule.name, found.start(), found[0])


def added_secret(data: bytes, before: bytes) -> str | None:
    """The first secret that was not there before, as rule and line."""
    if next(secrets_in(data), None) is None:
        return None
    known = {secret.value for secret in secrets_in(before)}
    for secret in secrets_in(data):
        if secret.value not in known:
            line = data.count(b"\n", 0, secret.offset) + 1
            return f"{secret.rule}, line {line}"
    return None


def _is_example(url: bytes) -> bool:
    user, _, password = url.partition(b"://")[2].rpartition(b"@")[0].partition(b":")
    return password.lower() in _EXAMPLES or password == user or len(set(password)) == 1
