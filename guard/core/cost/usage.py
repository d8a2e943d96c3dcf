"""What an iteration used: dollars, tokens, turns, models; from what its agent CLI tells, and the user's prices."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from guard.core.base.fields import Count, Frozen, Line

CostBasis = Literal["billed", "estimated", "unknown"]
"""Where a figure in dollars comes from: the agent CLI names it for an account that pays by use; it is computed from list
prices or the user's own; or there is none."""
Dollars = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
MOST_MODELS = 20


class TokenPrice(NamedTuple):
    """Dollars for one million tokens."""

    input: float
    cached: float
    output: float


class ModelUsage(Frozen):
    """What one model was used for."""

    model: Line | None
    """None if the agent CLI names no model."""
    input_tokens: Count = 0
    """Without those that came from a cache."""
    cached_tokens: Count = 0
    output_tokens: Count = 0
    cost_usd: Dollars | None = None

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.cached_tokens + self.output_tokens

    def plus(self, other: "ModelUsage") -> "ModelUsage":
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return ModelUsage(
            model=self.model,
            input_tokens=self.input_tokens + other.input_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=sum(costs) if costs else None,
        )

    def minus(self, before: "ModelUsage") -> "ModelUsage | None":
        """Return the difference; None if the counter was set back in between."""
        cost = None
        if self.cost_usd is not None:
            cost = self.cost_usd - (before.cost_usd or 0.0)
        less = {
            name: getattr(self, name) - getattr(before, name)
            for name in ("input_tokens", "cached_tokens", "output_tokens")
        }
        if any(value < 0 for value in less.values()) or (cost is not None and cost < -1e-9):
            return None
        return ModelUsage(
            model=self.model, **less, cost_usd=None if cost is None else max(0.0, round(cost, 12))
        )


Models = Annotated[tuple[ModelUsage, ...], Field(max_length=MOST_MODELS)]


class SessionUsage(Frozen):
    """What the output of one agent process tells of its usage."""

    models: Models
    turns: Count | None = None
    basis: CostBasis = "unknown"
    is_cumulative: bool = False
    """Whether these are totals of a session that may be older than the process."""
    is_partial: bool = False
    """Whether the agent ended before it told the rest."""


class Usage(Frozen):
    """What an iteration used, as far as its agent CLI tells."""

    cost_usd: Dollars | None = None
    cost_basis: CostBasis = "unknown"
    input_tokens: Count | None = None
    """Without those that came from a cache."""
    cached_tokens: Count | None = None
    output_tokens: Count | None = None
    model: Line | None = None
    """The one that cost most, or that used most tokens if the costs are not known."""
    models: tuple[Line, ...] = ()
    turns: Count | None = None
    seconds: Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)] | None = None
    """How long the agent ran; null if guard did not see it."""
    partial: bool = False
    """Whether the agent ended before it told all: then it used at least this."""
    by_model: Models = ()
    """The same figures for each model."""

    @property
    def tokens(self) -> int | None:
        """Return all tokens, with those from a cache; None if they are not known."""
        known = (self.input_tokens, self.cached_tokens, self.output_tokens)
        return None if self.input_tokens is None else sum(each or 0 for each in known)


UNKNOWN = Usage.model_construct()


def measure_usage(
    told: SessionUsage | None,
    *,
    before: SessionUsage | None = None,
    had_history: bool = False,
    prices: Mapping[str, TokenPrice] | None = None,
    agent: str | None = None,
    seconds: float | None = None,
) -> Usage:
    """Return what an iteration used; `before` are the totals of its session when it began.

    Without them the totals of a session that `had_history` say nothing of the iteration alone. Models that the agent CLI
    gives no cost for are priced by their names, or by the name of the agent if it names no model.
    """
    clock = None if seconds is None else round(seconds, 3)
    if told is None:
        return Usage(seconds=clock)
    models = told.models
    if told.is_cumulative:
        if before is None and had_history:
            return Usage(seconds=clock, turns=told.turns, models=_names(models))
        models = _subtract(models, before.models if before is not None else ())
    basis, models = _price(told.basis, models, prices or {}, agent)
    return sum_models(models, basis, turns=told.turns, seconds=clock, partial=told.is_partial)


