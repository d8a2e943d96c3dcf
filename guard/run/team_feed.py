"""Record what an agent's output tells of its helpers while it runs."""

from guard.context.invocation import Invocation
from guard.core.classify import OutputReader
from guard.core.team.change import Change
from guard.core.team.state import Scope
from guard.gate.accounts import Accounts
from guard.iteration.current import Iteration
from guard.run.child import AgentProcess


class TeamFeed:
    """Follows the helpers of one agent process; output that tells of none costs nothing.

    The threads that pass the output on never wait for the store: this class fetches what they have read, look by look.
    """

    def __init__(
        self, guard: Invocation, iteration: Iteration, child: AgentProcess, session: str | None
    ) -> None:
        self._guard = guard
        self._iteration = iteration
        self._child = child
        self._named = self._session = session
        self._accounts = Accounts(
            guard, self._scope, "the team is counted without what the output tells of helpers"
        )

    def look(self, session: str | None) -> None:
        """Record what has become known; what cannot be recorded now is tried again at the next look."""
        self._session = self._named or session
        if self._accounts.is_behind:
            self._accounts.send()
        if not self._accounts.is_behind:
            self._accounts.record(self._child.ask_reader(_news))

    def end(self, session: str | None) -> None:
        self._session = self._named or session
        self._accounts.end_host(self._child.ask_reader(_news), self._child.ask_reader(_members))

    def _scope(self) -> Scope:
        iteration = self._iteration
        return Scope(self._guard.worktree_key, self._session, iteration.run, iteration.number)


def _news(reader: OutputReader) -> tuple[Change, ...]:
    return reader.team.take_news() if reader.team is not None else ()


def _members(reader: OutputReader) -> tuple[str, ...]:
    return reader.team.members if reader.team is not None else ()
