"""Options that stand together: a command takes them as one object, the command line shows one by one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """A command for typer, in which each parameter that is a group became one option for every field of it.

    A group is a dataclass whose fields are annotated as options are.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Size:
    ...     width: int = 1
    ...     height: int = 2
    >>> @with_groups
    ... def area(size: Size, unit: str = "m") -> None:
    ...     print(size.width * size.height, unit)
    >>> area(width=3, height=4, unit="cm")
    12 cm
    """
    hints = get_type_hints(command, include_extras=True)
    own = inspect.signature(command).parameters.values()
    groups = {one.name: hints[one.name] for one in own if is_dataclass(hints[one.name])}
    shown = []
    for parameter in own:
        if (group := groups.get(parameter.name)) is None:
            options = [(parameter.name, parameter.default, hints[parameter.name])]
        else:
            of = get_type_hints(group, include_extras=True)
            options = [(one.name, one.default, of[one.name]) for one in fields(group)]
        shown += [
            inspect.Parameter(name, parameter.KEYWORD_ONLY, default=default, annotation=hint)
            for name, default, hint in options
        ]

    @wraps(command)
    def called(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{one.name: given.pop(one.name) for one in fields(group)})
        command(**given)

    # typer reads the signature and, beside it, the annotations: both must show the fields.
    called.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    called.__annotations__ = {one.name: one.annotation for one in shown}
    del called.__wrapped__  # type: ignore[attr-defined]
    return called
