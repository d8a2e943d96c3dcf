"""Handle one hook call by git: only a finding refuses a commit or push; a fault of guard is noted, and refuses nothing."""

from guard.core.hooks.event_kinds import GIT_HOOKS, REFUSAL, SKIP, is_skipped, refusal_code
from guard.hooks import faults
from guard.hooks.agent.payload import read_stdin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def call(words: "Sequence[str]", environ: "Mapping[str, str]") -> int:
    # `words` are those after `guard hook git`.
    event, given = (words[0], words[1:]) if words else ("", words)
    if event not in GIT_HOOKS:
        known = f"this guard knows the hooks {', '.join(GIT_HOOKS)} of git"
        faults.tell(environ, f"guard hook git {' '.join(words)}: {known}")
        return 0
    if is_skipped(event, environ.get(SKIP, "")):
        return 0
    try:
        refused = _call(event, given, environ)
        return refusal_code(environ.get(REFUSAL, "")) if refused else 0
    except KeyboardInterrupt:
        return 130
    except BaseException as error:
        # The boundary: no commit or push waits until guard is fixed.
        problem = f"{type(error).__name__}: {error}{_consequence(event)}"
        faults.tell(environ, f"guard hook git {event}: {problem}")
        return 0


def _consequence(event: str) -> str:
    what = {"pre-commit": "commit", "pre-push": "push"}.get(event)
    return f"; this {what} was not checked" if what else ""


def _call(event: str, given: "Sequence[str]", environ: "Mapping[str, str]") -> int:
    if event == "post-commit" and _is_rewrite(environ):
        event = "post-rewrite"
    if event == "post-commit":
        from guard.hooks.git.note import note_commit

        note_commit(environ)
        return 0
    if event == "post-rewrite":
        from guard.hooks.git.note import note_rewrites

        command = given[0] if given else environ.get("PRE_COMMIT_REWRITE_COMMAND", "")
        note_rewrites(environ, command, read_stdin())
        return 0
    if event == "pre-commit":
        from guard.hooks.git.pre_commit import check_staged

        return check_staged(environ)
    if event == "prepare-commit-msg":
        from guard.hooks.git.prepare_commit_msg import prepare_message

        return prepare_message(given, environ)
    from guard.hooks.git.pre_push import check_push

    return check_push(read_stdin(), environ)


def _is_rewrite(environ: "Mapping[str, str]") -> bool:
    # One entry of `.pre-commit-hooks.yaml` is for both hooks; the programs that call it say for which.
    stage = environ.get("PREK_HOOK_STAGE", "")
    return stage == "post-rewrite" or bool(environ.get("PRE_COMMIT_REWRITE_COMMAND"))
