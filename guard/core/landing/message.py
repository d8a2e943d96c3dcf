"""Write the message of the commit by which a task lands."""

from collections import Counter
from collections.abc import Sequence

from guard.core.base.text import escape, plural
from guard.core.rescue.commit_message import is_conventional

TASK_TRAILER = "Guard-Task"
TIP_TRAILER = "Guard-Task-Tip"
_LONGEST_SUBJECT = 200
_MOST_LISTED = 50
_DOCUMENTS = (".md", ".rst", ".txt", ".adoc")


def landing_message(
    task_id: str, title: str, tip: str, subjects: Sequence[str], paths: Sequence[str]
) -> bytes:
    """Return a conventional subject with the task's title, the subjects of its commits, and the trailers."""
    subject = " ".join(escape(title or f"task {task_id}").split())
    if not is_conventional(subject):
        subject = f"{_commit_type(subjects, paths)}: {subject}"
    if len(subject) > _LONGEST_SUBJECT:
        subject = subject[: _LONGEST_SUBJECT - 1] + "…"
    listed = [f"- {escape(line)}" for line in subjects[:_MOST_LISTED]]
    more = len(subjects) - len(listed)
    listed += [f"- and {plural(more, 'more commit')}"] if more > 0 else []
    body = "\n".join(listed)
    trailers = f"{TASK_TRAILER}: {task_id}\n{TIP_TRAILER}: {tip}\n"
    return "\n\n".join(part for part in (subject, body, trailers) if part).encode()


def _commit_type(subjects: Sequence[str], paths: Sequence[str]) -> str:
    """Return the type that most of the task's commits have; else what its files tell."""
    types = Counter(
        subject.partition(":")[0].partition("(")[0].rstrip("!")
        for subject in subjects
        if is_conventional(subject)
    )
    types.pop("wip", None)
    if types:
        return types.most_common(1)[0][0]
    if paths and all(path.casefold().endswith(_DOCUMENTS) for path in paths):
        return "docs"
    return "feat"
