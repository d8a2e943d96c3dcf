"""Find the meaning of an error by its HTTP status, its code word or its text."""

import re
from dataclasses import dataclass
from typing import NamedTuple

from guard.core.classify.outcome import Outcome

LONGEST_TEXT = 4000


class ErrorMeaning(NamedTuple):
    outcome: Outcome
    reason: str


@dataclass(frozen=True)
class ReportedError:
    """An error as the agent's program reported it."""

    outcome: Outcome
    reason: str
    text: str = ""
    resets: tuple[float, ...] = ()
    """When the limit ends, in seconds since the epoch, if a field of the event has it."""
    delay: float | None = None
    """In how many seconds to try again, if a field of the event has it."""


_AUTH = ErrorMeaning("auth", "not_logged_in")
_BILLING = ErrorMeaning("auth", "billing")
_LIMIT = ErrorMeaning("limited", "usage_limit")
_RATE = ErrorMeaning("limited", "rate_limit")
_OVERLOADED = ErrorMeaning("transient", "overloaded")
_SERVER = ErrorMeaning("crash", "server_error")
_CONTEXT = ErrorMeaning("context", "prompt_too_long")
_TURNS = ErrorMeaning("turn_limit", "max_turns")
_BUDGET = ErrorMeaning("budget", "budget_exhausted")

_SURE_STATUSES = {
    401: _AUTH,
    408: ErrorMeaning("transient", "http_408"),
    502: ErrorMeaning("transient", "http_502"),
    503: ErrorMeaning("transient", "http_503"),
    504: ErrorMeaning("transient", "http_504"),
    529: _OVERLOADED,
}
_STATUSES = {402: _BILLING, 403: _AUTH, 413: _CONTEXT, 429: _RATE, 500: _SERVER}

_CODE_WORDS = {
    _BILLING: "account_on_hold billing_error insufficient_quota quota quota_exceeded",
    _AUTH: (
        "authentication authentication_error authentication_failed authorization "
        "cloud_credential_error fatalauthenticationerror invalid_grant "
        "oauth_org_not_allowed permission_error providerautherror verification_required"
    ),
    _CONTEXT: "context_length_exceeded context_limit contextoverflowerror prompt_too_long",
    _BUDGET: "error_max_budget_usd budget_exhausted",
    _TURNS: "error_max_turns fatalturnlimitederror max_turns",
    ErrorMeaning("denied", "untrusted_folder"): "fataluntrustedworkspaceerror",
    _OVERLOADED: "overloaded overloaded_error",
    _RATE: "rate_limit rate_limit_error",
    ErrorMeaning("transient", "timeout"): "timeout_error",
    _LIMIT: "usage_limit_reached",
}
CODES = {word: meaning for meaning, words in _CODE_WORDS.items() for word in words.split()}
"""The programs' own code words for errors, in lower case."""


def _make_rule(meaning: ErrorMeaning, *patterns: str) -> tuple[ErrorMeaning, re.Pattern[str]]:
    return meaning, re.compile("|".join(patterns), re.IGNORECASE)


