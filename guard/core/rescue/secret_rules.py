"""The rules for secrets: tokens that have a fixed prefix, and values that only their surroundings give away.

Each rule begins with fixed text, which is searched first, at the speed of a memory search; it repeats only bounded classes,
so that matching stays linear whatever a file holds. The match alone decides whether it is a placeholder.
"""

import re
from base64 import b64decode
from collections.abc import Callable
from typing import NamedTuple


class _Pattern:
    """A pattern that is compiled when it is first tried: few files have the fixed text of more than a few rules."""

    def __init__(self, text: bytes, flags: int = 0) -> None:
        self._given = (text, flags)
        self._compiled: re.Pattern[bytes] | None = None

    def match(self, text: bytes, at: int) -> re.Match[bytes] | None:
        if self._compiled is None:
            self._compiled = re.compile(*self._given)
        return self._compiled.match(text, at)


class Rule(NamedTuple):
    """One kind of secret. The value is the group 1 of the pattern, or all of it."""

    name: str
    needles: tuple[bytes, ...]
    """One of these is in every file that has a match, in lower case where the rule ignores case."""
    pattern: _Pattern
    genuine: Callable[[re.Match[bytes]], bool]
    ignores_case: bool = False


_HOLDERS = re.compile(
    rb"xxxx|\.\.\.|\*\*\*|example|place-?_?holder|change-?_?me|redacted|dummy|your[-_]|[-_]here|^my[-_]"
    rb"|fake[-_]|[-_]fake|not[-_]a?[-_]?real|for[-_]test|test[-_]?key|test[-_]?token|insert[-_]|replace[-_]?me"
    rb"|1234567|abcdefg|00000000|deadbeef"
    rb"|eyJzdWIiOiIxMjM0NTY3ODkwIi",  # {"sub":"1234567890", as in the token that every manual shows.
    re.IGNORECASE,
)


def is_placeholder(value: bytes) -> bool:
    return _HOLDERS.search(value) is not None or len(set(value[-12:])) <= 2


def is_filled_in(found: re.Match[bytes]) -> bool:
    return not is_placeholder(found[0])


_URL = rb"[A-Za-z0-9_-]"
_ALNUM = rb"[A-Za-z0-9]"
_HEX = rb"[0-9a-f]"
_END = rb"(?![A-Za-z0-9_-])"


def _token(name: str, start: str, rest: bytes) -> Rule:
    pattern = _Pattern(rb"(?<![A-Za-z0-9_-])" + re.escape(start.encode()) + rest)
    return Rule(name, (start.encode(),), pattern, is_filled_in)


