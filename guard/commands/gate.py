"""`guard gate`."""

import os
import select
import sys
from collections.abc import Callable

import click

from guard.commands.options import DAY_SECONDS, Seconds
from guard.context.invocation import Invocation
from guard.context.output import Output
from guard.core.base.text import plural
from guard.core.gate import AGENTS, stream_reader
from guard.core.gate.gate import MAX_HOLD_SECONDS, Gate, LetGo, StreamHeld, StreamOutcome
from guard.errors import GuardError
from guard.gate.stdin import Intake

_NAMED = 5


@click.command("gate")
@click.option(
    "--agent", required=True, type=click.Choice(AGENTS), help="The agent that writes the stream."
)
@click.option(
    "--max-hold",
    type=Seconds(most=7 * DAY_SECONDS),
    metavar="SECONDS",
    help="Hold back a completion at most this long; by default `team.max_hold_seconds`.",
)
@click.pass_obj
def command(guard: Invocation, agent: str, max_hold: float | None) -> int:
    """Hold back the end of a turn while helpers work, in an agent's event stream.

    Guard reads the stream on standard input and writes it to standard output, line by line. It replaces the line
    that ends the agent's turn by `{"type":"complete",…}`, or by `{"type":"usage_update",…}` while helpers of the
    agent are at work. All other lines pass unchanged. In a repository, guard records what the stream tells about
    helpers (`guard team show`), and helpers known only from those records hold back the end of the turn too.

    Exit codes: 0 after `complete`; 11 held back, helpers may be alive; 16 helpers were killed with the session, or
    the stream was cut off within a turn.
    """
    gate, settle = _gate(guard, agent, max_hold)
    with Intake(sys.stdin.fileno()) as intake:
        try:
            _pass_on(guard, gate, intake)
            if not intake.at_end:
                _write(gate.cut())
                raise KeyboardInterrupt
            rest, ended = gate.end(guard.clock.boot())
            _write(rest)
        except BrokenPipeError:
            # The reader closed the pipe; the lines until now decide.
            return gate.end(guard.clock.boot())[1].exit_code
        finally:
            settle()
    _sum_up(guard.output, ended)
    if intake.interrupted:
        raise KeyboardInterrupt
    return ended.exit_code


def _gate(guard: Invocation, agent: str, max_hold: float | None) -> tuple[Gate, Callable[[], None]]:
    # Returns the gate, and a function to call at the end.
    reader, output = stream_reader(agent), guard.output
    try:
        settings = guard.users_config.settings.team
        longest = settings.max_hold_seconds if max_hold is None else max_hold
        in_repository = guard.repository_if_any is not None
    except GuardError as error:
        # The stream belongs to the agent, and must not be lost because of an error in guard.
        output.warn(f"the gate goes by the stream alone: {error.message}")
        longest, in_repository = MAX_HOLD_SECONDS if max_hold is None else max_hold, False
    if not in_repository:
        gate = Gate(reader, max_hold_seconds=longest, tell=lambda news: _tell(output, news))
        return gate, lambda: None
    from guard.gate.accounts import Accounts, stream_scope

    accounts = Accounts(guard, lambda: stream_scope(guard, agent, reader.session))

    def tell(news: StreamHeld | LetGo) -> None:
        _tell(output, news)
        accounts.log(news)

    gate = Gate(
        reader,
        max_hold_seconds=longest,
        on_change=accounts.record,
        also_holds=accounts.others,
        tell=tell,
    )
    return gate, accounts.send


def _pass_on(guard: Invocation, gate: Gate, intake: Intake) -> None:
    _await(guard, gate, intake)
    while data := intake.read():
        _write(gate.feed(data, guard.clock.boot()))
        _await(guard, gate, intake)


def _await(guard: Invocation, gate: Gate, intake: Intake) -> None:
    # Waits for input, and writes lines that become due meanwhile.
    while (deadline := gate.deadline) is not None:
        left = max(0.0, deadline - guard.clock.boot())
        if intake.wait(left):
            return
        due = gate.tick(guard.clock.boot())
        if not due and left == 0.0:
            return
        _write(due)


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(1, view) :]
        except BlockingIOError:
            select.select([], [1], [])


def _tell(output: Output, news: StreamHeld | LetGo) -> None:
    match news:
        case StreamHeld(team, count):
            output.note(f"holding back for {team}: {plural(count, 'helper')} at work")
        case LetGo(team, count, "hold_limit"):
            output.warn(
                f"held back for {team} until the time limit: let go with {plural(count, 'helper')} at work"
            )
        case LetGo(team):
            output.note(f"letting go: no helper of {team} is at work any more")


def _sum_up(output: Output, ended: StreamOutcome) -> None:
    parts = []
    if ended.killed:
        count = plural(len(ended.killed), "helper")
        parts.append(f"{count} killed with the session: {_list_names(ended.killed)}")
    if "held" in ended.reasons:
        names = f": {_list_names(ended.members)}" if ended.members else ""
        parts.append(f"held back for {ended.team}, {plural(ended.count, 'helper')} may live{names}")
    if "stream_cut" in ended.reasons:
        parts.append("the stream was cut off before the agent ended its turn")
    if ended.unreadable:
        parts.append(f"{plural(ended.unreadable, 'line')} could not be read")
    if parts:
        output.warn("; ".join(parts))


def _list_names(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
