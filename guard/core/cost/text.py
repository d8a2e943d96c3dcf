"""Say for people what was used."""

from guard.core.base.text import escape, plural
from guard.core.cost.usage import Usage

_MOST_MODELS = 3


def dollars(amount: float) -> str:
    """Return an amount as people write it; of a small one two digits that say something."""
    if amount == 0 or amount >= 0.1:
        return f"{amount:,.2f} USD"
    return f"{amount:.2g} USD" if amount >= 1e-4 else f"{amount:.6f} USD".rstrip("0")


def count_of(tokens: int) -> str:
    """Return a large number shortened."""
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if tokens >= size * 10:
            return f"{tokens / size:,.0f}{letter}"
        if tokens >= size:
            return f"{tokens / size:.1f}{letter}"
    return str(tokens)


def usage_line(usage: Usage) -> str | None:
    """Return what was used on one line; None if nothing is known of it."""
    if usage.input_tokens is None and usage.cost_usd is None:
        return None
    cost = "cost unknown"
    if usage.cost_usd is not None:
        cost = f"{dollars(usage.cost_usd)} ({usage.cost_basis})"
    parts = [f"at least {cost}" if usage.partial and usage.cost_usd is not None else cost]
    cached = f", {count_of(usage.cached_tokens)} cached" if usage.cached_tokens else ""
    parts.append(
        f"tokens: {count_of(usage.input_tokens or 0)} in{cached}, {count_of(usage.output_tokens or 0)} out"
    )
    parts += [plural(usage.turns, "turn")] if usage.turns else []
    models = usage.models[:_MOST_MODELS]
    more = len(usage.models) - len(models)
    names = ", ".join(map(escape, models)) + (f" and {more} more" if more else "")
    return "; ".join([*parts, *([names] if models else [])])