def _subtract(
    models: tuple[ModelUsage, ...], before: tuple[ModelUsage, ...]
) -> tuple[ModelUsage, ...]:
    known = {each.model: each for each in before}
    less = [each.minus(known[each.model]) if each.model in known else each for each in models]
    if any(each is None for each in less):
        return models  # The session counts anew.
    return tuple(
        each
        for each, total in zip(less, models, strict=True)
        if each is not None and (each.tokens or each.cost_usd or total.model not in known)
    )


def _price(
    basis: CostBasis,
    models: tuple[ModelUsage, ...],
    prices: Mapping[str, TokenPrice],
    agent: str | None,
) -> tuple[CostBasis, tuple[ModelUsage, ...]]:
    priced = []
    for each in models:
        price = prices.get(each.model or "") or prices.get(agent or "" if not each.model else "")
        if each.cost_usd is None and price is not None:
            each, basis = each.model_copy(update={"cost_usd": _cost(each, price)}), "estimated"
        priced.append(each)
    return basis, tuple(priced)


def _cost(used: ModelUsage, price: TokenPrice) -> float:
    total = (
        used.input_tokens * price.input
        + used.cached_tokens * price.cached
        + used.output_tokens * price.output
    )
    return round(total / 1e6, 12)


def sum_models(
    models: tuple[ModelUsage, ...],
    basis: CostBasis,
    *,
    turns: int | None = None,
    seconds: float | None = None,
    partial: bool = False,
) -> Usage:
    """Add up what several models were used for; a cost that is not known of one of them makes the sum partial."""
    if not models:
        return Usage(turns=turns, seconds=seconds, partial=partial)
    costs = [each.cost_usd for each in models if each.cost_usd is not None]
    return Usage(
        cost_usd=round(sum(costs), 12) if costs else None,
        cost_basis=basis if costs else "unknown",
        input_tokens=sum(each.input_tokens for each in models),
        cached_tokens=sum(each.cached_tokens for each in models),
        output_tokens=sum(each.output_tokens for each in models),
        model=_main_model(models),
        models=_names(models),
        turns=turns,
        seconds=seconds,
        partial=partial or 0 < len(costs) < len(models),
        by_model=models,
    )


def _main_model(models: tuple[ModelUsage, ...]) -> str | None:
    named = [each for each in models if each.model is not None]
    ordered = sorted(named, key=lambda each: (each.cost_usd or 0.0, each.tokens), reverse=True)
    return ordered[0].model if ordered else None


def _names(models: tuple[ModelUsage, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.model for each in models if each.model is not None))


_WORST_FIRST: tuple[CostBasis, ...] = ("estimated", "billed")


def total_usage(usages: Iterable[Usage]) -> Usage:
    """Add up the usage of several iterations; what one of them does not tell makes the sum partial."""
    listed = list(usages)
    models = merge_models(each for usage in listed for each in usage.by_model)
    bases = {usage.cost_basis for usage in listed}
    basis: CostBasis = next((each for each in _WORST_FIRST if each in bases), "unknown")
    turns = [usage.turns for usage in listed if usage.turns is not None]
    seconds = [usage.seconds for usage in listed if usage.seconds is not None]
    untold = any(usage.cost_usd is None or usage.input_tokens is None for usage in listed)
    is_told = any(usage.input_tokens is not None for usage in listed)
    return sum_models(
        models,
        basis,
        turns=sum(turns) if turns else None,
        seconds=round(sum(seconds), 3) if seconds else None,
        partial=any(usage.partial for usage in listed) or (untold and is_told),
    )


def merge_models(models: Iterable[ModelUsage]) -> tuple[ModelUsage, ...]:
    """Add up what the same model was used for; of too many models the last ones are one entry without a name."""
    merged: dict[str | None, ModelUsage] = {}
    for each in models:
        name = each.model
        if name not in merged and len(merged) >= MOST_MODELS - 1:
            name = None
        named = each if each.model == name else each.model_copy(update={"model": None})
        merged[name] = merged[name].plus(named) if name in merged else named
    return tuple(merged.values())
