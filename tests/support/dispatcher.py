"""A coordinator among others: `python -m tests.support.dispatcher WORKSPACE NAME`.

It waits for a line on stdin, then tries to give every available task to an agent of its own, and prints those that it got.
"""

import sys

from guard.context.invocation import Invocation
from guard.coordinator.record import record, require_state
from guard.core.coordinator.decide_tasks import dispatch_developer
from guard.errors import Refused


def main(workspace: str, name: str) -> None:
    guard = Invocation(workspace_option=workspace)
    tasks = require_state(guard).available_tasks
    print("ready", flush=True)
    sys.stdin.readline()
    for number, task_id in enumerate(tasks):
        try:
            record(guard, dispatch_developer(task_id=task_id, agent_id=f"{name}-{number}"))
        except Refused:
            continue
        print(task_id)


if __name__ == "__main__":
    main(*sys.argv[1:])
