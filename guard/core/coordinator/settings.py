"""The settings of the coordinator."""

from typing import Annotated, Literal

from pydantic import Field

from guard.core.base.fields import USERS, Section

HoldOnQuestion = Literal["all", "task"]


class CoordinatorSettings(Section):
    """How `guard plan` sends agents to the tasks of a plan."""

    active_developers: Annotated[int, Field(ge=1, le=1000, json_schema_extra=USERS)] = 3
    """How many developers and auditors are at work at once."""
    remediation_attempts: Annotated[int, Field(ge=1, le=1000, json_schema_extra=USERS)] = 3
    """How many attempts to remedy the infrastructure may fail before a person is asked."""
    agent_timeout_minutes: Annotated[float, Field(gt=0, le=43200, json_schema_extra=USERS)] = 15
    """How long an agent may take for its task; one that is at work then gets half as much again, twice at most."""
    redispatch_limit: Annotated[int, Field(ge=0, le=1000, json_schema_extra=USERS)] = 3
    """How often a task whose agent was lost is given to another before a person is asked."""
    max_concurrent_per_agent: Annotated[int, Field(ge=1, le=1000, json_schema_extra=USERS)] = 2
    """How many requests one supporting agent works on at once; more of them are queued."""
    audit_command: Annotated[str, Field(max_length=4096, json_schema_extra=USERS)] = ""
    """The command that audits a task in `guard plan run`, run by `sh -c` in its work tree with GUARD_TASK set: exit code 0 \
passes the audit."""
    audit_limit: Annotated[int, Field(ge=1, le=1000, json_schema_extra=USERS)] = 3
    """How many audits of one task may fail in a row before a person is asked."""
    hold_on_question: Annotated[HoldOnQuestion, Field(json_schema_extra=USERS)] = "all"
    """Whether an open question about a task holds back all new work, or only that task; any other question holds back all."""
    usage_command: Annotated[str, Field(max_length=4096, json_schema_extra=USERS)] = ""
    """The program that tells how much of its limits the session has used, as one JSON document on its stdout."""
    plan_file: Annotated[str, Field(max_length=1024)] = "PLAN.md"
    """The plan that `guard plan load` reads, if none is named; relative to the work tree."""
