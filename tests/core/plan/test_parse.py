"""Plans: what is read of them, and that everything that is wrong is named with its line."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.base.text import is_id
from guard.core.plan.model import Plan
from guard.core.plan.parse import MOST_BYTES, PlanProblem, read_plan
from guard.core.plan.task_ids import make_id
from tests.support import ROOT
from tests.support.cost import cpu_limit


def problems(text: str, name: str = "plan.md") -> tuple[str, ...]:
    with pytest.raises(PlanProblem) as caught:
        read_plan(text, name)
    assert str(caught.value) == "; ".join(caught.value.problems)
    return caught.value.problems


def depends(plan: Plan) -> dict[str, tuple[str, ...]]:
    return {task.id: task.depends for task in plan.tasks}


def test_a_task_with_everything() -> None:
    [first, second] = read_plan(
        "- [x] 1.1: Set up\n- [ ] **The API**: Add it (v2) (depends: 1.1; priority: -7)\n",
        "plan.md",
    ).tasks
    assert (first.id, first.name, first.title, first.ticked) == ("1-1", "1.1", "Set up", True)
    assert (second.id, second.name, second.title) == ("The-API", "The API", "Add it (v2)")
    assert (second.depends, second.priority, second.ticked) == (("1-1",), -7, False)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (
            """
