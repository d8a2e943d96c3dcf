"""Guard's hooks put into the text of a settings file, and taken out of it: everything else stays as it is."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from guard.install import json_edit as editing
from guard.install.base import AgentProgram, handlers
from guard.install.jsonc import Document, Value, parse

HOOKS = "hooks"


@dataclass(frozen=True)
class Origin:
    """What a file was before guard's hooks came into it, as far as the file itself does not tell."""

    created: bool = False
    """Whether there was no file."""
    blank: str | None = None
    """What was in it, if there was nothing but blanks."""
    bare: bool = False
    """Whether there was nothing but comments in it, so that what the file has to hold besides the hooks came with them."""
    empty: Mapping[str, str] = field(default_factory=dict)
    """What stood between the brackets of those on the way that were empty: `` for the whole, `hooks`, `hooks.EVENT`."""


def installed(text: str | None, host: AgentProgram, command: str) -> str:
    """The text with guard's hooks in it, and none of them twice; a ValueError if it does not fit."""
    if text is None or not text.strip("\ufeff \t\r\n"):
        return editing.rendered({**host.skeleton, HOOKS: host.hooks(command)})
    document = _checked(parse(text), host)
    if not document.root.entries:
        for key, value in host.skeleton.items():
            document = parse(editing.add(document, document.root, key, value))
    hooks = document.root.named(HOOKS)
    if hooks is None:
        return editing.add(document, document.root, HOOKS, host.hooks(command))
    for event in host.events:
        document = _with_event(document, host, event, command)
    unwanted = [event for event in _events(document, host) if event not in host.events]
    for event in unwanted:
        document = _without_event(document, host, event, Origin())
    return document.text


def uninstalled(text: str, host: AgentProgram, origin: Origin | None) -> str | None:
    """The text without guard's hooks; None if there should be no file."""
    if not text.strip("\ufeff \t\r\n"):
        return text
    document = _checked(parse(text), host)
    present = list(_events(document, host))
    if not present:
        return text
    known = origin or Origin(created=True)
    for event in present:
        document = _without_event(document, host, event, known)
    document = _without_hooks(document, known)
    return _left(document, host, known)


def origin_of(text: str | None, host: AgentProgram) -> Origin:
    """What has to be remembered of a file before guard's hooks come into it."""
    if text is None:
        return Origin(created=True)
    if not text.strip("\ufeff \t\r\n"):
        return Origin(blank=text)
    document = parse(text)
    places = {"": document.root}
    hooks = document.root.named(HOOKS)
    if hooks is not None:
        places[HOOKS] = hooks
        places |= {f"{HOOKS}.{entry.key}": entry.value for entry in hooks.entries}
    inside = {name: editing.interior(document, value) for name, value in places.items()}
    wanted = {"", HOOKS, *(f"{HOOKS}.{event}" for event in host.events)}
    return Origin(
        bare=not document.root.entries,
        empty={
            name: blank for name, blank in inside.items() if blank is not None and name in wanted
        },
    )


def present(text: str, host: AgentProgram) -> dict[str, list[Any]]:
    """By event, the hooks of guard's that a text has."""
    document = _checked(parse(text), host)
    hooks = document.root.data.get(HOOKS, {})
    return {
        event: [one for item in hooks[event] for one in handlers(host, item) if host.is_ours(one)]
        for event in _events(document, host)
    }


def others(text: str, host: AgentProgram) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Hooks of somebody else's that call guard too: the event that they stand under, their line, and what they call it for."""
    hooks = _checked(parse(text), host).root.data.get(HOOKS, {})
    for event, items in hooks.items():
        for item in items if isinstance(items, list) else ():
            for one in handlers(host, item):
                if calls := host.calls(one):
                    yield event, one[host.command_key], calls


def covered(text: str, host: AgentProgram) -> set[str]:
    """The events for which guard is called by somebody else's hooks."""
    hooks = _checked(parse(text), host).root.data.get(HOOKS, {})
    return {event for event in host.events if _is_covered(host, event, hooks.get(event, []))}


def _is_covered(host: AgentProgram, event: str, items: list[Any]) -> bool:
    wanted = (None, "", "*", host.matchers.get(event))
    return any(
        event in host.calls(one)
        for item in items
        if isinstance(item, dict) and item.get("matcher") in wanted
        for one in handlers(host, item)
    )


