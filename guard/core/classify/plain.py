"""Find errors in plain text: known closing sentences of agents, and error lines near the end."""

import re
from collections import deque

from guard.core.classify.errors import LONGEST_TEXT, ReportedError, error_meaning

_KEPT_LINES = 40
_LAST_LINES = 6
_LAST_ERRORS = 20
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_NOT_OURS = re.compile(r"\s{2}|\t|[>|#+*\"'`~]|[-•]\s|\d+[.)]\s|diff |commit [0-9a-f]{7}")
_FENCES = (b"```", b"~~~")

_RESET = (
    r"(?:\s*[·∙•|,.–—-]+\s*(?:resets?|your limit will reset|try again|upgrade|visit|to get|or)\b.*"
    r"|\|\d{10}|[.!]?)"
)
_MORE = r"(?:\s+[·∙•]\s.*|[.!]?)"
_HINT = re.compile(r"/[a-z-]+(?: or /[a-z-]+)? to \w")
"""A line that says what a person can do, below the sentence with the error."""
_KNOWN = re.compile(
    rf"you've (?:hit|reached) your (?:[\w'-]+ ){{0,4}}limit{_RESET}"
    rf"|(?:claude (?:ai )?)?(?:[\w-]+ ){{0,2}}(?:usage|session|weekly|opus|sonnet|hour)(?: \w+)? limit reached{_RESET}"
    rf"|(?:[\w-]+ ){{0,2}}spend(?:ing)? limit reached{_MORE}"
    rf"|you've hit your (?:[\w'-]+ ){{0,4}}budget{_MORE}"
    rf"|your (?:usage allocation has been disabled by your admin|group's usage limit is set to \$0){_MORE}"
    rf"|your org(?:anization)? is out of usage(?: credits)?{_MORE}"
    rf"|your seat type doesn't include (?:extra )?usage(?: credits)?{_MORE}"
    rf"|this service is disabled for your org{_MORE}"
    rf"|\d+-hour limit reached{_RESET}"
    rf"|you're (?:now )?out of (?:extra )?usage(?: credits)?{_RESET}"
    r"|(?:not logged in|invalid api key|oauth token (?:has )?(?:expired|revoked))\s*[·∙•.–—-]+\s*"
    r"(?:please (?:run|obtain)|fix external api key).*"
    r"|credit balance (?:is )?too low.{0,80}"
    r"|failed to authenticate(?:\. api error: 40[13]\b|: oauth token (?:has )?(?:expired|revoked)\b).*"
    r"|error: reached max(?:imum)?(?: number of)? turns(?: \(\d+\))?[.!]?"
    r"|request too large \(max .*"
    r"|prompt is too long",
    re.IGNORECASE,
)
_ERROR = re.compile(
    r"(?:\d{4}-\d\d-\d\dT\S{8,20}\s+)?"
    r"(?:[✕✗✘×■⚠❌]|\[?api error\b|(?:[\w.-]{1,40}: )?(?:fatal )?error(?:\[\w+\])?:|(?-i:ERROR)\b|[\w.]+(?:Error|Exception): "
    r"|failed to authenticate\b|authentication failed with provider\b|error when talking to\b"
    r"|attempt \d+ failed with status\b"
    r"|\{\s*\"(?:error\"\s*:|type\"\s*:\s*\"error\")"
    r"|fatal: |execution failed|model call failed|stream error|request failed|unexpected status|exceeded retry limit"
    r"|no conversation found|no rollout found|thread '\w+' panicked)",
    re.IGNORECASE,
)
_PREFIX = r"(?:\d{4}-\d\d-\d\d[T ]\S{8,20}\s+)?(?:\[[^\]]{1,40}\]:?\s*|[\w.@/-]{1,40}(?: [\w.@/-]{1,20}){0,2}:\s+){0,3}"
_HAPPENED = r"(?: (?:was|is|has been|have been))?(?: (?:exceeded|reached|exhausted|hit|used up))"
_STEPS = r"(?:turns|steps|iterations|tool calls)"
_AMOUNT = r"(?: \(\d+(?:/\d+)?\)| (?:for|of|per) (?:[\w'-]+ ?){1,3})?"
_NAMED = re.compile(
    rf"{_PREFIX}(?:"
    r"(?:(?:http|status|error|code)\S{0,10}\W{0,3}){0,3}(?:40[1238]|413|429|50[0234]|529)\b"
    r"(?:\W{0,3}(?:client error|server error|unauthorized|forbidden|payment required|request timeout|too many requests"
    r"|internal server error|bad gateway|service unavailable|gateway time-?out|overloaded)){0,2}"
    r"|(?:you (?:are|were|have been) )?(?:being )?rate.?limited"
    rf"|(?:[\w'-]+ ){{0,4}}(?:limits?|quota|budget){_AMOUNT}{_HAPPENED}"
    rf"|(?:you(?:'ve| have)? |(?:the )?(?:agent|session) )?(?:(?:has|have) )?"
    rf"(?:reached|exceeded|hit|exhausted|used up) (?:[\w'-]+ ){{0,5}}?"
    rf"(?:limits?|quota|budget|max(?:imum)?(?: number)?(?: of)?(?: [\w-]+)? {_STEPS})"
    rf"|too many (?:requests|{_STEPS})|(?:please )?slow down\b.{{0,10}}too many requests"
    r"|you(?:'re| are) sending (?:too many requests|requests too \w+)"
    r"|(?:your |the )?request (?:was |has been )?(?:rejected|refused|denied|blocked)"
    r" (?:due to|because of) rate.?limit(?:ing|s)?"
    rf"|max(?:imum)?(?: number of)?(?:[ _][\w-]+)?[ _]{_STEPS}(?: \(\d+\))?{_HAPPENED}"
    r"|rate.?limit(?: error)?|resource.?(?:has been )?exhausted"
    r"|(?:[\w'-]+ ){0,3}(?:is )?(?:currently |temporarily )?(?:overloaded|at capacity)"
    r"|(?:[\w'-]+ ){0,2}service (?:is )?(?:currently |temporarily )?unavailable|bad gateway|gateway time-?out"
    r"|connection (?:error|refused|reset|closed|timed? ?out|aborted|lost|failed)|network error|fetch failed|socket hang up"
    r"|(?:request|stream) timed? ?out|stream disconnected|upstream connect error"
    r"|(?:[\w'-]+ ){0,2}throttled"
    r"|(?:connect |read |write |getaddrinfo |request failed: )?E(?:CONNRESET|CONNREFUSED|CONNABORTED|TIMEDOUT|NOTFOUND"
    r"|AI_AGAIN|PIPE|NETUNREACH|HOSTUNREACH)\b(?: [\w.:-]+)?"
    rf"|(?:the agent )?(?:stopped|ended|gave up) after \d+ {_STEPS}"
    r"|context.?(?:length|window|limit)(?:.?(?:is |was |has been )?(?:exceeded|reached|too long))"
    r"|this model's maximum context length is \d+ tokens"
    r"|(?:your )?(?:insufficient )?credit balance(?: is)?(?: too low)?|insufficient (?:credits?|funds|balance)"
    r"|(?:you are )?not logged in|invalid api key|unauthori[sz]ed|authentication (?:failed|required|error)"
    r")(?=\s*(?:\Z|[.,;:!(|·∙•–—{-]|(?:retry|try|please|wait|resets?|for|on|before|or|by peer|to access)\b))",
    re.IGNORECASE,
)
"""A line that begins by naming a failure, with a stop after the name. It counts only beside a bad exit code."""


