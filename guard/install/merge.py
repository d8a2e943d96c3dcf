"""Add guard's hooks to the text of a settings file, and remove them: everything else stays as it is."""

from collections.abc import Iterator
from typing import Any

from guard.core.base.fields import Frozen
from guard.install import json_edit
from guard.install.agents import AgentCli
from guard.install.jsonc import Document, Value, parse

HOOKS = "hooks"


class Origin(Frozen):
    """The state of a file before guard added its hooks, as far as the file itself does not tell."""

    created: bool = False
    """Whether there was no file."""
    blank: str | None = None
    """Its text, if that was only blanks."""
    bare: bool = False
    """Whether it held only comments: then guard also added what the file has to hold besides the hooks."""
    empty: dict[str, str] = {}
    """The text between the brackets of empty objects on the way to the hooks: `` is the whole, `hooks`, `hooks.EVENT`."""


def add_hooks(text: str | None, cli: AgentCli, command: str) -> str:
    """Return the text with guard's hooks in it, none of them twice; raise a ValueError if the text does not fit."""
    if text is None or not text.strip("\ufeff \t\r\n"):
        return json_edit.render({**cli.skeleton, HOOKS: cli.hooks(command)})
    document = _check(parse(text), cli)
    if not document.root.entries:
        for key, value in cli.skeleton.items():
            document = parse(json_edit.add(document, document.root, key, value))
    hooks = document.root.get(HOOKS)
    if hooks is None:
        return json_edit.add(document, document.root, HOOKS, cli.hooks(command))
    for event in cli.events:
        document = _with_event(document, cli, event, command)
    unwanted = [event for event in _events(document, cli) if event not in cli.events]
    for event in unwanted:
        document = _without_event(document, cli, event, Origin())
    return document.text


def remove_hooks(text: str, cli: AgentCli, origin: Origin | None) -> str | None:
    """Return the text without guard's hooks; None if there should be no file."""
    if not text.strip("\ufeff \t\r\n"):
        return text
    document = _check(parse(text), cli)
    present = list(_events(document, cli))
    if not present:
        return text
    known = origin or Origin(created=True)
    for event in present:
        document = _without_event(document, cli, event, known)
    document = _without_hooks(document, known)
    return _remainder(document, cli, known)


def read_origin(text: str | None, cli: AgentCli) -> Origin:
    """Return what guard has to remember of a file before it adds its hooks."""
    if text is None:
        return Origin(created=True)
    if not text.strip("\ufeff \t\r\n"):
        return Origin(blank=text)
    document = parse(text)
    places = {"": document.root}
    hooks = document.root.get(HOOKS)
    if hooks is not None:
        places[HOOKS] = hooks
        places |= {f"{HOOKS}.{entry.key}": entry.value for entry in hooks.entries}
    inside = {name: json_edit.interior(document, value) for name, value in places.items()}
    wanted = {"", HOOKS, *(f"{HOOKS}.{event}" for event in cli.events)}
    return Origin(
        bare=not document.root.entries,
        empty={
            name: blank for name, blank in inside.items() if blank is not None and name in wanted
        },
    )


def own_hooks(text: str, cli: AgentCli) -> dict[str, list[Any]]:
    document = _check(parse(text), cli)
    hooks = document.root.data.get(HOOKS, {})
    return {
        event: [
            handler
            for item in hooks[event]
            for handler in cli.handlers_in(item)
            if cli.is_ours(handler)
        ]
        for event in _events(document, cli)
    }


