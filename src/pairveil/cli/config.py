"""`pairveil.toml`: options that need not be typed each time. The command line always wins."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from pairveil.errors import InputError

CONFIG_FILE = "pairveil.toml"


def find_config(given: Path | None) -> Path | None:
    """The file named by ``--config``, else the one in the working directory, else none."""
    if given is None:
        here = Path(CONFIG_FILE)
        return here if here.is_file() else None
    if not given.is_file():
        raise InputError(f"--config: there is no file {given}")
    return given


def read_config(path: Path, group: Any) -> dict[str, Any]:
    """Read a configuration as the default values of a group of commands.

    Parameters
    ----------
    path : Path
        A TOML file. Top-level keys are options of every command that has them, a table is one
        command's (``[fit]``, ``[bench.utility]``) and wins over them.
    group : click group
        Its commands say which tables and keys exist; anything else is an error.

    Returns
    -------
    dict
        From command to parameter to value, as click's ``default_map``.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as problem:
        raise InputError(f"{path} is not TOML: {problem}") from None
    tables = {key: value for key, value in content.items() if isinstance(value, dict)}
    shared = {key: value for key, value in content.items() if key not in tables}
    known = {name for command in _leaves(group) for name in options_of(command)}
    for key, value in shared.items():
        if key not in known:
            raise InputError(f"{path}: no command has an option '{key}'{_list(known)}")
        _check_value(path, key, value)
    return _defaults(path, group, tables, shared)


def options_of(command: Any) -> dict[str, str]:
    """The long options of a command without their dashes, and the parameter each one sets."""
    return {
        spelling.removeprefix("--"): str(parameter.name)
        for parameter in command.params
        if parameter.param_type_name == "option"
        for spelling in (*parameter.opts, *parameter.secondary_opts)
        if spelling.startswith("--") and not spelling.startswith("--no-") and spelling != "--help"
    }


def _defaults(
    path: Path, group: Any, tables: dict[str, Any], shared: dict[str, Any]
) -> dict[str, Any]:
    unknown = sorted(set(tables) - set(group.commands))
    if unknown:
        raise InputError(f"{path}: there is no command '{unknown[0]}'{_list(group.commands)}")
    made: dict[str, Any] = {}
    for name, command in group.commands.items():
        table = tables.get(name, {})
        if not isinstance(table, dict):
            raise InputError(f"{path}: [{name}] must be a table of options")
        if hasattr(command, "commands"):
            made[name] = _defaults(path, command, table, shared)
            continue
        options = options_of(command)
        for key, value in table.items():
            if key not in options:
                raise InputError(f"{path}: [{name}] has no option '{key}'{_list(options)}")
            _check_value(path, key, value)
        here = {key: value for key, value in shared.items() if key in options}
        made[name] = {options[key]: value for key, value in {**here, **table}.items()}
    return made


def _leaves(group: Any) -> list[Any]:
    """Every command below a group."""
    return [
        leaf
        for command in group.commands.values()
        for leaf in (_leaves(command) if hasattr(command, "commands") else [command])
    ]


def _check_value(path: Path, key: str, value: object) -> None:
    items = value if isinstance(value, list) else [value]
    if not all(isinstance(item, str | int | float) for item in items):
        raise InputError(f"{path}: '{key}' must be text, a number, true or false, or a list")


def _list(known: Any) -> str:
    return f"; there are: {', '.join(sorted(known))}"