- [ ] A: Add it (v2) (depends: none; touches: src/api/**, ./docs/,; tests: may  change)
- [ ] B: b (touches: *.lock)
- [ ] C: c (tests: may change)
- [ ] D: d (tests: all)
""",
            "plan.md",
        ),
        (
            json.dumps(
                {
                    "tasks": [
                        {
                            "id": "A",
                            "title": "Add it (v2)",
                            "touches": ["src/api/**", "./docs/"],
                            "tests": "may change",
                        },
                        {"id": "B", "touches": ["*.lock"]},
                        {"id": "C", "tests": "may change"},
                        {"id": "D", "title": "d (tests: all)"},
                    ]
                }
            ),
            "plan.json",
        ),
    ],
    ids=["markdown", "JSON"],
)
def test_a_task_says_which_files_it_touches_and_whether_its_tests_may_change(
    text: str, name: str
) -> None:
    found = read_plan(text, name).tasks
    assert found[0].title == "Add it (v2)"
    assert [task.touches for task in found] == [("src/api/**", "./docs/"), ("*.lock",), (), ()]
    assert [task.may_change_tests for task in found] == [True, False, True, False]
    assert found[3].title == "d (tests: all)"


@pytest.mark.parametrize(
    ("bracket", "problem"),
    [
        ("touches: ../x", 'line 1: "../x" is no path in the repository'),
        ("tests: may fail", 'line 1: tests: "may fail" is not "may change"'),
        ("touches: a; touches: b", 'line 1: a second "touches" in the bracket'),
    ],
)
def test_what_is_wrong_with_files_and_tests_of_a_task(bracket: str, problem: str) -> None:
    assert problems(f"- [ ] A: a ({bracket})\n") == (problem,)


MARKDOWN: dict[str, tuple[str, dict[str, tuple[str, ...]]]] = {
    "several dependencies, by name and by id": (
        "- [ ] A.1: a\n- [ ] B: b\n- [ ] C: c (depends: A-1, B)\n- [ ] D: (depends: A.1)\n",
        {"A-1": (), "B": (), "C": ("A-1", "B"), "D": ("A-1",)},
    ),
    "the same dependency twice, and none": (
        "- [ ] A: a (depends: none)\n- [ ] B: b (Depends: A , A,)\n",
        {"A": (), "B": ("A",)},
    ),
    "a task called none": (
        "- [ ] none: a\n- [ ] B: b (depends: none)\n",
        {"none": (), "B": ("none",)},
    ),
    "a nested task comes before the one around it": (
        "- [ ] A: a\n  - [ ] B: b\n    - [ ] C: c\n- [ ] D: d\n",
        {"A": ("B",), "B": ("C",), "C": (), "D": ()},
    ),
    "unless it names that one": ("- [ ] A: a\n  - [ ] B: b (depends: A)\n", {"A": (), "B": ("A",)}),
    "a nested box without an id is a step": (
        "- [ ] A: a\n  - [ ] write it\n    - [ ] B: b\n",
        {"A": ("B",), "B": ()},
    ),
    "numbers without a colon": (
        "- [ ] 1. One\n- [ ] 1.1 Two (depends: 1)\n- [ ] T001 [P] Three\n",
        {"1": (), "1-1": ("1",), "T001": ()},
    ),
    "nothing in fences, comments and quotations": (
        "- [ ] A: a\n```\n- [ ] B: b\n```\n<!--\n- [ ] C: c\n-->\n> - [ ] D: d\n",
        {"A": ()},
    ),
    "a colon inside of a word is none": ("- [ ] A: see https://a.b/c\n", {"A": ()}),
    "line ends of Windows and a mark": ("\ufeff- [ ] A: a\r\n- [ ] B: b\r\n", {"A": (), "B": ()}),
}


@pytest.mark.parametrize(("text", "expected"), MARKDOWN.values(), ids=MARKDOWN)
def test_markdown(text: str, expected: dict[str, tuple[str, ...]]) -> None:
    assert depends(read_plan(text, "plan.md")) == expected


BROKEN = {
    "empty": ("", ["the plan has no tasks"]),
    "only prose": ("# Plan\n\nNothing.\n", ["the plan has no tasks"]),
    "no id": ("- [ ] Do it\n", ['line 1: "Do it" has no id: a task is `- [ ] ID: title`']),
    "an unknown dependency": (
        "\n- [ ] A: a (depends: B)\n",
        ['line 2: "A" depends on "B", which is no task'],
    ),
    "a cycle": (
        "- [ ] C: c (depends: A)\n- [ ] A: a (depends: B)\n- [ ] B: b (depends: A)\n",
        ["line 2: the tasks depend on each other: A -> B -> A"],
    ),
    "a task that depends on itself": (
        "- [ ] A: a (depends: A)\n",
        ["line 1: the tasks depend on each other: A -> A"],
    ),
    "two cycles": (
        "- [ ] A: a (depends: A)\n- [ ] 1.1: b (depends: 2.2)\n- [ ] 2.2: c (depends: 1.1)\n",
        [
            "line 1: the tasks depend on each other: A -> A",
            "line 2: the tasks depend on each other: 1.1 -> 2.2 -> 1.1",
        ],
    ),
    "a duplicate": (
        "- [ ] A: a\n- [x] A: b\n",
        ['line 2: a second task "A", as the one in line 1'],
    ),
    "names with the same id": (
        "- [ ] 1.1: a\n- [ ] 1 1: b\n",
        ['line 2: "1 1" and "1.1" have the same id 1-1, as the one in line 1'],
    ),
    "a priority that is no number": (
        "- [ ] A: a (priority: high)\n",
        ['line 1: the priority "high" is not a whole number from -1000000 to 1000000'],
    ),
    "a priority that is too large": (
        "- [ ] A: a (priority: 1000001)\n",
        ['line 1: the priority "1000001" is not a whole number from -1000000 to 1000000'],
    ),
    "a word that is not known": (
        "- [ ] A: a (depends: none; owner: B)\n",
        ['line 1: none of depends, priority, touches, tests: "owner" in the bracket'],
    ),
    "a word twice": (
        "- [ ] A: a (priority: 1; priority: 2)\n",
        ['line 1: a second "priority" in the bracket'],
    ),
    "a bracket in the middle": (
        "- [ ] A: a (depends: B) soon\n",
        ["line 1: the bracket with depends, priority or touches does not end the line"],
    ),
    "all at once": (
        "- [ ] A: a (depends: X)\n- [ ] B: b (priority: y)\n- [ ] A: c\n",
        [
            'line 1: "A" depends on "X", which is no task',
            'line 2: the priority "y" is not a whole number from -1000000 to 1000000',
            'line 3: a second task "A", as the one in line 1',
        ],
    ),
}


@pytest.mark.parametrize(("text", "expected"), BROKEN.values(), ids=BROKEN)
def test_what_is_wrong_is_named(text: str, expected: list[str]) -> None:
    assert list(problems(text)) == expected


AGENTS = """- [ ] 1.1: a
## Supporting agents
- db-expert-1: Database Expert
  - type: domain_expert
  - domain: Databases
  - tasks: 1.1
  - keywords: schema, index
  - request types: task, advice
- sec:
  - type: quality_reviewer
```
- not: this
```
## Notes
- nor: this
"""


def test_supporting_agents() -> None:
    first, second = read_plan(AGENTS, "plan.md").supporting_agents
    assert (first.agent_id, first.agent_type, first.name) == (
        "db-expert-1",
        "domain_expert",
        "Database Expert",
    )
    assert (first.domain, first.applicable_tasks) == ("Databases", ("1-1",))
    assert (first.keyword_triggers, first.request_types) == (
        ("schema", "index"),
        ("task", "advice"),
    )
    assert (second.name, second.request_types) == ("sec", ("task", "advice", "review"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- a: A\n", "line 3: a supporting agent: agent_type: Field required"),
        ("- a: A\n  - type: hero\n", "line 3: a supporting agent: agent_type: Input should be"),
        ("- a: A\n  - colour: red\n", 'line 4: "colour" is no property of a supporting agent'),
        ("- a: A\n  - type: advisor\n  - type: advisor\n", 'line 5: a second "type"'),
        ("- a: A\n  - type: advisor\n  - tasks: Z\n", 'line 3: a supporting agent is for "Z"'),
        ("- a: A\n  - type: advisor\n- a: B\n  - type: advisor\n", "line 5: a second supporting"),
    ],
)
def test_supporting_agents_that_are_wrong(text: str, expected: str) -> None:
    assert any(
        one.startswith(expected) for one in problems("- [ ] A: a\n# Supporting agents\n" + text)
    )


def test_json() -> None:
    document = {
        "tasks": [
            {"id": "1.1", "title": "a\nb"},
            {"id": "B", "title": "b", "depends": ["1.1"], "priority": 4, "ticked": True},
        ],
        "supporting_agents": [
            {
                "agent_id": "x",
                "agent_type": "advisor",
                "created_at": "now",
                "applicable_tasks": ["1.1"],
            }
        ],
    }
    plan = read_plan(json.dumps(document), "plan.json")
    assert depends(plan) == {"1-1": (), "B": ("1-1",)}
    assert (plan.tasks[0].title, plan.tasks[1].priority, plan.tasks[1].ticked) == ("a b", 4, True)
    assert plan.supporting_agents[0].applicable_tasks == ("1-1",)
    assert read_plan("\n " + json.dumps(document), "plan") == plan


JSON_BROKEN = {
    "no JSON": ('{"tasks":\n [}', ["line 2: no JSON: Expecting value"]),
    "no object": ("[]", ['line 1: the document is no object with a list "tasks"']),
    "a key twice": (
        '{"tasks": [], "tasks": []}',
        ["no JSON that can be used: the key 'tasks' stands twice"],
    ),
    "no list": ('{"tasks": 1}', ['"tasks" is no list']),
    "an unknown key": (
        '{"task": [], "tasks": [{"id": "A"}]}',
        ['the key "task" is not known (known: tasks, supporting_agents)'],
    ),
    "elements": (
        (
            '{"x\\"[": [1,\n2], "tasks": [\n 1,\n {"id": 2},\n\n {"id": "A", "depends": "B", "priority": true, '
            '"title": 1, "ticked": 0}\n,{"id":"B", "depends": ["Z"]}], "supporting_agents": [\n{"agent_type": 1}]}'
        ),
        [
            'the key "x"[" is not known (known: tasks, supporting_agents)',
            'line 3: an element of "tasks" is no object',
            'line 4: a task has no "id": a text of 1 to 128 characters',
            'line 6: the title of "A" is no text',
            'line 6: "ticked" of "A" is neither true nor false',
            'line 6: "depends" of "A" is no list of texts',
            'line 6: the priority "True" is not a whole number from -1000000 to 1000000',
            'line 7: "B" depends on "Z", which is no task',
            "line 8: a supporting agent: agent_id: Field required",
        ],
    ),
    "agents on one line": (
        (
            '{"tasks": [{"id": "A"}], "supporting_agents": [{"agent_id": "a", "agent_type": "advisor"},'
            '{"agent_id": "a", "agent_type": "advisor"}]}'
        ),
        ["line 1: a second supporting agent a, as the one in line 1"],
    ),
}


@pytest.mark.parametrize(("text", "expected"), JSON_BROKEN.values(), ids=JSON_BROKEN)
def test_json_that_is_wrong(text: str, expected: list[str]) -> None:
    found = problems(text, "plan.JSON")
    assert [one.replace('x\\"', 'x"') for one in found] == expected


def test_other_formats_and_sizes_are_refused() -> None:
    assert problems("tasks: []", "plan.yaml") == (
        "a plan is markdown or JSON, and no other format is read",
    )
    assert problems("x" * (MOST_BYTES + 1)) == ("the plan is larger than 8 MB",)
    assert problems("é" * (MOST_BYTES // 2 + 1)) == ("the plan is larger than 8 MB",)
    many = '{"tasks": [' + ",".join(['{"id":"A"}'] * 100_001) + "]}"
    assert problems(many, "plan.json") == ("100,001 tasks are more than 100,000",)


def test_of_very_many_problems_the_first_are_named() -> None:
    found = problems("- [ ] x\n" * 1000)
    assert len(found) == 101
    assert found[-1] == "and 900 more"


def test_a_chain_of_ten_thousand_is_read_fast_in_both_directions() -> None:
    count = 10_000
    forth = [f"- [ ] T{at}: t (depends: T{at + 1})\n" for at in range(count)]
    with cpu_limit(30):
        plan = read_plan("".join(forth) + f"- [ ] T{count}: t\n", "plan.md")
    assert plan.tasks[0].depends == ("T1",)
    [circle] = problems("".join(forth) + f"- [ ] T{count}: t (depends: T0)\n")
    assert circle.startswith("line 1: the tasks depend on each other: T0 -> T1 -> ")
    assert re.search(r"… \d+ more … .* -> T0$", circle)
    assert len(circle) < 300


def test_many_ways_back_cost_little() -> None:
    text = "".join(f"- [ ] T{at}: t (depends: T{at + 1}, T0)\n" for at in range(20_000))
    with cpu_limit():
        found = problems(text)
    assert sum("depend on each other: T0 -> T1 -> " in one for one in found) == 50


IDS = {"a": "a", "1.1": "1-1", "a b": "a-b", "_x_": "x", "A_b-c": "A_b-c", "1. ": "1"}


@pytest.mark.parametrize(("name", "expected"), IDS.items())
def test_an_id_of_a_name(name: str, expected: str) -> None:
    assert make_id(name) == expected


@pytest.mark.parametrize(
    "names", [("é", "è"), ("任务一", "任务二"), ("a" * 200, "a" * 201), ("?", "!")]
)
def test_names_that_lose_something_stay_two(names: tuple[str, str]) -> None:
    first, second = (make_id(name) for name in names)
    assert first != second


@given(st.text())
def test_every_name_has_an_id(name: str) -> None:
    assert is_id(make_id(name))


def test_no_task_has_a_reserved_id() -> None:
    assert is_id(make_id("registry"))


PIECES = st.sampled_from(
    [
        "- [ ] ",
        "  - [x] ",
        "A",
        "B",
        "1.1",
        ": ",
        "(depends: ",
        "priority: ",
        ")",
        ";",
        ",",
        "\n",
        "# Supporting agents\n",
        "- a: b\n",
        "  - type: advisor\n",
        "```\n",
        '{"tasks": [',
        '{"id": "A"}',
        "]}",
        "\ud800",
        "\x00",
        "é",
        "9" * 5000,
    ]
)


@given(st.one_of(st.text(), st.lists(PIECES).map("".join)), st.sampled_from(["", "p.md", "p.json"]))
def test_reading_never_crashes(text: str, name: str) -> None:
    try:
        plan = read_plan(text, name)
    except PlanProblem:
        return
    ids = [task.id for task in plan.tasks]
    assert len(set(ids)) == len(ids)
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "id",
                    "title",
                    "depends",
                    "priority",
                    "agent_id",
                    "agent_type",
                    "applicable_tasks",
                    "name",
                    "x",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@given(st.lists(JSON_VALUES, max_size=4), st.lists(JSON_VALUES, max_size=3))
def test_any_json_is_a_plan_or_a_problem(tasks: list[object], agents: list[object]) -> None:
    try:
        read_plan(json.dumps({"tasks": tasks, "supporting_agents": agents}), "p.json")
    except PlanProblem:
        return


def test_the_plans_in_the_documentation_are_plans() -> None:
    page = (ROOT / "docs" / "guide" / "plan.md").read_text()
    examples = re.findall(r"^````?(markdown|json)\n(.*?)^````?$", page, re.MULTILINE | re.DOTALL)
    assert {kind for kind, _ in examples} == {"markdown", "json"}
    first, second = (read_plan(text, f"plan.{kind}") for kind, text in examples[:2])
    assert first == second
    assert first.supporting_agents
