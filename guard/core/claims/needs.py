"""Find out whether a message of completion asks a person, or says that the agent could not do its work."""

import re
from typing import Literal

from guard.core.claims.evidence import ClaimEvidence

Need = Literal["question", "unable"]
_UNABLE = re.compile(
    r"\b(?:unable|not able) to\b|\b(?:i|we) (?:could(?:n't| not)|can(?:'t|not| not)|failed to|(?:did not|didn't) manage)\b"
    r"|\b(?:cannot|can't|could not|couldn't) (?:be (?:done|completed|finished)|complete|finish|proceed|continue|go on)\b"
    r"|\b(?:i|we) gave up\b|\b(?:i am|i'm|we are|we're|am|is|was) (?:blocked|stuck)\b|\bnot possible to\b"
    r"|\bimpossible to\b|\bfailed to (?:complete|finish|implement|fix|build|do)\b",
    re.IGNORECASE,
)


def needs_of(evidence: ClaimEvidence) -> Need | None:
    """Return what the message needs a person for; where no work is done, any question at its end counts."""
    text = evidence.message.replace("\u2019", "'").rstrip("\"'*_)] \n")
    if evidence.asks or (not evidence.has_work and text.endswith("?")):
        return "question"
    return "unable" if _UNABLE.search(text) else None
