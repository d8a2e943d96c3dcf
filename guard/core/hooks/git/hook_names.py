"""Which of git's hooks guard has a part in. A commit waits for some of them, so this is plain data: it imports nothing."""

EVENTS = ("pre-commit", "prepare-commit-msg", "post-commit", "post-rewrite", "pre-push")
"""In the order in which git calls them."""
CHECKED_FIRST = ("commit", "initial", "amend", "merge")
"""How a commit can be made for which git calls `pre-commit` first, unless it is told not to."""
SKIP = "GUARD_SKIP"
"""The variable that leaves guard's part out: `1` for all hooks, or some of their names, with commas."""
REFUSAL = "GUARD_REFUSAL"
"""The variable that says with which exit code to refuse. A Python that cannot even load guard ends with 1 as well."""


def is_skipped(event: str, told: str) -> bool:
    """Whether the variable has this hook left out."""
    names = told.replace(",", " ").split()
    return event in names or "all" in names or "1" in names or "true" in names


def refusal(told: str) -> int:
    """The exit code that the variable asks for; 1 where it asks for none that a process can have."""
    is_number = told.isascii() and told.isdecimal() and len(told) < 4
    return int(told) if is_number and 0 < int(told) < 256 else 1
