"""Read from an agent's events what its session used; one meter per agent CLI."""

from abc import ABC, abstractmethod
from typing import ClassVar

from guard.core.base.agent_json import Event, count_in, name_in, number_in, part_of, text_of
from guard.core.cost.usage import MOST_MODELS, CostBasis, ModelUsage, SessionUsage, merge_models

_MOST_MESSAGES = 1000
_MOST_DOLLARS = 1e12
_SYNTHETIC = "<synthetic>"
Tokens = tuple[int, int, int]
"""Input tokens without those from a cache, those from a cache, and output tokens."""


class Meter(ABC):
    """Adds up what the events of one session tell."""

    kinds: ClassVar[tuple[object, ...]]
    """The types of the events that it reads."""

    def __init__(self) -> None:
        self.turns: int | None = None

    @abstractmethod
    def take(self, event: Event) -> None:
        """Read one more event of these types, also one of a subagent."""

    @abstractmethod
    def read(self) -> SessionUsage | None:
        """Return what is known so far; None if nothing is."""

    def _count_turn(self) -> None:
        self.turns = (self.turns or 0) + 1


class _Sums:
    """Adds up tokens and dollars for each model, in plain numbers, because a stream can have a million messages."""

    def __init__(self) -> None:
        self._models: dict[str | None, list[int]] = {}
        self._costs: dict[str | None, float] = {}

    def add(self, model: str | None, tokens: Tokens, cost: float | None = None) -> None:
        sums = self._models.get(model)
        if sums is None:
            if len(self._models) >= MOST_MODELS - 1:
                model = None
            sums = self._models.setdefault(model, [0, 0, 0])
        sums[0] += tokens[0]
        sums[1] += tokens[1]
        sums[2] += tokens[2]
        if cost is not None:
            self._costs[model] = self._costs.get(model, 0.0) + cost

    @property
    def models(self) -> tuple[ModelUsage, ...]:
        return tuple(
            ModelUsage(
                model=model,
                input_tokens=given,
                cached_tokens=cached,
                output_tokens=answer,
                cost_usd=self._costs.get(model),
            )
            for model, (given, cached, answer) in self._models.items()
        )


class _Messages:
    """Adds up messages whose usage is in several events: the last event of a message counts.

    Messages of subagents come in between, so there is one current message for each agent.
    """

    def __init__(self) -> None:
        self._done = _Sums()
        self._current: dict[str, tuple[str, str | None, Tokens]] = {}

    def take(self, agent: str, message: str, model: str | None, tokens: Tokens) -> None:
        known = self._current.get(agent)
        if known is None:
            if len(self._current) >= _MOST_MESSAGES:
                self._done.add(*self._current.pop(next(iter(self._current)))[1:])
        elif known[0] != message or not message:
            self._done.add(known[1], known[2])
        self._current[agent] = message, model, tokens

    def clear(self) -> None:
        self._done, self._current = _Sums(), {}

    def sum(self) -> tuple[ModelUsage, ...]:
        current = _Sums()
        for _, model, tokens in self._current.values():
            current.add(model, tokens)
        return merge_models((*self._done.models, *current.models))


