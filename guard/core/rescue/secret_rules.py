"""All rules: tokens, and secrets that only what stands around them gives away, told from words, names and examples."""

import re
from base64 import b64decode
from collections.abc import Callable

from guard.core.rescue.secret_tokens import TOKENS, Rule, is_filled_in, is_placeholder

_WEAK = re.compile(
    rb"[A-Za-z]{1,20}[0-9!@#$%.*_-]{0,8}|.{0,8}(?:pass|p@[s5]|secret|test|demo|admin|guest|foo|bar|qwert).{0,8}",
    re.IGNORECASE,
)
_NEARBY = re.compile(
    rb"(?:localhost|127\.|0\.0\.0\.0|host\.docker|[a-z0-9_-]{1,40}(?![a-z0-9_.-])|[a-z0-9.-]{0,60}example\.)",
    re.I,
)


def _is_password_of_url(found: re.Match[bytes]) -> bool:
    """A weak password counts where its host is somewhere else, unless it is one that every example has."""
    user, password, host = found.group("user", "password", "host")
    if password == user or password.lower() in _EXAMPLES or is_placeholder(password + b"/" + user):
        return False
    return _WEAK.fullmatch(password) is None or _NEARBY.match(host) is None


_EXAMPLES = frozenset(
    b"password passwd pass pwd pw secret token foo bar baz test user admin guest root hunter2 s3cret s3cr3t"
    b" changeme example my-password mypassword mypass pass123 password123 passw0rd p@ssw0rd 123456 1234 xxx".split()
)
_KEY_BODY = re.compile(rb"[A-Za-z0-9+/=]{40}")
_KEY = rb"-----BEGIN (?:[A-Z0-9]{2,10} ){0,2}PRIVATE KEY(?: BLOCK)?-----[^-]{40,400}"


def _has_a_key(found: re.Match[bytes]) -> bool:
    """Behind the title stands a key: code and docs name the title alone."""
    return _KEY_BODY.search(found[0]) is not None and b"..." not in found[0]


def _is_encoded_key(found: re.Match[bytes]) -> bool:
    return b"PRIVATE KEY" in b64decode(found[0])


def _is_basic(found: re.Match[bytes]) -> bool:
    try:
        user, colon, password = b64decode(found["value"] + b"==").partition(b":")
    except ValueError:
        return False
    plain = (user + password).isascii() and (user + password).decode().isprintable()
    known = (
        password.lower() in _EXAMPLES
        or password in (b"open sesame", b"opensesame")
        or user == password
    )
    return bool(colon and user and len(password) >= 4) and plain and not known


def _is_in_netrc(found: re.Match[bytes]) -> bool:
    value = found["value"]
    return not is_placeholder(value) and value.lower() not in _EXAMPLES and _begins_a_line(found)


