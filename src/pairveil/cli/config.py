"""`pairveil.toml`: options that need not be typed each time. The command line always wins."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pairveil.errors import InputError
from pairveil.foreign import parse_toml, read_regular

CONFIG_FILE = "pairveil.toml"

TYPED = frozenset({
    "budget", "checkpoint", "claims_page", "dask", "data", "environment", "evaluation", "folder",
    "graph_salt", "key", "ledger", "new_key", "out", "overwrite", "pairs", "records", "report", "salt",
    "scratch", "signer", "trainer",
})  # fmt: skip
"""Parameters that say whom to trust, what to run, what to charge and where to write.

A file that lies in the working directory may be a stranger's, as in a folder that was received: it cannot set
them. The command line can, and so can a file that was named.
"""


def find_config(given: Path | None) -> Path | None:
    """The file named by ``--config``, else the one in the working directory, else none."""
    if given is None:
        here = Path(CONFIG_FILE)
        return here if here.is_file() else None
    if not given.is_file():
        raise InputError(f"--config: there is no file {given}")
    return given


def read_config(path: Path, group: Any, *, named: bool) -> dict[str, Any]:
    """Read a configuration as the default values of a group of commands.

    Parameters
    ----------
    path : Path
        A TOML file. Top-level keys are options of every command that has them, a table is one
        command's (``[fit]``, ``[bench.utility]``) and wins over them.
    group : click group
        Its commands say which tables and keys exist; anything else is an error.
    named : bool
        Somebody named the file; one that was found must not set `TYPED`.

    Returns values by command and parameter, as click's ``default_map``.
    """
    content = parse_toml(read_regular(path), str(path))
    tables = {key: value for key, value in content.items() if isinstance(value, dict)}
    shared = {key: value for key, value in content.items() if key not in tables}
    known = {name for command in _leaves(group) for name in options_of(command)}
    for key in shared:
        if key not in known:
            raise InputError(f"{path}: no command has an option '{key}'{_meant(key, known)}")
    return _defaults(path, group, tables, shared, frozenset() if named else TYPED)


def what_a_found_file_set(context: Any) -> str | None:
    """The options of a command that a file has set which nobody named, as they are typed; or None."""
    root = context.find_root()
    if root.obj is None or root.params.get("config") is not None:
        return None
    words = []
    for spelling, parameter in options_of(context.command).items():
        source = context.get_parameter_source(parameter.name)
        if source is not None and source.name == "DEFAULT_MAP":
            value = context.params.get(parameter.name)
            shown = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            words.append(f"--{spelling}{'' if value is True else f' {shown}'}")
    return f"{root.obj}, found in this folder, set {' '.join(words)}" if words else None


def options_of(command: Any) -> dict[str, Any]:
    """The long options of a command without their dashes, and the parameter each one sets."""
    return {
        spelling.removeprefix("--"): parameter
        for parameter in command.params
        if parameter.param_type_name == "option"
        for spelling in (*parameter.opts, *parameter.secondary_opts)
        if spelling.startswith("--") and spelling != "--help"
        if not (spelling.startswith("--no-") and spelling in parameter.secondary_opts)
    }


def _defaults(
    path: Path,
    group: Any,
    tables: dict[str, Any],
    shared: dict[str, Any],
    typed: frozenset[str],
) -> dict[str, Any]:
    unknown = sorted(set(tables) - set(group.commands))
    if unknown:
        known = _meant(unknown[0], group.commands)
        raise InputError(f"{path}: there is no command '{unknown[0]}'{known}")
    made: dict[str, Any] = {}
    for name, command in group.commands.items():
        table = tables.get(name, {})
        if not isinstance(table, dict):
            raise InputError(f"{path}: [{name}] must be a table of options")
        if hasattr(command, "commands"):
            made[name] = _defaults(path, command, table, shared, typed)
            continue
        options = options_of(command)
        for key in table:
            if key not in options:
                raise InputError(f"{path}: [{name}] has no option '{key}'{_meant(key, options)}")
        here = {key: value for key, value in shared.items() if key in options}
        made[name] = {}
        for key, value in {**here, **table}.items():
            # What is set for all commands is one value to some and a list to others ('epsilon' of 'plan').
            if key not in table and options[key].multiple and _is_scalar(value):
                value = [value]
            if options[key].name in typed:
                raise InputError(
                    f"{path}: '{key}' cannot be set by a file that merely lies in the folder, which may be a "
                    f"stranger's. Type --{key}, or name the file: --config {path}"
                )
            _check_value(path, key, value, options[key])
            made[name][options[key].name] = value
    return made


def _leaves(group: Any) -> list[Any]:
    """Every command below a group."""
    return [
        leaf
        for command in group.commands.values()
        for leaf in (_leaves(command) if hasattr(command, "commands") else [command])
    ]


def _check_value(path: Path, key: str, value: object, option: Any) -> None:
    """Refuse what an option cannot take and typer would bend: true for a number, a word for a list."""
    if option.is_flag:
        if not isinstance(value, bool):
            raise InputError(f"{path}: '{key}' must be true or false")
    elif option.multiple:
        if not (isinstance(value, list) and all(map(_is_scalar, value))):
            raise InputError(f"{path}: '{key}' must be a list: {key} = [...]")
    elif not _is_scalar(value):
        raise InputError(f"{path}: '{key}' must be one number or text")


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _meant(word: str, known: Iterable[str]) -> str:
    close = get_close_matches(word, list(known), n=1)
    return f"; did you mean '{close[0]}'?" if close else f"; there are: {', '.join(sorted(known))}"
