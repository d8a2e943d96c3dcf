"""What the scripted model says when guard asks a session for its status."""

import json
import re
from typing import Any

from tests.support.agent_clis import AgentCli
from tests.support.model import Reply, Step, call, say

QUESTION = "This is a status check"
_NONCE = re.compile(r"exactly ([0-9a-f]{8,})")
_COMPLETE = {
    "status": "complete",
    "message": "Everything is done.",
    "agents_active": False,
    "agents_details": "",
    "tasks_completed": ["the page"],
    "tasks_pending": [],
    "commits_made": 0,
    "should_continue": False,
    "next_action": "",
    "needs_person": False,
    "question": "",
}


def status(agent: AgentCli, **fields: Any) -> Step:
    """The session says that it is complete, but for these fields; the nonce is the question's."""

    def answer(prompt: str) -> Reply:
        found = _NONCE.search(prompt)
        assert found, prompt
        document = {**_COMPLETE, "nonce": found[1], **fields}
        if agent.name == "claude":
            return call("StructuredOutput", **document)
        return say(json.dumps(document))

    return answer
