"""Every kind of session that is made up, by the name under which it stands in the table.

What is right to say of a kind follows from the words of the product: an iteration completes by commits of the agent's own, by
a rescue of what it left, or because there was nothing to do; it is interrupted if helpers died with it; a limit, an outage
and a question are no stalls. A session with commits is complete while a process of it still runs, not while its team does.
"""

from collections.abc import Callable

from benchmarks.simulation import alone, histories, interruptions, survivors
from benchmarks.simulation.sessions import Making, Session

KINDS: dict[str, tuple[int, Callable[[Making], Session]]] = {
    "committed": (12, alone.committed),
    "forgot to commit": (8, alone.forgot),
    "forgot, in mid-merge or detached": (3, alone.forgot_in_mid_operation),
    "forgot, and nobody can tell": (3, alone.forgot_and_cannot_tell),
    "forgot, and cannot be asked": (2, alone.forgot_and_cannot_be_asked),
    "halfway, uncommitted": (4, alone.halfway),
    "work hidden from git": (3, alone.hides_its_work),
    "helper commits": (6, survivors.helper_commits),
    "helper is silent": (5, survivors.helper_is_silent),
    "helper takes hours": (2, survivors.helper_takes_hours),
    "helper leaves files": (3, survivors.helper_leaves_files),
    "helper fails": (3, survivors.helper_fails),
    "team at work": (5, survivors.team),
    "helper hangs": (3, survivors.hung_helper),
    "ghost in the team": (4, survivors.ghost),
    "commit lands late": (4, alone.late_commit),
    "stalled": (8, alone.stalled),
    "stalled, and cannot be asked": (2, alone.stalled_and_cannot_be_asked),
    "usage limit": (6, interruptions.limited),
    "outage": (5, interruptions.outage),
    "crashed": (4, alone.crashed),
    "crashed in mid-work": (4, alone.crashed_in_mid_work),
    "rewritten history, with work": (3, histories.rewritten_with_work),
    "rewritten history, no work": (3, histories.rewritten_without_work),
    "pulled commits only": (3, histories.imported),
    "commits pushed in or fetched by address": (3, histories.foreign),
    "the user's work committed": (3, histories.users_work),
    "empty or cancelling commits": (3, histories.commits_of_nothing),
    "says done, is not": (4, alone.lies),
    "says done, nothing contradicts": (1, alone.lies_unprovably),
    "nothing to do": (2, alone.nothing_to_do),
    "only the user's files dirty": (3, alone.only_the_users_files),
}
"""By name: how often it comes, and what makes one up."""
SUPERVISED: dict[str, tuple[int, Callable[[Making], Session]]] = {
    **KINDS,
    "turns or context used up": (4, interruptions.used_up),
    "killed with its helpers": (4, interruptions.killed_with_helpers),
    "permissions denied": (3, interruptions.denied),
    "asks a person": (3, interruptions.asks_a_person),
    "asks a person with courtesy": (2, interruptions.asks_with_courtesy),
    "offers more after its work": (3, interruptions.offers_more),
    "hung CLI": (3, interruptions.hung_cli),
}
"""Those that only somebody can tell who saw the agent's output, too."""
UNSUPERVISED = {**KINDS, "agent still running": (20, survivors.still_running)}
