"""Define a view: a state file that is a pure fold of the log, and says how far it has read.

A view's bytes are a function of the log alone: `seq` and `log` name the last record that changed the view, not the end of
the log, so a view that nothing touches never has to be written again, and a rebuilt one is byte-identical. The last field is
a hash over the bytes before it: damage is told from a view that merely lags.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from hashlib import sha256
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import Field

from guard.core.base.fields import Count, Digest, Frozen, Id, Seq, parse_document
from guard.core.base.first_use import dataclass, late_pattern
from guard.core.log.adoption import ADOPTED
from guard.core.log.events import BaseEvent, SegmentNumber
from guard.core.log.record import NO_HASH, START, Position

_SEAL_KEY = b',\n  "hash": "'
_SCHEMA_LINE = late_pattern(rb'\{\s*"schema": "(?P<kind>guard/[a-z-]+)/(?P<version>[0-9]{1,6})"')
_SEAL = len(_SEAL_KEY) + 64 + len(b'"\n}\n')


class LogPosition(Frozen):
    """Right after the last record that changed this view, with that record's hash."""

    segment: SegmentNumber
    offset: Count
    hash: Digest


class ViewDocument(Frozen):
    """The fields that every state file has, around its own."""

    schema_: str = Field(alias="schema")
    seq: Seq
    log: LogPosition
    hash: Digest = NO_HASH
    """Over the bytes of the file before this field."""

    def key(self) -> str:
        return ""

    def position(self) -> Position:
        return Position(self.log.segment, self.log.offset, self.seq, self.log.hash)


class WorktreeView(ViewDocument):
    """A state file of one work tree."""

    worktree: Id

    def key(self) -> str:
        return self.worktree


D = TypeVar("D", bound=ViewDocument)


class Fold(ABC, Generic[D]):
    """A state being built: mutable inside, so that a million events cost no million copies; frozen by `document`."""

    document_class: ClassVar[Any]

    def __init__(self, key: str) -> None:
        self.key = key
        self.reached = START
        self._document: D | None = None

    @abstractmethod
    def restore(self, document: D) -> None:
        """Go on from a document that an earlier fold made."""

    @abstractmethod
    def apply(self, event: Any) -> None:
        """Fold one event of the family that this view folds."""

    def adopt(self, document: str) -> None:
        """Go on from the state that was kept under another key."""
        found = self.document_class.model_validate_json(document)
        self.restore(found)
        self._document = None

    @abstractmethod
    def contents(self) -> dict[str, Any]:
        """Return the document's own fields."""

    def document(self) -> D:
        # Made once for each place in the log, and from values that are validated already.
        if self._document is None or self._document.seq != self.reached.seq:
            segment, offset, seq, digest = self.reached
            position = LogPosition.model_construct(segment=segment, offset=offset, hash=digest)
            self._document = self.document_class.model_construct(
                seq=seq, log=position, **self.contents()
            )
        return self._document


class FieldsFold(Fold[D]):
    """A fold that keeps the document's own fields in a dict, by their names."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._fields: dict[str, Any] = {}

    def restore(self, document: D) -> None:
        own = self.document_class.model_fields.keys() - ViewDocument.model_fields.keys()
        self.reached = document.position()
        self._fields = {name: getattr(document, name) for name in own}

    def contents(self) -> dict[str, Any]:
        return dict(self._fields)


F = TypeVar("F", bound=Fold[Any])


@dataclass(frozen=True)
class ViewKind(Generic[D, F]):
    """One kind of view: where its files lie, which events touch it, and how they fold."""

    document: type[D]
    fold: Callable[[str], F]
    events: tuple[type[BaseEvent], ...]
    key: Callable[[Any], str]
    """The key of the view that an event touches."""
    folder: str
    file: str
    """The path of a view is folder, key and file in one."""
    needles: Callable[[str], tuple[bytes, ...]]
    """Every line that touches the view of a key has one of these in it: to look for before parsing anything."""
    is_summary: bool = False
    """Whether the view only sums others up: if its file is not to be trusted, guard goes by the log and refuses nothing."""
    goes_by_log: bool = False
    """Whether guard goes by the log and refuses nothing if the folder of the view is not to be trusted."""

    def path(self, key: str) -> str:
        return self.folder + key + self.file

    def key_in(self, path: str) -> str | None:
        """Return the key of the view that lies at this path, if one of this kind can."""
        if not (path.startswith(self.folder) and path.endswith(self.file)):
            return None
        key = path[len(self.folder) : len(path) - len(self.file)]
        return key if self.path(key) == path and "/" not in key else None


def worktree_view(
    document: type[D],
    fold: Callable[[str], F],
    events: tuple[type[BaseEvent], ...],
    name: str,
    *needles: bytes,
) -> ViewKind[D, F]:
    """Return a kind of view that each work tree has one of; `needles` are the same for all of them."""
    return ViewKind(
        document=document,
        fold=fold,
        events=events,
        key=lambda event: event.worktree,
        folder="worktrees.d/",
        file=f"/{name}.json",
        needles=lambda _key: (*needles, ADOPTED),
    )


def seal(document: ViewDocument) -> bytes:
    """Return the bytes of a view file."""
    body = document.model_dump_json(indent=2, exclude={"hash"}).encode()[: -len(b"\n}")]
    return b'%s%s%s"\n}\n' % (body, _SEAL_KEY, sha256(body).hexdigest().encode())


class DamagedView(ValueError):
    """The file is not what guard wrote."""


class OlderView(ValueError):
    """Sound, but of an older format: the log has all that is needed to fold it again."""


class NewerView(ValueError):
    """Sound, but of a format that only a newer guard knows."""


def has_seal(data: bytes) -> bool:
    """Tell whether the bytes of a view file are as guard wrote them."""
    body, tail = data[:-_SEAL], data[-_SEAL:]
    return tail == b'%s%s"\n}\n' % (_SEAL_KEY, sha256(body).hexdigest().encode())


def unseal(data: bytes, document: type[D]) -> D:
    if not has_seal(data):
        raise DamagedView("its hash does not match its bytes")
    try:
        return parse_document(document, data)
    except ValueError as error:
        _compare_versions(data, document)
        raise DamagedView(str(error)) from None


def _compare_versions(data: bytes, document: type[ViewDocument]) -> None:
    known = str(document.model_fields["schema_"].default)
    found = _SCHEMA_LINE.match(data)
    kind, version = known.rsplit("/", 1)
    if found is None or found["kind"].decode() != kind:
        return
    if int(found["version"]) > int(version):
        raise NewerView(
            f"it has the format {kind}/{found['version'].decode()}; this guard knows {known}"
        )
    if int(found["version"]) < int(version):
        raise OlderView(f"it has the format {kind}/{found['version'].decode()}")
