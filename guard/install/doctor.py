"""Check for `guard doctor` whether each agent's hooks are installed, trusted and called, and which faults they noted."""

import shlex
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from guard.context.invocation import Invocation
from guard.core.base.text import plural
from guard.core.hooks.event_kinds import ANSWERED, KINDS
from guard.core.hooks.events import Calls
from guard.core.hooks.state import HOOKS
from guard.core.log.reports import DoctorCheck, Health
from guard.errors import GuardError
from guard.hooks import faults
from guard.install import merge, plugins, settings_file
from guard.install.agents import AGENT_CLIS, OPENCODE, AgentCli, Scope
from guard.install.jsonc import parse
from guard.install.trust import HookFinding, read_trust
from guard.system.programs import find_as_shell, search_program

_A_DAY = timedelta(days=1)
_MOST_TEXT = 200


def agent_hooks_health(guard: Invocation) -> Iterator[DoctorCheck]:
    """Yield a line for each scope in which an agent has guard's hooks, and one for an installed agent CLI without them."""
    repository = guard.repository_if_any
    root = repository.root if repository else None
    for cli in AGENT_CLIS.values():
        lines = list(_check_scopes(guard, cli, root))
        yield from lines
        within = [line for line in lines if not line.found.startswith("user: ")]
        if len(within) > 1:
            yield _line(
                cli,
                "warning",
                "in two files of this repository, so that guard is called twice",
                f"guard install {cli.agent}",
            )
        if lines:
            yield from _silent_hooks(guard, cli)
        if not lines and search_program(cli.agent, guard.environ).program:
            yield _line(cli, "ok", "not installed", f"guard install {cli.agent}")
    yield from _noted_faults(guard)


def _check_scopes(guard: Invocation, cli: AgentCli, root: Path | None) -> Iterator[DoctorCheck]:
    for scope in cli.scopes:
        if scope == "user" or root is not None:
            with suppress(FileNotFoundError):
                yield _check_scope(guard, cli, scope, root)


def _check_scope(guard: Invocation, cli: AgentCli, scope: Scope, root: Path | None) -> DoctorCheck:
    # Raises a FileNotFoundError if the scope has no hooks of guard's.
    path = cli.settings_path(scope, root, guard.environ)
    try:
        real = settings_file.resolve(path, None if scope == "user" else root)
        text = settings_file.read_text(real)
        program = _program(cli, text or "")
        if text is None or program is None:
            raise FileNotFoundError(path)
        findings = [
            _check_file(guard, cli, scope, text, program),
            read_trust(cli, scope, real, root, guard.environ),
            _last_call(guard, cli),
        ]
    except (GuardError, ValueError) as error:
        problem = error.message if isinstance(error, GuardError) else f"{path}: {error}"
        return _line(cli, "warning", f"{scope}: {problem}", "fix the file")
    found = "; ".join(finding.text for finding in findings if finding)
    hint = next((finding.hint for finding in findings if finding and finding.hint), None)
    return _line(cli, "warning" if hint else "ok", f"{scope}: {found}", hint)


def _program(cli: AgentCli, text: str) -> str | None:
    if cli is OPENCODE:
        return plugins.opencode_command(text) if plugins.is_opencode_plugin(text) else None
    if not text.strip():
        return None
    hooks = merge.own_hooks(text, cli).values()
    programs = Counter(cli.program(hook) for found in hooks for hook in found)
    return programs.most_common(1)[0][0] if programs else None


def _check_file(
    guard: Invocation, cli: AgentCli, scope: Scope, text: str, program: str
) -> HookFinding:
    again = f"guard install {cli.agent}" + ("" if scope == cli.usual_scope else f" --{scope}")
    if not _exists(guard, program):
        return HookFinding(f"they call {program}, which is not there", again)
    if cli is OPENCODE:
        is_current = text == plugins.opencode_plugin(program)
    elif parse(text).root.data.get("disableAllHooks") is True:
        return HookFinding("switched off", "take `disableAllHooks` out of the file")
    else:
        present = merge.own_hooks(text, cli)
        called = {*present, *merge.covered_events(text, cli)}
        missing = [event for event in cli.events if event not in called]
        if missing:
            return HookFinding(f"missing: {', '.join(missing)}", again)
        is_current = merge.add_hooks(text, cli, program) == text
    if not is_current:
        return HookFinding("of another version of guard", again)
    return HookFinding(f"installed, {plural(len(cli.events), 'event')}")


def _exists(guard: Invocation, program: str) -> bool:
    words = shlex.split(program)
    name = next((word for word in words if "=" not in word and word != "env"), "")
    return find_as_shell(name, guard.environ) is not None


def _last_call(guard: Invocation, cli: AgentCli) -> HookFinding:
    moments = [call.last_at for call in _calls(guard, cli)]
    if not moments:
        return HookFinding("never called here", "start a session here, and look again")
    return HookFinding(f"last called {_ago(max(moments), guard.clock.now())}")


def _silent_hooks(guard: Invocation, cli: AgentCli) -> Iterator[DoctorCheck]:
    # Every session calls these hooks; here they were never called, though others were.
    counts = {call.event: call.count for call in _calls(guard, cli)}
    kinds = KINDS[cli.agent]
    due = [event for event in cli.events if kinds[event] in ANSWERED]
    missing = [event for event in due if event not in counts]
    if not counts or not missing:
        return
    called = {kinds.get(event) for event in counts}
    starts = sum(count for event, count in counts.items() if kinds.get(event) == "session_started")
    # It is only a warning if such a session is over: the first one may still be at work.
    is_over = bool(called & {"stopping", "session_ended"}) or starts > 1
    found = f"{' and '.join(missing)} {'was' if len(missing) == 1 else 'were'} never called here"
    hint = "look at the program's own list of its hooks, and into hooks.log, whether it failed"
    yield _line(cli, "warning" if is_over else "ok", found, hint if is_over else None)


def _noted_faults(guard: Invocation) -> Iterator[DoctorCheck]:
    # Of all agents, and in all work trees.
    since = (guard.clock.now() - _A_DAY).strftime("%Y-%m-%dT%H:%M:%SZ")
    lines = [
        line for line in faults.read_lines(guard.environ) if line[:4].isdigit() and line >= since
    ]
    if lines:
        newest = lines[-1] if len(lines[-1]) <= _MOST_TEXT else f"{lines[-1][:_MOST_TEXT]}…"
        found = f"{plural(len(lines), 'line')} in the last day; {newest}"
        hint = f"look into {faults.state_home(guard.environ)}/{faults.LOG}"
        yield DoctorCheck.of("hook faults", "warning", found, hint)


def _line(cli: AgentCli, state: Health, found: str, hint: str | None) -> DoctorCheck:
    return DoctorCheck.of(f"{cli.agent} hooks", state, found, hint)


def _calls(guard: Invocation, cli: AgentCli) -> list[Calls]:
    with suppress(GuardError):
        key = guard.worktree_key_if_any
        known = guard.store.view(HOOKS, key) if key else None
        return [call for call in (known.calls if known else ()) if call.agent == cli.agent]
    return []


def _ago(moment: datetime, now: datetime) -> str:
    seconds = max(0, int((now - moment).total_seconds()))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return f"{seconds} s ago"
