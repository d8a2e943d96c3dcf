"""A plan read from markdown or JSON."""

import json
import re

from guard.core.fields import is_id
from guard.core.plan.model import Plan, PlanTask, SupportingAgent

_TASK = re.compile(
    r"^\s*[-*] \[(?P<box>[ xX])\] (?P<id>[^:]+): (?P<title>.*?)(?: \((?P<more>[^()]*)\))?\s*$"
)


class PlanProblem(ValueError):
    """The text is no plan."""


def read_plan(text: str, name: str) -> Plan:
    """The plan in the text of the file of this name."""
    if name.endswith(".json"):
        return _json(text)
    tasks = []
    for line in text.splitlines():
        if found := _TASK.match(line):
            more = dict(
                (part.partition(":")[0].strip(), part.partition(":")[2].strip())
                for part in (found["more"] or "").split(";")
            )
            depends = [one.strip() for one in more.get("depends", "").split(",") if one.strip()]
            tasks.append(
                _task(
                    found["id"].strip(),
                    found["title"],
                    depends,
                    int(more.get("priority", 0)),
                    found["box"] != " ",
                )
            )
    return _plan(tasks, ())


def _json(text: str) -> Plan:
    try:
        told = json.loads(text)
        tasks = [
            _task(
                str(one["id"]),
                str(one.get("title", "")),
                one.get("depends", []),
                one.get("priority", 0),
                False,
            )
            for one in told["tasks"]
        ]
        agents = tuple(
            SupportingAgent.model_validate(one, strict=False)
            for one in told.get("supporting_agents", [])
        )
    except (ValueError, KeyError, TypeError) as error:
        raise PlanProblem(str(error)) from None
    return _plan(tasks, agents)


def _task(name: str, title: str, depends: list[str], priority: int, ticked: bool) -> PlanTask:
    return PlanTask(
        id=_id(name),
        name=name,
        title=title,
        depends=tuple(map(_id, depends)),
        priority=priority,
        ticked=ticked,
    )


def _id(name: str) -> str:
    made = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")
    if not is_id(made):
        raise PlanProblem(f"{name!r} is no id")
    return made


def _plan(tasks: list[PlanTask], agents: tuple[SupportingAgent, ...]) -> Plan:
    ids = {task.id for task in tasks}
    if (
        not tasks
        or len(ids) != len(tasks)
        or any(one not in ids for task in tasks for one in task.depends)
    ):
        raise PlanProblem("no tasks, duplicates or unknown dependencies")
    return Plan(tasks=tuple(tasks), supporting_agents=agents)
