"""Read Claude Code's `stream-json`: tasks that begin and end, lists of all that run, and several results.

A helper shows up to four times: in the call that starts it, in the list of all that run, in its own beginning, and in the
result of the call. One of them is enough, so that a lost line does not open the gate. It counts from the call on, under the
call's id, until its own id is known. A task in the foreground is no helper: the turn cannot end before it.
"""

from collections.abc import Iterator
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
_MOST_KEPT = 10_000


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
            *(b'"backgroundTaskId"', b'"isAsync"'),
            *(f'"{tool}"'.encode() for tool in self.spawning),
        )
        self._model = ""
        self._runs: dict[str, object] = {}
        """Tasks in the background, each with the id of its newest run."""
        self._seen: dict[str, None] = {}
        """Tasks that have begun, in the foreground too; the newest are kept."""
        self._calls: dict[str, tuple[Joined, bool]] = {}
        """Calls that start a helper and have not returned, with whether they ask for the background explicitly."""
        self._unnamed: set[str] = set()
        """Calls that returned, of helpers whose own id is not known."""

    @property
    def words(self) -> tuple[bytes, ...]:
        return (*self._words, b'"tool_result"') if self._calls else self._words

    def read(self, event: Event) -> LineMeaning:
        if event.get("parent_tool_use_id") or event.get("isSidechain"):
            return NOTHING
        self.note_session(event.get("session_id"))
        match event.get("type"):
            case "result":
                return LineMeaning(end_of_turn=True, usage=self._usage(event))
            case "assistant":
                return LineMeaning(tuple(self._read_calls(event)), begins_turn=True)
            case "user":
                return LineMeaning(tuple(self._read_results(event)))
            case _:
                return LineMeaning(tuple(self._read_system(event)))

    def _read_calls(self, event: Event) -> Iterator[Change]:
        for block in parts_of(part_of(event, "message"), "content"):
            call, wish = member_in(block.get("id")), part_of(block, "input")
            background = wish.get("run_in_background")
            spawns = block.get("name") in self.spawning
            if block.get("type") != "tool_use" or call is None or call in self._calls:
                continue
            if background is True or (spawns and background is not False):
                kind: Kind = "subagent" if spawns else "background_shell"
                joined = Joined(call, kind, name_in(wish.get("description")), _team_in(wish))
                if len(self._calls) < _MOST_KEPT:
                    self._calls[call] = joined, background is True
                yield joined

    def _read_results(self, event: Event) -> Iterator[Change]:
        launched = _launched_id(event)
        if launched is not None and launched not in self._seen:
            yield from self._start(launched, {}, {})
        for block in parts_of(part_of(event, "message"), "content"):
            call = member_in(block.get("tool_use_id"))
            if block.get("type") != "tool_result" or call is None or call not in self._calls:
                continue
            _, explicit = self._calls.pop(call)
            if block.get("is_error") is True:
                yield MemberLeft(call, "spawn_failed")
            elif launched is None and explicit and len(self._unnamed) < _MOST_KEPT:
                self._unnamed.add(call)
            else:
                yield MemberLeft(call, "ended")

    def _read_system(self, event: Event) -> Iterator[Change]:
        task = member_in(event.get("task_id"))
        match event.get("subtype"):
            case "init":
                self._model = name_in(event.get("model"))
            case "background_tasks_changed":
                yield from self._read_list(event.get("tasks"))
            case "task_started" if task:
                self._see(task)
                if event.get("is_backgrounded") is not False:
                    yield from self._start(task, event, event)
                yield from self._forget_call(event)
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
        self._see(task)
        yield Joined(task, _kind_of(about), name_in(about.get("description")), _team_in(about))

    def _see(self, task: str) -> None:
        self._seen[task] = None
        if len(self._seen) > _MOST_KEPT:
            del self._seen[next(iter(self._seen))]

    def _forget_call(self, event: Event) -> Iterator[Change]:
        # The helper of this call is known by its own id now.
        call = event.get("tool_use_id")
        if isinstance(call, str) and (call in self._calls or call in self._unnamed):
            self._calls.pop(call, None)
            self._unnamed.discard(call)
            yield MemberLeft(call, "ended")

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
        for named in self._forget_call(event):
            yield MemberLeft(named.member, because) if isinstance(named, MemberLeft) else named

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
        self._runs = {task: about.get("run_id") for task, about in known.items()}
        self._unnamed.clear()
        for task in known:
            self._see(task)
        called = (joined for joined, _ in self._calls.values())
        yield Running((*members, *called), _KINDS)

    def _usage(self, event: Event) -> TurnUsage:
        usage, models = part_of(event, "usage"), part_of(event, "modelUsage")
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        windows = {name: count_in(part_of(models, name).get("contextWindow")) for name in models}
        window = windows.get(self._model) or max(windows.values(), default=0)
        return TurnUsage(sum(count_in(usage.get(name)) for name in names), window or None)


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