_KIND = r"(?:usage|session|weekly|daily|hourly|monthly|spend(?:ing)?|\d+.?hours?|opus|sonnet|haiku|requests?)"
_RULES = (
    _make_rule(
        _OVERLOADED, "not your usage limit", "overloaded", r"\bat capacity\b", "server is busy"
    ),
    _make_rule(
        _CONTEXT,
        r"(?:prompt|input|request|conversation|context) is too (?:long|large)",
        r"\brequest too large \(max\b",
        "ran out of room",
        r"maximum context length|context.?(?:length|window|limit).{0,40}(?:exceed|reached)",
        r"exceed.{0,40}context.?(?:length|window|limit)",
    ),
    _make_rule(
        _TURNS,
        r"max(?:imum)?(?: number)?(?: of)?(?: (?:session|agent|conversation|\d+))? (?:turns|steps|iterations)",
        r"\btoo many (?:turns|steps|iterations)\b",
        r"\b(?:turn|step|iteration)s?[ -]limit",
        r"max(?:imum)?(?: number of)? tool calls",
        r"\bmax_(?:turns|steps|iterations)\b",
        r"\b(?:stopped|ended|gave up) after \d+ (?:turns|steps|iterations)\b",
    ),
    _make_rule(
        _BILLING,
        r"\busage allocation has been disabled\b",
        r"\busage limit is set to \$0",
        r"\borg(?:ani[sz]ation)? is out of usage\b",
        r"\bseat type doesn['’]t include\b",
        r"\bservice is disabled for your org",
    ),
    _make_rule(_BUDGET, r"\bcost limit\b"),
    _make_rule(_RATE, r"rate.?limits? (?:was |is |has been )?(?:exceeded|reached|hit)"),
    _make_rule(
        _LIMIT,
        rf"\b(?:{_KIND}|token)\W+limits?(?: \(\d+\)| (?:for|of|per) [\w ]{{1,30}}?)?\W{{0,3}}"
        r"(?:has been |have been |was |is )?(?:reached|exceeded|hit\b)",
        r"\b(?:hit|reached|exceeded) (?:your|the|a|an|its|our) (?:[\w'’-]+ ){0,4}limits?\b",
        r"\blimit reached\b",
        r"\bout of (?:extra )?usage\b",
        r"\bhit your (?:[\w'’-]+ ){0,4}budget\b",
        r"exhausted your (?:daily )?(?:capacity|quota)",
        r"quota will reset",
        "usage_limit_reached",
    ),
    _make_rule(
        _BUDGET,
        r"max(?:imum)? budget",
        r"\bbudget\b.{0,30}\b(?:exhausted|exceeded|reached|used up)",
        r"\bexceeded\b.{0,30}\bbudget\b",
    ),
    _make_rule(
        _BILLING,
        r"credit balance",
        "insufficient_quota",
        r"insufficient (?:credit|fund|balance|quota)",
        r"payment required",
        r"\bbilling\b",
        r"(?:have|has) no quota",
        r"quota exceeded\W+(?:upgrade|check)",
    ),
    _make_rule(
        _AUTH,
        r"not logged in|log ?in again|please (?:run )?/?log ?in|/login\b|sign in again",
        r"(?:invalid|incorrect|missing|expired|no)\W+(?:api.?key|auth\w*|bearer|access|oauth)(?:.?token|.?key)?\b",
        r"api key (?:is )?(?:not|missing|invalid|expired)",
        r"unauthori[sz]ed|authentication (?:failed|error|required|credentials)|authentication_error",
        r"token (?:has |is |was )?(?:been )?(?:expired|revoked|invalid)",
        r"could not resolve authentication|without authentication|not authenticated",
        r"(?:organi[sz]ation|account|subscription) (?:has been |is |was |has )?(?:disabled|suspended)",
    ),
)
_LATE_RULES = (
    _make_rule(
        ErrorMeaning("transient", "connection"),
        r"\bE(?:CONNRESET|CONNREFUSED|CONNABORTED|TIMEDOUT|NOTFOUND|AI_AGAIN|PIPE|NETUNREACH|HOSTUNREACH)\b",
        r"socket hang up|fetch failed|network (?:error|is unreachable|connection)",
        r"connection (?:error|refused|reset|closed|timed? ?out|aborted|lost|failed)",
        r"(?:request|stream|server|gateway|operation) timed? ?out",
        r"stream disconnected|upstream connect error|error sending request|could not resolve host",
        r"temporar(?:y|ily) unavailable|service unavailable|bad gateway",
    ),
    _make_rule(
        _RATE,
        r"rate.?limit",
        r"too many requests",
        r"resource.?(?:has been )?exhausted",
        r"quota",
        r"\bthrottl(?:ed|ing)|\brequests too (?:quickly|fast|frequently|often)\b",
    ),
    _make_rule(_AUTH, r"\bforbidden\b"),
    _make_rule(_SERVER, "internal server error"),
)
_GOOGLE = re.compile(r"\bai\.(?:google\.)?dev\b|googleapis|RESOURCE.?EXHAUSTED|\bretry\b", re.I)
_STATUS = re.compile(
    r"(?:\bstatus(?: code)?|\bHTTP(?:/\d(?:\.\d)?)?|(?:api|http) error|error code|execution failed|\"code\")\W{1,5}([45]\d\d)\b"
    r"|\(([45]\d\d)\)"
    r"|\b([45]\d\d) (?:Unauthorized|Payment|Forbidden|Too Many|Internal Server|Bad Gateway|Service Un|Gateway Time)",
    re.IGNORECASE,
)


# Callers pass only what the agent's program itself reported (a result, an error event, an error line), never a tool's output.
#
# An account without credit is `auth` and not `limited`, because waiting does not help: a person has to pay. A plain 500 is
# `crash` and not `transient`: it may happen every time, and then its fingerprint has to count.
def error_meaning(text: str, status: int | None = None, *codes: object) -> ErrorMeaning | None:
    """Return the meaning of an error; None if neither status, code words nor text is known."""
    text = text[:LONGEST_TEXT]
    status = status or _find_status(text)
    if status in _SURE_STATUSES:
        return _SURE_STATUSES[status]
    by_text = _first_match(_RULES, text)
    if by_text is _BILLING and (status == 429 or status is None) and _GOOGLE.search(text):
        by_text = _LIMIT
    by_code = _meaning_by_code(codes)
    is_vague = by_text and (by_code is _RATE or (by_code is _LIMIT and by_text is _BILLING))
    if by_code and not is_vague:
        return by_code
    return by_text or _STATUSES.get(status or 0) or _first_match(_LATE_RULES, text)


def _meaning_by_code(codes: tuple[object, ...]) -> ErrorMeaning | None:
    known = (CODES.get(code.lower()) for code in codes if isinstance(code, str))
    return next((meaning for meaning in known if meaning), None)


def _find_status(text: str) -> int | None:
    found = _STATUS.search(text)
    return int(found[1] or found[2] or found[3]) if found else None


def _first_match(
    rules: tuple[tuple[ErrorMeaning, re.Pattern[str]], ...], text: str
) -> ErrorMeaning | None:
    return next((meaning for meaning, pattern in rules if pattern.search(text)), None)


def make_error(
    text: str,
    status: int | None = None,
    *codes: object,
    otherwise: str = "error",
    resets: tuple[float, ...] = (),
    delay: float | None = None,
) -> ReportedError:
    """Return the error with its meaning; if nothing in it is known, a crash with the word `otherwise` as its reason."""
    word = otherwise[:60] if otherwise.isidentifier() else "error"
    outcome, reason = error_meaning(text, status, *codes) or ErrorMeaning("crash", word)
    return ReportedError(outcome, reason, text[:LONGEST_TEXT], resets, delay)