_WORDS = re.compile(rb"[A-Z]?[a-z]{3,}|[A-Z]{4,}|\b[a-zA-Z]{1,3}\b")
_UNSPEAKABLE = re.compile(rb"[bcdfghjklmnpqrstvwxz]{5}", re.IGNORECASE)
_LETTER = re.compile(rb"[A-Za-z]")
_DIGIT = re.compile(rb"[0-9]")
_UUID = re.compile(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_OTHER_THING = re.compile(
    rb"[a-z]+://|[./~]*/|[A-Za-z_$][\w$]*(?:(?:\.|->|::)[A-Za-z_$][\w$]*)+|sha\d+[:-]|\d+(?:\.\d+)+|data:|#|--|@"
)
_ABOUT_ONE = re.compile(
    rb"(?i)(?:name|ref|type|kind|url|uri|path|file|field|id|label|env|var|prefix|suffix|regex|pattern|hash|len|length|size|class"
    rb"|count|at|expir\w*|selector|input|hint|policy|endpoint|version|ize\w*|arn|format|header|param\w*|digest|checksum|alg\w*|key_?id)"
)


def _is_random(value: bytes, shortest: int) -> bool:
    """Letters and digits mixed as only a generator mixes them: not words, names, paths or versions."""
    if len(value) < shortest or is_placeholder(value) or _OTHER_THING.match(value):
        return False
    if _UUID.fullmatch(value) or _WEAK.fullmatch(value):
        return False
    letters, digits = len(_LETTER.findall(value)), len(_DIGIT.findall(value))
    if not letters or not digits or letters + digits < len(value) * 0.7:
        return False
    in_words = sum(map(len, _WORDS.findall(value.replace(b"_", b"-"))))
    is_name = (
        in_words >= letters * 0.6 and digits <= len(value) * 0.2 and not _UNSPEAKABLE.search(value)
    )
    return not is_name and len(set(value)) >= min(8, len(value) * 0.6)


def _is_assigned(found: re.Match[bytes]) -> bool:
    word, about, quoted, bare = found.group("word", "about", "quoted", "bare")
    if _ABOUT_ONE.fullmatch(about.strip(b"_-")) or (bare and not _begins_a_line(found)):
        return False
    if _PLACE_IN_A_LIST.search(found.string[max(0, found.start() - 16) : found.start()]):
        return False
    value = quoted or bare
    if _SHORT_HEX.fullmatch(value):
        return False
    return _is_random(value, 8 if word.lower().startswith(b"pass") else 16)


_PLACE_IN_A_LIST = re.compile(
    rb"(?:next|page|pagination|continuation|starting|forward|backward|update|change|lock|sync|cancel|public_?key)[_-]?\Z",
    re.IGNORECASE,
)
_SHORT_HEX = re.compile(rb"[0-9a-f]{16,19}")


def _is_bearer(found: re.Match[bytes]) -> bool:
    return _is_random(found["value"], 20)


def _is_login(found: re.Match[bytes]) -> bool:
    return _begins_a_line(found) and _is_random(found["bare"], 8)


_LINE_BEGINS = re.compile(
    rb"[ \t-]*(?:(?:export|set|env|arg)[ \t]+)?[A-Za-z0-9_.-]*", re.IGNORECASE
)


def _begins_a_line(found: re.Match[bytes]) -> bool:
    begin = max(0, found.start() - 60)
    line = found.string[begin : found.start()].rpartition(b"\n")
    return (begin == 0 or bool(line[1])) and _LINE_BEGINS.fullmatch(line[2]) is not None


_NEEDLES = (
    b"passw",
    b"passphrase",
    b"secret",
    b"token",
    b"api",
    b"access",
    b"private",
    b"auth",
    b"credential",
)
_NAME = (
    rb"(?P<word>password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key"
    rb"|auth[_-]?key|credential)(?P<about>[A-Za-z0-9_-]{0,16})"
)
_SIGN = rb"\\?[\"'`]?\]?[ \t]{0,9}(?::[ ]?str[ ]?=|:=|=>|[:=])[ \t]{0,9}"
_QUOTED = rb"\\?[\"'`](?P<quoted>[^\s\"'`\\]{8,256}+)\\?[\"'`]"
_BARE = rb"(?P<bare>[^\s\"'`\\,;(){}\[\]<>$&|*]{8,256}+)[ \t]{0,9}\r?$"


def _rule(
    name: str, needles: str, pattern: bytes, genuine: Callable[[re.Match[bytes]], bool]
) -> Rule:
    compiled = re.compile(pattern, re.IGNORECASE | re.MULTILINE)
    return Rule(name, tuple(needles.encode().split()), compiled, genuine, ignores_case=True)


_BASE64 = rb"(?P<value>[A-Za-z0-9+/]{12,400}+)"
_OTHERS = (
    Rule("private_key", (b"-----BEGIN ",), re.compile(_KEY), _has_a_key),
    Rule("private_key", (b"LS0tLS1CRUdJTi",), re.compile(rb"[A-Za-z0-9+/]{100}"), _is_encoded_key),
    Rule(
        "url_with_password",
        (b"://",),
        re.compile(
            rb"://(?P<user>[^\s:/@'\"<>$%{}]{0,64}+):(?P<password>[^\s:/@'\"<>${}*]{3,128}+)@"
            rb"(?P<host>[A-Za-z0-9][A-Za-z0-9._-]{0,60})"
        ),
        _is_password_of_url,
    ),
    _rule("basic_auth", '"auth"', rb"\"auth\"[ ]?:[ ]?\"" + _BASE64 + rb"={0,2}\"", _is_basic),
    _rule("basic_auth", "basic", rb"basic[ ]" + _BASE64 + rb"={0,2}(?![A-Za-z0-9+/=])", _is_basic),
    _rule("basic_auth", "_auth", rb"_auth[ ]?=[ ]?\"?" + _BASE64, _is_basic),
    _rule("bearer", "bearer", rb"bearer[ ](?P<value>[A-Za-z0-9_.~+/-]{20,400}+)(?!=)", _is_bearer),
    _rule(
        "npmrc",
        ":_authtoken :_password",
        rb":_(?:authToken|password)[ ]?=[ ]?\"?(?P<value>[A-Za-z0-9+/=_-]{10,400})",
        is_filled_in,
    ),
    _rule(
        "netrc",
        "machine",
        rb"machine[ \t]{1,9}\S{1,200}+\s{1,20}+login[ \t]{1,9}\S{1,200}+\s{1,20}+"
        rb"password[ \t]{1,9}(?P<value>[^\s<>${}]{4,200})",
        _is_in_netrc,
    ),
    _rule(
        "login",
        "username",
        rb"username[ \t]{0,9}[:=][ \t]{0,9}\S{1,200}+\s{1,9}+password[ \t]{0,9}[:=][ \t]{0,9}"
        + _BARE,
        _is_login,
    ),
    _rule(
        "aws_secret_key",
        "secret",
        rb"secret_?access_?key"
        + _SIGN
        + rb"\\?[\"']?(?P<value>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        is_filled_in,
    ),
    Rule(
        "assigned_secret",
        _NEEDLES,
        re.compile(_NAME + _SIGN + rb"(?:" + _QUOTED + rb"|" + _BARE + rb")", re.I | re.M),
        _is_assigned,
        ignores_case=True,
    ),
)
RULES = (*TOKENS, *_OTHERS)