class ClaudeMeter(Meter):
    """Reads Claude Code.

    A stream can have several results. Their `modelUsage` is cumulative, also over the resumed session, and has the subagents;
    `model_usage_since_last_result`, which only streams have, is what this process added. `usage` has no subagents.
    """

    kinds = ("assistant", "system", "result")

    includes_cached: ClassVar[bool] = False
    """Whether the input tokens include those from a cache."""

    def __init__(self) -> None:
        super().__init__()
        self._messages = _Messages()
        self._model: str | None = None
        self._latest: tuple[object, str | None] = (None, None)
        """The model of the newest message as the event has it, and as it is named here."""
        self._basis: CostBasis = "billed"
        self._told: tuple[ModelUsage, ...] = ()
        self._is_cumulative = False
        self._has_result = False

    def take(self, event: Event) -> None:
        match event.get("type"):
            case "assistant":
                self._take_message(event)
            case "system" if event.get("subtype") == "init":
                self._model = name_in(event.get("model")) or self._model
                self._latest = None, self._model
                # On a subscription the dollars are what the tokens would cost.
                self._basis = "estimated" if event.get("apiKeySource") == "none" else "billed"
            case "result":
                self._take_result(event)

    def _take_message(self, event: Event) -> None:
        message = part_of(event, "message")
        if message.get("model") != self._latest[0]:
            self._latest = message.get("model"), name_in(message.get("model")) or self._model
        model = self._latest[1]
        if model != _SYNTHETIC and "usage" in message:
            agent = text_of(event.get("parent_tool_use_id"))
            tokens = self._tokens(part_of(message, "usage"))
            self._messages.take(agent, text_of(message.get("id")), model, tokens)

    def _take_result(self, event: Event) -> None:
        self._messages.clear()
        turns = count_in(event.get("num_turns"))
        if turns:
            self.turns = (self.turns or 0) + turns
        added = event.get("model_usage_since_last_result")
        if isinstance(added, dict):
            found = _claude_models(added)
            self._told = merge_models((*self._told, *found)) if self._has_result else found
        elif "modelUsage" in event:
            self._told, self._is_cumulative = _claude_models(part_of(event, "modelUsage")), True
        elif "usage" in event:
            self._told = (self._envelope(event),)
        if not self._told and "usage" in event:
            self._told = (self._envelope(event),)
        self._has_result = True

    def _envelope(self, event: Event) -> ModelUsage:
        given, cached, answer = self._tokens(part_of(event, "usage"))
        return ModelUsage(
            model=self._model,
            input_tokens=given,
            cached_tokens=cached,
            output_tokens=answer,
            cost_usd=_dollars(event.get("total_cost_usd")),
        )

    def _tokens(self, usage: Event) -> Tokens:
        cached = count_in(usage.get("cache_read_input_tokens"))
        given = count_in(usage.get("input_tokens"))
        if self.includes_cached:
            given = max(0, given - cached)
        written = count_in(usage.get("cache_creation_input_tokens"))
        return given + written, cached, count_in(usage.get("output_tokens"))

    def read(self) -> SessionUsage | None:
        running = self._messages.sum()
        if not self._has_result and not running:
            return None
        models = merge_models((*self._told, *running))
        has_cost = any(each.cost_usd is not None for each in models)
        return SessionUsage(
            models=models,
            turns=self.turns,
            basis=self._basis if has_cost else "unknown",
            is_cumulative=self._is_cumulative,
            is_partial=bool(running),
        )


def _claude_models(usages: Event) -> tuple[ModelUsage, ...]:
    return merge_models(
        ModelUsage(
            model=name_in(name) or None,
            input_tokens=count_in(part_of(usages, name).get("inputTokens"))
            + count_in(part_of(usages, name).get("cacheCreationInputTokens")),
            cached_tokens=count_in(part_of(usages, name).get("cacheReadInputTokens")),
            output_tokens=count_in(part_of(usages, name).get("outputTokens")),
            cost_usd=_dollars(part_of(usages, name).get("costUSD")),
        )
        for name in usages
    )


class QwenMeter(ClaudeMeter):
    """Reads Qwen Code: Claude's events, where the input includes what came from a cache, and no cost."""

    includes_cached = True


class CodexMeter(Meter):
    """Reads Codex: the totals of the whole thread, at the end of each turn, without model and cost."""

    kinds = ("turn.completed", "turn.failed")

    def __init__(self) -> None:
        super().__init__()
        self._told: ModelUsage | None = None

    def take(self, event: Event) -> None:
        self._count_turn()
        usage = part_of(event, "usage")
        if event.get("type") == "turn.completed" and usage:
            cached = count_in(usage.get("cached_input_tokens"))
            self._told = ModelUsage(
                model=None,
                input_tokens=max(0, count_in(usage.get("input_tokens")) - cached),
                cached_tokens=cached,
                output_tokens=count_in(usage.get("output_tokens")),
            )

    def read(self) -> SessionUsage | None:
        if self._told is None:
            return None if self.turns is None else SessionUsage(models=(), turns=self.turns)
        return SessionUsage(models=(self._told,), turns=self.turns, is_cumulative=True)


