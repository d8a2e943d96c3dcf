"""Warn a task of failures that recur in work like it."""

import re
from collections.abc import Collection, Mapping, Sequence

from guard.core.base.text import escape, fit_line, plural
from guard.core.failures.pattern import FailurePattern, FailureWarning, prevention_of
from guard.core.plan.model import PlanTask

RECURRING = 3
"""From this occurrence on a kind of failure is worth a warning."""
_MOST_KEYWORDS = 500
_MOST_READ = 65536
_MOST_SHOWN = 300
_WORD = re.compile(r"[^\W\d_]+")
_INNER_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_COMMON_WORDS = """
    a able add after all also and any are as at be been before but by can case change code create do done each error fail
    failed failure file fix for from get has have if implement in into is issue it its make more must new no none not of on once
    one only or other out own part remove run set should so some support task than that the their them then there these this to
    up update use using value was when where which will with without work wrong write missing
"""
_COMMON = frozenset(_COMMON_WORDS.split())


def keywords(text: str) -> frozenset[str]:
    """Return the words that tell what a text is about: casefolded, in the singular, without common words."""
    found: dict[str, None] = {}
    for word in _WORD.finditer(_INNER_WORD.sub(" ", text[:_MOST_READ])):
        stem = _singular(word[0].casefold())
        if len(stem) > 1 and stem not in _COMMON:
            found[stem] = None
        if len(found) >= _MOST_KEYWORDS:
            break
    return frozenset(found)


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def is_relevant(
    kind: str,
    pattern: FailurePattern,
    words: Collection[str],
    titles: Mapping[str, str] | None = None,
) -> bool:
    """Tell whether a failure concerns a task: it shares a word with the kind, a cause, or the title of an affected task."""
    known = titles or {}
    texts = (kind, *pattern.common_causes, *(known.get(task, "") for task in pattern.tasks))
    return any(not keywords(text).isdisjoint(words) for text in texts)


def warnings_for(
    task: PlanTask,
    patterns: Mapping[str, FailurePattern],
    titles: Mapping[str, str] | None = None,
) -> tuple[FailureWarning, ...]:
    # A failure of the task itself always concerns it.
    words = keywords(f"{task.name} {task.title}")
    concerned = [
        (kind, pattern)
        for kind, pattern in patterns.items()
        if pattern.count >= RECURRING
        and (task.id in pattern.tasks or is_relevant(kind, pattern, words, titles))
    ]
    concerned.sort(key=lambda item: (-item[1].count, item[0]))
    return tuple(_warn_of(kind, pattern) for kind, pattern in concerned)


def _warn_of(kind: str, pattern: FailurePattern) -> FailureWarning:
    where = plural(len(pattern.tasks), "task")
    times = plural(pattern.count, "time")
    return FailureWarning(
        type=kind,
        message=f"{kind} happened {times}, in {where}",
        prevention=prevention_of(kind, pattern),
        occurrence_count=pattern.count,
        common_causes=pattern.common_causes,
    )


def warnings_text(warnings: Sequence[FailureWarning]) -> str:
    if not warnings:
        return ""
    lines = ["What went wrong before in work like this:", ""]
    for warning in warnings:
        lines.append(f"- {_one_line(warning.type)}: {plural(warning.occurrence_count, 'time')}")
        if warning.common_causes:
            lines.append(f"  Causes: {'; '.join(map(_one_line, warning.common_causes))}")
        if warning.prevention:
            lines.append(f"  Prevention: {_one_line(warning.prevention)}")
    return "\n".join([*lines, "", "Check for each of these before you report the task as ready."])


def _one_line(text: str) -> str:
    return fit_line(escape(" ".join(text.split())), _MOST_SHOWN)
