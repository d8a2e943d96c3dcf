"""Read the docstrings below model fields from the source, when they are needed."""

from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from guard.core.base.fields import Frozen, M


# Pydantic can do this for every model when it is loaded. But that parses the source of all models, and every command would
# pay for what only schemas, `guard config` and the docs show.
@cache
def field_descriptions(model: type[Frozen]) -> dict[str, str]:
    found: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        if issubclass(cls, Frozen) and cls is not Frozen:
            found.update(_in_source(cls))
    return found


def _in_source(cls: type[Frozen]) -> Iterator[tuple[str, str]]:
    import ast
    import inspect
    from textwrap import dedent

    try:
        tree = ast.parse(dedent(inspect.getsource(cls)))
    except OSError:
        return  # Guard was installed without its source: only the descriptions are missing.
    definition = tree.body[0]
    assert isinstance(definition, ast.ClassDef)
    for statement, after in pairwise(definition.body):
        match statement, after:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield name, inspect.cleandoc(text)


def describe_all() -> None:
    """Set the field descriptions of all loaded models, for schemas that are generated later."""
    models = list(subclasses(Frozen))
    for model in models:
        for name, text in field_descriptions(model).items():
            model.model_fields[name].description = text
        for built in _BUILT:
            if built in model.__dict__:
                delattr(model, built)
    for model in models:
        model.model_rebuild(force=True)


_BUILT = ("__pydantic_core_schema__", "__pydantic_validator__", "__pydantic_serializer__")


def subclasses(model: type[M]) -> Iterator[type[M]]:
    """Yield every loaded class below this one."""
    for child in model.__subclasses__():
        yield child
        yield from subclasses(child)
