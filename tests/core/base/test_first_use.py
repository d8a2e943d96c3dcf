"""Dataclasses and patterns that are built when they are first used."""

import re
import threading
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from typing import Any

import pytest

from guard.core.base import first_use
from guard.core.base.first_use import late_pattern
from tests.support import run


@dataclass(frozen=True)
class Standard:
    name: str
    many: list[int] = field(default_factory=list)
    size: int = 3
    kept: str = field(default="here", init=False)
    seen: bool = field(default=False, kw_only=True, compare=False)


@first_use.dataclass(frozen=True)
class Late:
    name: str
    many: list[int] = field(default_factory=list)
    size: int = 3
    kept: str = field(default="here", init=False)
    seen: bool = field(default=False, kw_only=True, compare=False)


def shown(one: object) -> str:
    return repr(one).partition("(")[2]


def test_nothing_is_built_before_the_first_object() -> None:
    @first_use.dataclass
    class Unused:
        name: str

    assert "__eq__" not in vars(Unused)
    assert Unused("a") == Unused(name="a")
    assert [each.name for each in fields(Unused)] == ["name"]


def test_a_dataclass_of_python_may_inherit_from_it_before_it_is_built() -> None:
    @first_use.dataclass(frozen=True)
    class Base:
        name: str

    @dataclass(frozen=True)
    class Derived(Base):
        size: int = 3

    assert [each.name for each in fields(Base)] == ["name"]
    assert shown(Derived("a", 4)) == "name='a', size=4)"
    assert replace(Derived("a"), name="b") == Derived("b")


def test_it_is_like_a_dataclass_of_python() -> None:
    cases: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        (("a",), {}),
        (("a", [1], 2), {"seen": True}),
        ((), {"name": "b", "size": 9}),
    ]
    for words, named in cases:
        late, standard = Late(*words, **named), Standard(*words, **named)
        assert shown(late) == shown(standard)
        assert late == Late(*words, **{**named, "seen": False})
        assert shown(replace(late, size=7)) == shown(replace(standard, size=7))
    with pytest.raises(FrozenInstanceError):
        Late("a").name = "b"  # type: ignore[misc]
    assert Late("a").many is not Late("a").many
    assert Late.__match_args__ == Standard.__match_args__


@pytest.mark.parametrize(
    ("words", "named"), [((), {}), (("a", [], 1, True), {}), (("a",), {"kept": "x"})]
)
def test_wrong_arguments_are_refused(words: tuple[object, ...], named: dict[str, object]) -> None:
    for each in (Late, Standard):
        with pytest.raises(TypeError):
            each(*words, **named)  # type: ignore[arg-type]


def test_a_class_below_another_has_the_fields_of_both() -> None:
    @first_use.dataclass
    class Above:
        name: str

        def __post_init__(self) -> None:
            self.name += "!"

    @first_use.dataclass
    class Below(Above):
        size: int = 1

    class Plain(Above):
        pass

    assert (Below("a").name, Below("a", 2).size, Plain("b").name) == ("a!", 2, "b!")
    with pytest.raises(TypeError, match="slots"):
        first_use.dataclass(slots=True)(Plain)


def test_threads_that_make_the_first_object_at_once_all_get_one() -> None:
    for _ in range(50):

        @first_use.dataclass(frozen=True)
        class Shared:
            name: str
            size: int = 0

        made: list[object] = []
        start = threading.Barrier(4)

        def make(
            kind: type = Shared, into: list[object] = made, at: threading.Barrier = start
        ) -> None:
            at.wait()
            into.append(kind("a"))

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == [Shared("a")] * 4


def test_a_pattern_is_compiled_when_it_is_used() -> None:
    broken = late_pattern("(")
    with pytest.raises(re.error):
        broken.match("a")
    word = late_pattern(r"(?P<word>[a-z]+)", re.IGNORECASE)
    assert "match" not in vars(word)
    found = word.match("Ab1")
    assert found is not None
    assert (found["word"], word.sub("x", "a1B"), word.groups) == ("Ab", "x1x", 1)


EVERY_PATTERN = """
import gc, importlib, pkgutil, guard
from guard.core.base.first_use import build, late_pattern
for module in pkgutil.walk_packages(guard.__path__, "guard."):
    if ".reporters." not in module.name and not module.name.endswith("__main__"):
        importlib.import_module(module.name)
late = [each for each in gc.get_objects() if type(each) is late_pattern]
for each in late:
    each.match
classes = [each for each in gc.get_objects() if isinstance(each, type) and "guard" in str(each)]
for each in classes:
    build(each)
print(len(late) > 50, len(classes) > 500)
"""


def test_every_pattern_and_every_class_can_be_built() -> None:
    done = run(fresh=True, script=EVERY_PATTERN)
    assert (done.code, done.out) == (0, "True True\n"), done.err