def _checked(document: Document, host: AgentProgram) -> Document:
    """The document, if the way to the hooks is made of what it should be made of."""
    root = document.root.data
    if not isinstance(root, dict):
        raise ValueError("it should be an object")
    for key, value in host.skeleton.items():
        if root and root.get(key) != value:
            raise ValueError(f'it should have "{key}": {value}')
    hooks = root.get(HOOKS, {})
    if not isinstance(hooks, dict):
        raise ValueError(f'"{HOOKS}" should be an object')
    for event in host.events:
        if not isinstance(hooks.get(event, []), list):
            raise ValueError(f'"{HOOKS}.{event}" should be a list')
    return document


def _events(document: Document, host: AgentProgram) -> Iterator[str]:
    """The events under which there is a hook of guard's."""
    for event, items in document.root.data.get(HOOKS, {}).items():
        if isinstance(items, list) and any(
            host.is_ours(one) for item in items for one in handlers(host, item)
        ):
            yield event


def _hooks(document: Document) -> Value:
    found = document.root.named(HOOKS)
    assert found is not None
    return found


def _items(document: Document, event: str) -> Value:
    found = _hooks(document).named(event)
    assert found is not None
    return found


def _with_event(document: Document, host: AgentProgram, event: str, command: str) -> Document:
    hooks, wanted = _hooks(document), host.item(event, command)
    items = hooks.named(event)
    if items is None:
        return parse(editing.add(document, hooks, event, [wanted]))
    ours = [
        number
        for number, item in enumerate(items.data)
        if any(host.is_ours(one) for one in handlers(host, item))
    ]
    if not ours and _is_covered(host, event, items.data):
        return document  # A second one would be called for the same.
    if not ours:
        return parse(editing.add(document, items, None, wanted))
    # In its old place, so that what others have there keeps its number: Codex knows approved hooks by it.
    kept = next((number for number in ours if _is_only_ours(host, items.data[number])), None)
    for number in reversed(ours):
        if number != kept:
            document = _without_item(document, host, event, number, Origin())
    if kept is None:
        return _with_event(document, host, event, command)
    old = _items(document, event).entries[kept].value
    return document if old.data == wanted else parse(editing.replace(document, old, wanted))


def _is_only_ours(host: AgentProgram, item: Any) -> bool:
    return all(host.is_ours(one) for one in handlers(host, item))


def _without_item(
    document: Document, host: AgentProgram, event: str, number: int, origin: Origin
) -> Document:
    """Without guard's hooks in one item of a list, and without the item if it has no others."""
    items = _items(document, event)
    entry = items.entries[number]
    if _is_only_ours(host, entry.value.data):
        blank = origin.empty.get(f"{HOOKS}.{event}", "")
        return parse(editing.remove(document, items, entry, blank))
    inner = entry.value.named(HOOKS)
    while inner and (ours := [one for one in inner.entries if host.is_ours(one.value.data)]):
        document = parse(editing.remove(document, inner, ours[-1]))
        inner = _items(document, event).entries[number].value.named(HOOKS)
    return document


def _without_event(document: Document, host: AgentProgram, event: str, origin: Origin) -> Document:
    items = _items(document, event).data
    for number in reversed(range(len(items))):
        if any(host.is_ours(one) for one in handlers(host, items[number])):
            document = _without_item(document, host, event, number, origin)
    bare = editing.interior(document, _items(document, event)) is not None
    if not bare or f"{HOOKS}.{event}" in origin.empty:
        return document
    hooks = _hooks(document)
    entry = next(one for one in hooks.entries if one.key == event)
    return parse(editing.remove(document, hooks, entry, origin.empty.get(HOOKS, "")))


def _without_hooks(document: Document, origin: Origin) -> Document:
    root = document.root
    entry = next(one for one in root.entries if one.key == HOOKS)
    if editing.interior(document, entry.value) is None or HOOKS in origin.empty:
        return document
    return parse(editing.remove(document, root, entry, origin.empty.get("", "")))


def _left(document: Document, host: AgentProgram, origin: Origin) -> str | None:
    """What becomes of a file when guard's hooks are out of it."""
    if origin.bare and document.root.data == dict(host.skeleton):
        for key in host.skeleton:
            entry = next(one for one in document.root.entries if one.key == key)
            blank = origin.empty.get("", "")
            document = parse(editing.remove(document, document.root, entry, blank))
    text, root = document.text, document.root
    alone = not document.has_comments(0, len(text)) and root.data in ({}, dict(host.skeleton))
    if not alone:
        return text
    if origin.created:
        return None
    if origin.blank is not None:
        return origin.blank
    if "" in origin.empty:
        return text[: root.start + 1] + origin.empty[""] + text[root.end - 1 :]
    return text
