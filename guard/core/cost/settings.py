"""The settings of cost."""

import json
from contextlib import suppress
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from guard.core.base.fields import USERS, Line, Section
from guard.core.cost.usage import TokenPrice

_Price = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]


class PriceTable(Section):
    """What one million tokens of a model cost, in dollars."""

    input: _Price
    output: _Price
    cached: _Price | None = None
    """Of input tokens that came from a cache; the price of other input if it is left out."""

    @property
    def price(self) -> TokenPrice:
        cached = self.input if self.cached is None else self.cached
        return TokenPrice(self.input, cached, self.output)


def _read_tables(value: Any) -> Any:
    # A file has tables, a variable has them as JSON. Whole numbers are prices, too.
    if isinstance(value, str):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


_Prices = Annotated[dict[Line, PriceTable], BeforeValidator(_read_tables)]


class CostSettings(Section):
    """What tokens cost, where the agent CLI does not tell."""

    prices: Annotated[_Prices, Field(max_length=200, json_schema_extra=USERS)] = {}
    """Dollars for one million tokens, as tables `[cost.prices."MODEL"]` with `input`, `output` and, for input from a cache, \
`cached`. For an agent CLI that names no model (codex, opencode) the name of the CLI stands for it."""

    @property
    def price_list(self) -> dict[str, TokenPrice]:
        return {name: table.price for name, table in self.prices.items()}
