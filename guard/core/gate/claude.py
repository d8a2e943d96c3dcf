"""Read Claude Code's `stream-json`: tasks that begin and end, lists of all that run, and several results.

A helper shows up to four times: in the call that starts it, in the list of all that run, in its own beginning, and in the
result of the call. One of them is enough, so that a lost line does not open the gate. It counts once: from the call on, under
the call's id, until its own task is known. A task in the foreground is no helper: the turn cannot end before it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from guard.core.base.agent_json import Event, count_in, member_in, name_in, part_of, parts_of
from guard.core.gate.reader import NOTHING, LineMeaning, StreamReader, TurnUsage
from guard.core.team.change import Alive, Change, Joined, Kind, LeftBecause, MemberLeft, Running

_KINDS: frozenset[Kind] = frozenset({"background_shell", "subagent", "teammate"})
_ENDS: dict[object, LeftBecause] = {
    "completed": "ended",
    "done": "ended",
    "failed": "failed",
    "errored": "failed",
    "killed": "killed",
    "stopped": "killed",
    "cancelled": "killed",
    "canceled": "killed",
}
_LAUNCHED = ("async_launched", "remote_launched")
_SPAWNED = "teammate_spawned"
_DISBAND = "TeamDelete"
_MOST_KEPT = 10_000
_AT_WORK = LineMeaning(begins_turn=True)


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that starts a helper whose own task is not known yet."""

    helper: Joined
    is_explicit: bool = False
    """Whether it asks for the background explicitly."""
    has_returned: bool = False

    @property
    def may_be_unlisted(self) -> bool:
        """Tell whether a list of all that run may lack the helper: it is about to begin, or works in a terminal of its own."""
        return not self.has_returned or self.helper.kind == "teammate"


