"""Reading a plan: markdown or JSON in, a plan that holds together out, or all that is wrong with it."""

from guard.core.base.text import valid
from guard.core.plan.drafts import PlanProblem
from guard.core.plan.from_json import read_json
from guard.core.plan.from_markdown import read_markdown
from guard.core.plan.model import Plan
from guard.core.plan.validate import plan_of

__all__ = ["MOST_BYTES", "PlanProblem", "read_plan"]

MOST_BYTES = 8 * 1024 * 1024
_MARKDOWN = (".md", ".markdown", ".txt")
_NOT_READ = (".yaml", ".yml", ".toml")


def read_plan(text: str, name: str) -> Plan:
    """The plan in a text, by the suffix of its file's name, or by its first sign if that tells nothing.

    Raises PlanProblem with every problem and its line.
    """
    if len(text) > MOST_BYTES or len(text.encode(errors="surrogatepass")) > MOST_BYTES:
        raise PlanProblem((f"the plan is larger than {MOST_BYTES // 2**20} MB",))
    suffix = name.casefold()
    if suffix.endswith(_NOT_READ):
        raise PlanProblem(("a plan is markdown or JSON, and no other format is read",))
    text = valid(text).removeprefix("\ufeff")
    is_json = suffix.endswith(".json") or (
        not suffix.endswith(_MARKDOWN) and text.lstrip().startswith("{")
    )
    return plan_of(read_json(text) if is_json else read_markdown(text))