class Tail:
    """The last lines of a text, and which of them are in a fenced block."""

    def __init__(self) -> None:
        self._lines: deque[tuple[bytes, int]] = deque(maxlen=_KEPT_LINES)
        self._fences = 0

    def add(self, line: bytes) -> None:
        stripped = line.strip()
        if stripped:
            self._fences += stripped.startswith(_FENCES)
            self._lines.append((line[: 2 * LONGEST_TEXT], self._fences))

    @property
    def is_empty(self) -> bool:
        return not self._lines

    @property
    def is_fenced(self) -> bool:
        return self._fences % 2 == 1

    @property
    def is_announcing(self) -> bool:
        # After a colon the next line may be a quotation.
        return bool(self._lines) and self._lines[-1][0].rstrip().endswith(b":")

    @property
    def last_line(self) -> str:
        """Return the last line; empty if it is in a fenced block."""
        return "" if self.is_empty or self.is_fenced else _visible_text(self._lines[-1][0])

    @property
    def text(self) -> str:
        return "\n".join(_visible_text(line) for line, _ in self._lines)

    def own_lines(self, *, cut_off: bool) -> list[str]:
        """Return the lines that the program itself wrote; if the text was cut off, an unclosed fence hides none."""
        unclosed = self._fences if cut_off and self._fences % 2 else -1
        shown = [
            _visible_text(line)
            for line, fences in self._lines
            if fences % 2 == 0 or fences == unclosed
        ]
        return [text for text in shown if text.strip() and not _NOT_OURS.match(text)]


def _visible_text(line: bytes) -> str:
    # The line as a terminal shows it: without escapes, and without text that a carriage return overwrites.
    text = _ESCAPES.sub("", line.decode(errors="replace")).replace("\x00", "").rstrip()
    return text.rpartition("\r")[2][:LONGEST_TEXT]


def error_lines(data: bytes) -> list[str]:
    """Return the last lines of standard error that the program itself wrote."""
    tail = Tail()
    for line in data.split(b"\n"):
        tail.add(line)
    return tail.own_lines(cut_off=True)[-_LAST_ERRORS:]


# Prose about limits and errors is no error. So a line counts only if it begins as one: with a sentence that the programs are
# known to print, with an error prefix, or with the name of the failure. After a good exit only the very last line counts, and
# only if it is a whole known sentence. Indented, quoted, listed and fenced lines never count.
def find_error(tail: Tail, errors: list[str], exit_code: int | None) -> ReportedError | None:
    """Return the error that the last lines of both outputs report, or None."""
    last = tail.own_lines(cut_off=bool(exit_code))[-_LAST_LINES:]
    while last and _HINT.match(last[-1]):
        last.pop()
    if not exit_code:
        # Beside words on standard output, what a well-ended program says on standard error is no failure.
        final = last[-1:] + (errors[-1:] if exit_code is None or tail.is_empty else [])
        return next(
            (found for line in final if is_known_failure(line) and (found := _known_error(line))),
            None,
        )
    own = [line for line in [*reversed(errors), *reversed(last)] if _is_error(line)]
    named = next((found for line in own if (found := _known_error(line))), None)
    unnamed = own[:1] or errors[-1:]
    return named or (ReportedError("crash", "", unnamed[0]) if unnamed else None)


def is_known_failure(line: str) -> bool:
    """Tell whether the line is a whole sentence with which a program reports that it cannot continue."""
    return _KNOWN.fullmatch(_straighten_quotes(line)) is not None


def _is_error(line: str) -> bool:
    text = _straighten_quotes(line)
    return bool(_ERROR.match(text) or _KNOWN.match(text) or _NAMED.match(text))


def _straighten_quotes(line: str) -> str:
    return line.strip().replace("’", "'")


def _known_error(line: str) -> ReportedError | None:
    meaning = error_meaning(line)
    return ReportedError(meaning.outcome, meaning.reason, line) if meaning else None