class ClaudeStream(StreamReader):
    name = "claude"
    ending = (b'"result"',)
    beginning = (b'"assistant"',)
    spawning: ClassVar[tuple[str, ...]] = ("Agent", "Task")
    """The tools that start a helper, unless the call asks them to wait for it."""

    def __init__(self) -> None:
        super().__init__()
        self._words = (
            *(b'"result"', b'"init"', b'"task_started"', b'"task_updated"', b'"task_progress"'),
            *(b'"task_notification"', b'"background_tasks_changed"', b'"run_in_background"'),
            *(
                b'"backgroundTaskId"',
                b'"isAsync"',
                f'"{_SPAWNED}"'.encode(),
                f'"{_DISBAND}"'.encode(),
            ),
            *(f'"{tool}"'.encode() for tool in self.spawning),
        )
        self._model = ""
        self._runs: dict[str, object] = {}
        """Tasks in the background, each with the id of its newest run."""
        self._seen: dict[str, None] = {}
        """Tasks that have begun, in the foreground too; the newest are kept."""
        self._made: dict[str, None] = {}
        """The ids of calls that may start a helper; the newest are kept."""
        self._calls: dict[str, _Call] = {}
        self._disbands: set[str] = set()
        """Calls that end the team and have not returned."""

    @property
    def words(self) -> tuple[bytes, ...]:
        has_open = self._disbands or any(not call.has_returned for call in self._calls.values())
        return (*self._words, b'"tool_result"') if has_open else self._words

    def read(self, event: Event) -> LineMeaning:
        if event.get("parent_tool_use_id") or event.get("isSidechain"):
            return NOTHING
        self.note_session(event.get("session_id"))
        match event.get("type"):
            case "assistant":
                changes = tuple(self._read_calls(event))
                return LineMeaning(changes, begins_turn=True) if changes else _AT_WORK
            case "result":
                return LineMeaning(end_of_turn=True, usage=self._usage(event))
            case "user":
                return LineMeaning(tuple(self._read_results(event)))
            case _:
                return LineMeaning(tuple(self._read_system(event)))

    def _read_calls(self, event: Event) -> Iterator[Change]:
        for block in parts_of(part_of(event, "message"), "content"):
            if block.get("type") != "tool_use":
                continue
            tool, wish = block.get("name"), part_of(block, "input")
            spawns, background = tool in self.spawning, wish.get("run_in_background")
            if not (spawns or background or tool == _DISBAND):
                continue
            call = member_in(block.get("id"))
            if call is None or call in self._calls:
                continue
            if tool == _DISBAND and len(self._disbands) < _MOST_KEPT:
                self._disbands.add(call)
            elif background is True or (spawns and (background is not False or _team_in(wish))):
                helper = _called_helper(call, wish, spawns)
                _keep(self._made, call)
                if len(self._calls) < _MOST_KEPT:
                    self._calls[call] = _Call(helper, background is True)
                yield helper

    def _read_results(self, event: Event) -> Iterator[Change]:
        launched, told = _launched_id(event), part_of(event, "tool_use_result")
        if launched is not None and launched not in self._seen:
            yield from self._start(launched, {}, {})
        for block in parts_of(part_of(event, "message"), "content"):
            name, failed = member_in(block.get("tool_use_id")), block.get("is_error") is True
            if block.get("type") != "tool_result" or name is None:
                continue
            if name in self._disbands:
                self._disbands.discard(name)
                yield from () if failed else self._disband()
            call = self._calls.get(name)
            if call is None and name not in self._made and told.get("status") == _SPAWNED:
                # The line with the call was lost.
                self._calls[name] = call = _Call(_called_helper(name, told, True))
                _keep(self._made, name)
                yield call.helper
            if call is None or call.has_returned:
                continue
            if failed:
                del self._calls[name]
                yield MemberLeft(call.helper.member, "spawn_failed")
            elif told.get("status") == _SPAWNED or (call.helper.team and "status" not in told):
                yield from self._keep_teammate(name, call, told)
            elif launched is None and call.is_explicit:
                self._calls[name] = replace(call, has_returned=True)
            else:
                del self._calls[name]
                yield MemberLeft(call.helper.member, "ended")

    def _keep_teammate(self, name: str, call: _Call, told: Event) -> Iterator[Change]:
        # A teammate lives on when the call that started it has returned.
        ids = (member_in(told.get(key)) for key in ("teammate_id", "agent_id", "agentId"))
        member = next((found for found in ids if found is not None), name)
        before = call.helper
        if member in self._seen:
            del self._calls[name]
            yield MemberLeft(before.member, "ended")
            return
        words = name_in(told.get("name")) or before.description
        mate = Joined(member, "teammate", words, _team_in(told) or before.team)
        self._calls[name] = _Call(mate, has_returned=True)
        if (member, mate.kind) != (before.member, before.kind):
            yield mate if member != before.member else MemberLeft(member, "ended")
            yield MemberLeft(before.member, "ended") if member != before.member else mate

    def _disband(self) -> Iterator[Change]:
        for name, call in list(self._calls.items()):
            if call.helper.kind == "teammate":
                del self._calls[name]
                yield MemberLeft(call.helper.member, "shutdown")

    def _read_system(self, event: Event) -> Iterator[Change]:
        task = member_in(event.get("task_id"))
        match event.get("subtype"):
            case "init":
                self._model = name_in(event.get("model"))
            case "background_tasks_changed":
                yield from self._read_list(event.get("tasks"))
            case "task_started" if task:
                named = tuple(self._name_call(task, event))
                _keep(self._seen, task)
                if event.get("is_backgrounded") is not False:
                    yield from self._start(task, event, event)
                yield from named
            case "task_progress" if task in self._runs:
                yield Alive(str(task))
            case "task_updated" if task:
                yield from self._update(task, event)
            case "task_notification" if task:
                yield from self._end(task, event, event.get("status"))

    def _start(self, task: str, event: Event, about: Event) -> Iterator[Change]:
        run = event.get("run_id")
        if task in self._runs and run in (None, self._runs[task]):
            yield Alive(task)
            return
        if len(self._runs) < _MOST_KEPT:
            self._runs[task] = run
        _keep(self._seen, task)
        yield Joined(task, _kind_of(about), name_in(about.get("description")), _team_in(about))

    def _name_call(self, task: str, about: Event) -> Iterator[Change]:
        # The helper of this call is known by its own task now.
        given = about.get("tool_use_id")
        name = given if isinstance(given, str) else self._likely_call(task, about)
        call = self._calls.pop(name, None) if name is not None else None
        if call is not None and call.helper.member != task:
            yield MemberLeft(call.helper.member, "ended")

    def _likely_call(self, task: str, about: Event) -> str | None:
        # The task does not say which call started it.
        kind, words = _kind_of(about), name_in(about.get("description"))
        calls = {name: call.helper for name, call in self._calls.items()}
        same = [name for name, helper in calls.items() if helper.member == task]
        if same or task in self._seen:
            return same[0] if same else None
        alike = [name for name, helper in calls.items() if _is_alike(helper.kind, kind)]
        described = [name for name in alike if words and calls[name].description == words]
        nameless = [name for name in alike if not (words and calls[name].description)]
        mates = [name for name in alike if kind == calls[name].kind == "teammate"]
        return next(iter((*described, *nameless, *mates)), None)

    def _update(self, task: str, event: Event) -> Iterator[Change]:
        patch = part_of(event, "patch")
        status = patch.get("status", event.get("status"))
        if patch.get("is_backgrounded") is True and status not in _ENDS:
            yield from self._start(task, event, {**event, **patch})
        elif status in ("running", "idle") and task in self._runs:
            yield Alive(task, idle=status == "idle")
        else:
            yield from self._end(task, event, status)

    def _end(self, task: str, event: Event, status: object) -> Iterator[Change]:
        # The end of an earlier run changes nothing: the task was taken up again since.
        because = _ENDS.get(status) if isinstance(status, str) else None
        newest, run = self._runs.get(task), event.get("run_id")
        if because is None or (newest is not None and run is not None and run != newest):
            return
        if task in self._runs or task not in self._seen:
            yield MemberLeft(task, because)
        self._runs.pop(task, None)
        given = event.get("tool_use_id")
        known = (name for name, call in self._calls.items() if call.helper.member == task)
        name = given if isinstance(given, str) else next(known, None)
        call = self._calls.pop(name, None) if name is not None else None
        if call is not None and call.helper.member != task:
            yield MemberLeft(call.helper.member, because)

    def _read_list(self, tasks: object) -> Iterator[Change]:
        # An idle teammate stays in the list of all that run, and is a member until it is shut down. A helper whose call has
        # not returned may have begun after the list was made.
        if not isinstance(tasks, list):
            return
        found = {member_in(task.get("task_id")): task for task in tasks if isinstance(task, dict)}
        known = {task: about for task, about in found.items() if task is not None}
        members = tuple(
            Joined(task, _kind_of(about), name_in(about.get("description")), _team_in(about))
            for task, about in known.items()
        )
        if len(known) < len(tasks):
            # A list that is not understood in full does not tell who is missing.
            yield from members
            return
        for task, about in known.items():
            for _ in self._name_call(task, about):
                pass
            _keep(self._seen, task)
        self._runs = {task: about.get("run_id") for task, about in known.items()}
        self._calls = {name: call for name, call in self._calls.items() if call.may_be_unlisted}
        yield Running((*members, *(call.helper for call in self._calls.values())), _KINDS)

    def _usage(self, event: Event) -> TurnUsage:
        usage, models = part_of(event, "usage"), part_of(event, "modelUsage")
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        windows = {name: count_in(part_of(models, name).get("contextWindow")) for name in models}
        window = windows.get(self._model) or max(windows.values(), default=0)
        return TurnUsage(sum(count_in(usage.get(name)) for name in names), window or None)


def _keep(kept: dict[str, None], name: str) -> None:
    kept[name] = None
    if len(kept) > _MOST_KEPT:
        del kept[next(iter(kept))]


def _called_helper(call: str, wish: Event, spawns: bool) -> Joined:
    team = _team_in(wish) if spawns else None
    kind: Kind = "teammate" if team else "subagent" if spawns else "background_shell"
    return Joined(call, kind, name_in(wish.get("description")), team, told_by="call")


def _is_alike(one: Kind, other: Kind) -> bool:
    # A call may ask for a teammate and get a subagent.
    return (one == "background_shell") == (other == "background_shell")


def _kind_of(about: Event) -> Kind:
    word = name_in(about.get("task_type"))
    if "teammate" in word:
        return "teammate"
    return "subagent" if "agent" in word or about.get("subagent_type") else "background_shell"


def _team_in(about: Event) -> str | None:
    return name_in(about.get("team_name")) or None


def _launched_id(event: Event) -> str | None:
    # None unless the call left a task in the background, and its result has the id of that task.
    value = part_of(event, "tool_use_result")
    if value.get("isAsync") is True or value.get("status") in _LAUNCHED:
        return member_in(value.get("agentId"))
    return member_in(value.get("backgroundTaskId"))