class GeminiMeter(Meter):
    """Reads Gemini CLI: figures for each model at the end; `json` and `stream-json` name them differently."""

    kinds = ("result", None)

    def __init__(self) -> None:
        super().__init__()
        self._told: tuple[ModelUsage, ...] | None = None

    def take(self, event: Event) -> None:
        stats = event.get("stats")
        if not stats or not isinstance(stats, dict):
            return
        models = part_of(stats, "models")
        found = [_gemini_model(name, part_of(models, name)) for name in models]
        if not found and "input_tokens" in stats:
            found = [_gemini_model(None, stats)]
        self._told = merge_models(found)
        requests = [part_of(models, name, "api").get("totalRequests") for name in models]
        if any(requests):
            self.turns = sum(count_in(each) for each in requests)

    def read(self) -> SessionUsage | None:
        return None if self._told is None else SessionUsage(models=self._told, turns=self.turns)


def _gemini_model(name: str | None, given: Event) -> ModelUsage:
    tokens = part_of(given, "tokens")
    if tokens:
        cached, total = count_in(tokens.get("cached")), count_in(tokens.get("prompt"))
        answer = count_in(tokens.get("candidates"))
    else:
        cached, total = count_in(given.get("cached")), count_in(given.get("input_tokens"))
        answer = count_in(given.get("output_tokens"))
    return ModelUsage(
        model=name_in(name) or None,
        input_tokens=max(0, total - cached),
        cached_tokens=cached,
        output_tokens=answer,
    )


class OpenCodeMeter(Meter):
    """Reads OpenCode: each step has its own tokens and cost; the model is not named."""

    kinds = ("step_finish",)

    def __init__(self) -> None:
        super().__init__()
        self._steps = _Sums()

    def take(self, event: Event) -> None:
        self._count_turn()
        part = part_of(event, "part")
        tokens, cache = part_of(part, "tokens"), part_of(part, "tokens", "cache")
        if not tokens and "cost" not in part:
            return
        given = count_in(tokens.get("input")) + count_in(cache.get("write"))
        answer = count_in(tokens.get("output")) + count_in(tokens.get("reasoning"))
        used = given, count_in(cache.get("read")), answer
        self._steps.add(None, used, _dollars(part.get("cost")))

    def read(self) -> SessionUsage | None:
        models = self._steps.models
        if not models:
            return None if self.turns is None else SessionUsage(models=(), turns=self.turns)
        has_cost = models[0].cost_usd is not None
        basis: CostBasis = "billed" if has_cost else "unknown"
        return SessionUsage(models=models, turns=self.turns, basis=basis)


class CopilotMeter(Meter):
    """Reads Copilot CLI: the tokens of each call where it prints them; it counts its costs in requests, not dollars."""

    kinds = ("assistant.turn_end", "assistant.usage")

    def __init__(self) -> None:
        super().__init__()
        self._calls = _Sums()

    def take(self, event: Event) -> None:
        match event.get("type"):
            case "assistant.turn_end" if not part_of(event, "data").get("parentToolCallId"):
                self._count_turn()
            case "assistant.usage":
                data = part_of(event, "data")
                cached = count_in(data.get("cacheReadTokens"))
                given = max(0, count_in(data.get("inputTokens")) - cached)
                used = given, cached, count_in(data.get("outputTokens"))
                self._calls.add(name_in(data.get("model")) or None, used)

    def read(self) -> SessionUsage | None:
        models = self._calls.models
        if not models and self.turns is None:
            return None
        return SessionUsage(models=models, turns=self.turns)


def _dollars(value: object) -> float | None:
    number = number_in(value)
    return number if number is not None and 0 <= number <= _MOST_DOLLARS else None
