"""Secrets that tell by themselves what they are: each rule begins with fixed text and repeats only bounded classes.

The fixed text is looked for first, at the speed of a memory search, and bounded repeats keep the rest linear, whatever a
file holds. What makes a match a placeholder is decided on the match alone.
"""

import re
from collections.abc import Callable
from typing import NamedTuple


class Rule(NamedTuple):
    """One kind of secret. The value is the group 1 of the pattern, or all of it."""

    name: str
    needles: tuple[bytes, ...]
    """One of these is in every file that has a match, in lower case where the rule ignores case."""
    pattern: re.Pattern[bytes]
    genuine: Callable[[re.Match[bytes]], bool]
    ignores_case: bool = False


_HOLDERS = re.compile(
    rb"xxxx|\.\.\.|\*\*\*|example|place-?_?holder|change-?_?me|redacted|dummy|your[-_]|[-_]here|^my[-_]"
    rb"|fake[-_]|[-_]fake|not[-_]a?[-_]?real|for[-_]test|test[-_]?key|test[-_]?token|insert[-_]|replace[-_]?me"
    rb"|1234567|abcdefg|00000000|deadbeef",
    re.IGNORECASE,
)


def is_placeholder(value: bytes) -> bool:
    """Whether it only shows where a secret belongs."""
    return _HOLDERS.search(value) is not None or len(set(value[-12:])) <= 2


def is_filled_in(found: re.Match[bytes]) -> bool:
    """Whether the match is more than a placeholder."""
    return not is_placeholder(found[0])


_URL = rb"[A-Za-z0-9_-]"
_ALNUM = rb"[A-Za-z0-9]"
_HEX = rb"[0-9a-f]"
_END = rb"(?![A-Za-z0-9_-])"


def _token(name: str, start: str, rest: bytes) -> Rule:
    pattern = re.compile(rb"(?<![A-Za-z0-9_-])" + re.escape(start.encode()) + rest)
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
        re.compile(
            rb"hooks\.slack\.com/services/T[A-Z0-9]{8,12}/B[A-Z0-9]{8,12}/[A-Za-z0-9]{3,32}"
        ),
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
        re.compile(rb"(?<=[0-9]{8}):AA" + _URL + rb"{33}" + _END),
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
        re.compile(rb"(?<=[A-Za-z0-9]{14})\.atlasv1\.[A-Za-z0-9_=-]{60,70}"),
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
    Rule(
        "azure",
        (b"AccountKey=",),
        re.compile(rb"AccountKey=[A-Za-z0-9+/]{86}=="),
        is_filled_in,
    ),
    Rule(
        "azure",
        (b"SharedAccessKey=",),
        re.compile(rb"SharedAccessKey=[A-Za-z0-9+/]{43}="),
        is_filled_in,
    ),
    _token(
        "jwt", "eyJ", _URL + rb"{10,2000}+\.eyJ" + _URL + rb"{10,4000}+\." + _URL + rb"{20,1000}"
    ),
)
