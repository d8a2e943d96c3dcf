"""The words in which a verdict is shown to people."""

from guard.core.base.text import escape


def status_word(status: str) -> str:
    """Return the word for a status: a `timeout` reads "stalled", because no clock need have run out."""
    return "stalled" if status == "timeout" else status


def verdict_line(status: str, reason: str, detail: str) -> str:
    """Return a verdict as one line without control characters, which says nothing twice."""
    word = status_word(status)
    line = word if reason in ("", status) else f"{word}: {escape(reason)}"
    return f"{line} ({escape(detail)})" if detail not in ("", reason, status) else line
