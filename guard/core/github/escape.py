"""Make text from outside safe for GitHub's workflow commands and output files."""

from collections.abc import Mapping

from guard.core.base.text import escape, utf8_text


def command(name: str, message: str, **properties: str | int) -> str:
    """Return a workflow command in which neither message nor property can begin another command."""
    listed = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::{name}{' ' if listed else ''}{listed}::{_data(message)}"


def _data(text: str) -> str:
    return escape(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def stop_commands(token: str) -> str:
    return f"::stop-commands::{token}"


def resume_commands(token: str) -> str:
    # The command needs its own line, and the output before it may not end with a newline.
    return f"\n::{token}::"


def output_file(values: Mapping[str, str], delimiter: str) -> str:
    """Return the outputs of a step in order; the last of a name counts, so deciding outputs come last."""
    if any(delimiter in text for text in values.values()):
        raise ValueError("a value contains the delimiter")
    return "".join(
        f"{name}<<{delimiter}\n{utf8_text(text)}\n{delimiter}\n" for name, text in values.items()
    )
