"""One call of a hook by git. Only a finding refuses anything; a fault of guard is told, and stands in nobody's way."""

from guard.core.hooks.git.hook_names import EVENTS, REFUSAL, SKIP, is_skipped, refusal
from guard.hooks import faults, stdin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def call(words: "Sequence[str]", environ: "Mapping[str, str]") -> int:
    """Do what this hook of git is there for, and answer in its exit code."""
    event, given = (words[0], words[1:]) if words else ("", words)
    if event not in EVENTS:
        known = f"this guard knows the hooks {', '.join(EVENTS)} of git"
        faults.tell(environ, f"guard hook git {' '.join(words)}: {known}")
        return 0
    if is_skipped(event, environ.get(SKIP, "")):
        return 0
    try:
        refused = _call(event, given, environ)
        return refusal(environ.get(REFUSAL, "")) if refused else 0
    except KeyboardInterrupt:
        return 130
    except BaseException as error:
        # The boundary: nobody's commit or push waits for guard to be mended.
        faults.tell(
            environ, f"guard hook git {event}: {type(error).__name__}: {error}{_unchecked(event)}"
        )
        return 0


def _unchecked(event: str) -> str:
    what = {"pre-commit": "commit", "pre-push": "push"}.get(event)
    return f"; this {what} was not checked" if what else ""


def _call(event: str, given: "Sequence[str]", environ: "Mapping[str, str]") -> int:
    if event == "post-commit" and _is_rewriting(environ):
        event = "post-rewrite"
    if event == "post-commit":
        from guard.hooks.git.note import committed

        committed(environ)
        return 0
    if event == "post-rewrite":
        return _rewritten(given, environ)
    if event == "pre-commit":
        from guard.hooks.git.pre_commit import checked

        return checked(environ)
    if event == "prepare-commit-msg":
        from guard.hooks.git.prepare_commit_msg import prepared

        return prepared(given, environ)
    from guard.hooks.git.pre_push import pushed

    return pushed(stdin.read(), environ)


def _is_rewriting(environ: "Mapping[str, str]") -> bool:
    """One entry of `.pre-commit-hooks.yaml` is for both hooks; the programs that call it say for which."""
    stage = environ.get("PREK_HOOK_STAGE", "")
    return stage == "post-rewrite" or bool(environ.get("PRE_COMMIT_REWRITE_COMMAND"))


def _rewritten(given: "Sequence[str]", environ: "Mapping[str, str]") -> int:
    from guard.hooks.git.note import rewritten

    command = given[0] if given else environ.get("PRE_COMMIT_REWRITE_COMMAND", "")
    rewritten(environ, command, stdin.read())
    return 0
