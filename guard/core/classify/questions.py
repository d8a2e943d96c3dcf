"""Whether the last thing that an agent said is a question to a person, or a plea for permission.

A question that is not one stops a run, one that is missed costs a probe: in doubt it is none. Courtesies and offers at the end
of finished work are none, and neither is an offer to commit, because saving work is what guard does without asking.
"""

import re

_TAIL = 3000
_ITEM = re.compile(r"\s*(?:[-*•]|\d{1,2}[.)]|\(?[a-zA-Z][.)])\s+\S")
_SENTENCES = re.compile(r"(?<=[.!?])[\"'*_)\]]*\s+")
_MARKUP = re.compile(r"[*_`\"'”’)\]]+\Z|\A[*_`\"'“#\s-]+")
_DECISION = re.compile(
    r"\b(?:should|shall|may|can|must) (?:i|we)\b"
    r"|\b(?:do|would|could|can|will|are|did) you\b"
    r"|\b(?:which|what|where|who|when|how)\b.{0,160}\b(?:you|your|should|i)\b"
    r"|\Awhich (?:one|of|option|approach|version|way|file|branch)\b"
    r"|\b(?:is|are) (?:it|this|that|these|those) (?:ok|okay|alright|fine|correct|right|acceptable|what you)\b"
    r"|\b(?:ok|okay|ready) (?:to|for me to) (?:proceed|continue|go)\b",
    re.IGNORECASE,
)
_DEMAND = re.compile(
    r"\A(?:[^,]{1,60}, )?(?:so )?(?:"
    r"please (?:confirm|provide|choose|pick|select|clarify|specify|advise|decide|approve|answer|tell me|reply)\b"
    r"|(?:please )?let me know (?:which|whether|how|what|where|when)\b"
    r"|i (?:still )?need (?:your|you to)\b"
    r"|(?:i am |i'm |we are )?(?:now |still )?(?:waiting|awaiting)(?: for)? your\b)",
    re.IGNORECASE,
)
_COURTESY = re.compile(
    r"\b(?:any|some)thing (?:else|more|further)\b|\bany(?: other| further| more)? (?:questions?|changes|feedback)\b"
    r"|\blet me know if\b|\bfeel free\b|\bhappy to\b|\bif you(?:'d| would)? (?:like|want|need|prefer)\b"
    r"|\b(?:also|as well|additionally|further|next)\b"
    r"|\b(?:make sense|sounds? good|look good|curious|wonder)"
    r"|\bcommit(?:\?| (?:it|this|that|these|those|them|the|my|all|now|and)\b)",
    re.IGNORECASE,
)
_PERMISSION = re.compile(
    r"\b(?:needs?|requires?|request(?:ed)?|grant(?:ed)?|gives?|without|missing|lack|denied|wait(?:ing)? for|asked for)\b"
    r"[^.\n]{0,60}\b(?:permissions?|approval|authori[sz]ation)\b"
    r"|\bpermissions?\b[^.\n]{0,40}\b(?:denied|required|needed|granted|missing|refused)\b"
    r"|\b(?:please|you (?:can|could|must|need to|have to)) (?:approve|allow|enable|unblock|grant)\b",
    re.IGNORECASE,
)


def asks(message: str) -> bool:
    """Whether the message ends by asking a person for a decision."""
    last = _last_sentence(message)
    if not last or _COURTESY.search(last):
        return False
    if last.endswith(("?", "？")):
        return _DECISION.search(last) is not None
    return _DEMAND.search(last) is not None


def pleads(message: str) -> bool:
    """Whether the end of the message speaks of permissions that are missing."""
    return _PERMISSION.search(message[-_TAIL:]) is not None


def _last_sentence(message: str) -> str:
    """The last sentence in the agent's own words, before a list of choices; none if the end is code or a quotation."""
    lines = [line for line in message[-_TAIL:].splitlines() if line.strip()]
    choices = 0
    while lines and choices < 12 and _ITEM.match(lines[-1]):
        choices += 1
        lines.pop()
    if not lines or lines[-1].lstrip().startswith((">", "```", "~~~", "|")):
        return ""
    last = _SENTENCES.split(lines[-1].strip())[-1]
    if choices and not last.rstrip("*_ ").endswith(("?", ":")):
        return ""
    return _MARKUP.sub("", last.rstrip(": ") if choices else last).strip()
