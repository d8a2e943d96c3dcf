"""Patterns of files, as the settings have them: relative to a work tree, separated by `;`, with the ids left open."""

PLACES = ("{agent}", "{task}")
NAME_ENDS = "\0"
"""In a filled pattern: the name before it does not go on, so that `{agent}*` of a1 does not fit what a10 wrote."""


def split(text: str) -> tuple[str, ...]:
    """The single patterns."""
    return tuple(part.strip() for part in text.split(";") if part.strip())


def checked_patterns(text: str) -> str:
    """The same text; a ValueError if a pattern could lead out of the work tree, or has a place that nothing fills."""
    for pattern in split(text):
        parts = pattern.split("/")
        if (
            pattern.startswith("/")
            or ".." in parts
            or "" in parts
            or "." in parts
            or "\0" in pattern
        ):
            raise ValueError(f"{pattern!r} is no path below the work tree")
        if "**" in pattern:
            raise ValueError(f"{pattern!r}: `**` is not supported; name each level with `*`")
        rest = pattern
        for place in PLACES:
            rest = rest.replace(place, "")
        if "{" in rest or "}" in rest:
            raise ValueError(f"{pattern!r}: only {' and '.join(PLACES)} can stand in braces")
    return text


def filled(text: str, agent: str, task: str) -> tuple[tuple[str, ...], ...]:
    """The levels of each pattern, with the ids in their places."""
    for place, name in zip(PLACES, (agent, task), strict=True):
        for wild in "*?[":
            text = text.replace(f"{place}{wild}", f"{name}{NAME_ENDS}{wild}")
        text = text.replace(place, name)
    return tuple(tuple(pattern.split("/")) for pattern in split(text))