TOKENS = (
    _token("anthropic", "sk-ant-", _URL + rb"{24,256}"),
    _token("openai", "sk-", _ALNUM + rb"{20}T3BlbkFJ" + _ALNUM + rb"{20}"),
    _token("openai_project", "sk-proj-", _URL + rb"{24,256}"),
    _token("openai_project", "sk-svcacct-", _URL + rb"{24,256}"),
    _token("openai_project", "sk-admin-", _URL + rb"{24,256}"),
    _token("openrouter", "sk-or-v1-", _HEX + rb"{64}"),
    _token("groq", "gsk_", _ALNUM + rb"{50,60}" + _END),
    _token("xai", "xai-", _ALNUM + rb"{70,90}" + _END),
    _token("replicate", "r8_", _ALNUM + rb"{37}" + _END),
    _token("hugging_face", "hf_", _ALNUM + rb"{34}" + _END),
    *(_token("github", f"gh{kind}_", _ALNUM + rb"{36,255}") for kind in "pousr"),
    _token("github_fine_grained", "github_pat_", rb"[A-Za-z0-9_]{60,255}"),
    _token("gitlab", "glpat-", rb"[A-Za-z0-9_.-]{20,300}"),
    _token("gitlab", "glrt-", rb"[A-Za-z0-9_.-]{20,300}"),
    _token("gitlab", "gldt-", _URL + rb"{20,64}"),
    _token("gitlab", "glptt-", _HEX + rb"{40}"),
    _token("aws_access_key", "AKIA", rb"[A-Z2-7]{16}" + _END),
    _token("aws_session_key", "ASIA", rb"[A-Z2-7]{16}" + _END),
    _token("slack", "xox", rb"[abeoprs]-[0-9A-Za-z-]{10,250}"),
    _token("slack", "xapp-", rb"[0-9]-[A-Z0-9]{8,16}-[0-9]{8,16}-[0-9a-z]{40,80}"),
    Rule(
        "slack_webhook",
        (b"hooks.slack.com",),
        _Pattern(rb"hooks\.slack\.com/services/T[A-Z0-9]{8,12}/B[A-Z0-9]{8,12}/[A-Za-z0-9]{3,32}"),
        is_filled_in,
    ),
    _token("google", "AIza", _URL + rb"{35}" + _END),
    _token("google_oauth", "GOCSPX-", _URL + rb"{28}" + _END),
    _token("npm", "npm_", _ALNUM + rb"{36}" + _END),
    _token("pypi", "pypi-AgEIcHlwaS5vcmc", _URL + rb"{50,1000}"),
    _token("rubygems", "rubygems_", _HEX + rb"{48}" + _END),
    _token("docker", "dckr_pat_", _URL + rb"{27}"),
    _token("stripe", "sk_live_", _ALNUM + rb"{20,247}"),
    _token("stripe", "rk_live_", _ALNUM + rb"{20,247}"),
    _token("stripe_webhook", "whsec_", rb"[A-Za-z0-9+/]{32,64}"),
    _token("sendgrid", "SG.", _URL + rb"{22}\." + _URL + rb"{43}" + _END),
    _token("twilio", "SK", _HEX + rb"{32}" + _END),
    _token("mailgun", "key-", _HEX + rb"{32}" + _END),
    Rule(
        "telegram",
        (b":AA",),
        _Pattern(rb"(?<=[0-9]{8}):AA" + _URL + rb"{33}" + _END),
        is_filled_in,
    ),
    _token("digitalocean", "dop_v1_", _HEX + rb"{64}"),
    _token("digitalocean", "doo_v1_", _HEX + rb"{64}"),
    _token("digitalocean", "dor_v1_", _HEX + rb"{64}"),
    _token("databricks", "dapi", _HEX + rb"{32}" + _END),
    *(
        _token("shopify", f"shp{kind}_", rb"[0-9a-fA-F]{32}" + _END)
        for kind in ("at", "ca", "pa", "ss")
    ),
    _token("linear", "lin_api_", _ALNUM + rb"{40}" + _END),
    _token("notion", "ntn_", _ALNUM + rb"{40,50}" + _END),
    _token("grafana", "glsa_", _ALNUM + rb"{32}_" + rb"[0-9a-fA-F]{8}" + _END),
    _token("vault", "hvs.", _URL + rb"{24,200}"),
    Rule(
        "terraform",
        (b".atlasv1.",),
        _Pattern(rb"(?<=[A-Za-z0-9]{14})\.atlasv1\.[A-Za-z0-9_=-]{60,70}"),
        is_filled_in,
    ),
    *(
        _token("doppler", f"dp.{kind}.", _ALNUM + rb"{40,44}" + _END)
        for kind in ("pt", "st", "ct", "sa")
    ),
    _token("sentry", "sntryu_", _HEX + rb"{64}"),
    _token("sentry", "sntrys_", rb"[A-Za-z0-9+/=_]{60,300}"),
    _token("supabase", "sbp_", _HEX + rb"{40}" + _END),
    _token("planetscale", "pscale_tkn_", rb"[A-Za-z0-9_=.-]{32,64}"),
    _token("planetscale", "pscale_pw_", rb"[A-Za-z0-9_=.-]{32,64}"),
    _token("atlassian", "ATATT3xFfG", _URL + rb"{60,300}"),
    _token("new_relic", "NRAK-", rb"[A-Z0-9]{27}" + _END),
    _token("postman", "PMAK-", _HEX + rb"{24}-" + _HEX + rb"{34}" + _END),
    _token("age", "AGE-SECRET-KEY-1", rb"[0-9A-Z]{58}" + _END),
    Rule("azure", (b"AccountKey=",), _Pattern(rb"AccountKey=[A-Za-z0-9+/]{86}=="), is_filled_in),
    Rule(
        "azure",
        (b"SharedAccessKey=",),
        _Pattern(rb"SharedAccessKey=[A-Za-z0-9+/]{43}="),
        is_filled_in,
    ),
    _token(
        "jwt", "eyJ", _URL + rb"{10,2000}+\.eyJ" + _URL + rb"{10,4000}+\." + _URL + rb"{20,1000}"
    ),
)


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
    given = _Pattern(pattern, re.IGNORECASE | re.MULTILINE)
    return Rule(name, tuple(needles.encode().split()), given, genuine, ignores_case=True)


_BASE64 = rb"(?P<value>[A-Za-z0-9+/]{12,400}+)"
_OTHERS = (
    Rule("private_key", (b"-----BEGIN ",), _Pattern(_KEY), _has_a_key),
    Rule("private_key", (b"LS0tLS1CRUdJTi",), _Pattern(rb"[A-Za-z0-9+/]{100}"), _is_encoded_key),
    Rule(
        "url_with_password",
        (b"://",),
        _Pattern(
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
        _Pattern(_NAME + _SIGN + rb"(?:" + _QUOTED + rb"|" + _BARE + rb")", re.I | re.M),
        _is_assigned,
        ignores_case=True,
    ),
)
RULES = (*TOKENS, *_OTHERS)