def foreign_calls(text: str, cli: AgentCli) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield the foreign hooks that call guard too: their event, their line, and the events that they call guard for."""
    hooks = _check(parse(text), cli).root.data.get(HOOKS, {})
    for event, items in hooks.items():
        for item in items if isinstance(items, list) else ():
            for handler in cli.handlers_in(item):
                if calls := cli.calls(handler):
                    yield event, handler[cli.command_key], calls


def covered_events(text: str, cli: AgentCli) -> set[str]:
    """Return the events for which foreign hooks call guard."""
    hooks = _check(parse(text), cli).root.data.get(HOOKS, {})
    return {event for event in cli.events if _is_covered(cli, event, hooks.get(event, []))}


def _is_covered(cli: AgentCli, event: str, items: list[Any]) -> bool:
    wanted = (None, "", "*", cli.matchers.get(event))
    return any(
        event in cli.calls(handler)
        for item in items
        if isinstance(item, dict) and item.get("matcher") in wanted
        for handler in cli.handlers_in(item)
    )


def _check(document: Document, cli: AgentCli) -> Document:
    # A ValueError if an object or list on the way to the hooks is something else.
    root = document.root.data
    if not isinstance(root, dict):
        raise ValueError("it should be an object")
    for key, value in cli.skeleton.items():
        if root and root.get(key) != value:
            raise ValueError(f'it should have "{key}": {value}')
    hooks = root.get(HOOKS, {})
    if not isinstance(hooks, dict):
        raise ValueError(f'"{HOOKS}" should be an object')
    for event in cli.events:
        if not isinstance(hooks.get(event, []), list):
            raise ValueError(f'"{HOOKS}.{event}" should be a list')
    return document


def _events(document: Document, cli: AgentCli) -> Iterator[str]:
    for event, items in document.root.data.get(HOOKS, {}).items():
        if isinstance(items, list) and any(
            cli.is_ours(handler) for item in items for handler in cli.handlers_in(item)
        ):
            yield event


def _items(document: Document, event: str) -> Value:
    return document.root.entry(HOOKS).value.entry(event).value


def _with_event(document: Document, cli: AgentCli, event: str, command: str) -> Document:
    hooks, wanted = document.root.entry(HOOKS).value, cli.item(event, command)
    items = hooks.get(event)
    if items is None:
        return parse(json_edit.add(document, hooks, event, [wanted]))
    ours = [
        number
        for number, item in enumerate(items.data)
        if any(cli.is_ours(handler) for handler in cli.handlers_in(item))
    ]
    if not ours and _is_covered(cli, event, items.data):
        return document  # A second hook would call guard for the same event.
    if not ours:
        return parse(json_edit.add(document, items, None, wanted))
    # In its old place, so that foreign hooks keep their number: Codex knows approved hooks by it.
    kept = next((number for number in ours if _is_only_ours(cli, items.data[number])), None)
    for number in reversed(ours):
        if number != kept:
            document = _without_item(document, cli, event, number, Origin())
    if kept is None:
        return _with_event(document, cli, event, command)
    old = _items(document, event).entries[kept].value
    return document if old.data == wanted else parse(json_edit.replace(document, old, wanted))


def _is_only_ours(cli: AgentCli, item: Any) -> bool:
    return all(cli.is_ours(handler) for handler in cli.handlers_in(item))


def _without_item(
    document: Document, cli: AgentCli, event: str, number: int, origin: Origin
) -> Document:
    # The item itself goes, too, if it has no other hooks.
    items = _items(document, event)
    entry = items.entries[number]
    if _is_only_ours(cli, entry.value.data):
        blank = origin.empty.get(f"{HOOKS}.{event}", "")
        return parse(json_edit.remove(document, items, entry, blank))
    inner = entry.value.get(HOOKS)
    while inner and (ours := [hook for hook in inner.entries if cli.is_ours(hook.value.data)]):
        document = parse(json_edit.remove(document, inner, ours[-1]))
        inner = _items(document, event).entries[number].value.get(HOOKS)
    return document


def _without_event(document: Document, cli: AgentCli, event: str, origin: Origin) -> Document:
    items = _items(document, event).data
    for number in reversed(range(len(items))):
        if any(cli.is_ours(handler) for handler in cli.handlers_in(items[number])):
            document = _without_item(document, cli, event, number, origin)
    bare = json_edit.interior(document, _items(document, event)) is not None
    if not bare or f"{HOOKS}.{event}" in origin.empty:
        return document
    hooks = document.root.entry(HOOKS).value
    blank = origin.empty.get(HOOKS, "")
    return parse(json_edit.remove(document, hooks, hooks.entry(event), blank))


def _without_hooks(document: Document, origin: Origin) -> Document:
    root = document.root
    entry = root.entry(HOOKS)
    if json_edit.interior(document, entry.value) is None or HOOKS in origin.empty:
        return document
    return parse(json_edit.remove(document, root, entry, origin.empty.get("", "")))


def _remainder(document: Document, cli: AgentCli, origin: Origin) -> str | None:
    # None if the file should go.
    if origin.bare and document.root.data == dict(cli.skeleton):
        for key in cli.skeleton:
            entry, blank = document.root.entry(key), origin.empty.get("", "")
            document = parse(json_edit.remove(document, document.root, entry, blank))
    text, root = document.text, document.root
    alone = not document.has_comments(0, len(text)) and root.data in ({}, dict(cli.skeleton))
    if not alone:
        return text
    if origin.created:
        return None
    if origin.blank is not None:
        return origin.blank
    if "" in origin.empty:
        return text[: root.start + 1] + origin.empty[""] + text[root.end - 1 :]
    return text
