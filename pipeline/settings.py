"""The tables of a configuration before they are checked: of a preset, of a TOML file, of single keys."""

import difflib
import tomllib
from importlib import resources
from typing import Any

from pipeline.config import ConfigError, shown

_MAX_FILE = 2**20  # bytes of a TOML file


def preset_names() -> list[str]:
    """Return the names of the packaged configurations."""
    folder = resources.files("pipeline.presets")
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def read_toml(source: str) -> dict[str, Any]:
    """Return the tables of a preset (by name) or of a TOML file (by path). Raises ConfigError."""
    try:
        if source in preset_names():
            text = resources.files("pipeline.presets").joinpath(f"{source}.toml").read_text("utf-8")
        else:
            with open(source, "rb") as file:
                data = file.read(_MAX_FILE + 1)
            if len(data) > _MAX_FILE:
                raise ConfigError(f"{source}: not a configuration: more than {_MAX_FILE} bytes")
            text = data.decode("utf-8-sig")
    except FileNotFoundError:
        near = difflib.get_close_matches(source, preset_names(), 1)
        hint = f"did you mean {near[0]!r}? Presets are" if near else "presets are"
        raise ConfigError(f"no preset, file or folder {source!r}: {hint} {', '.join(preset_names())}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{source}: not a TOML file (not UTF-8 at byte {error.start})") from None
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ConfigError(f"{source}: not TOML: nested too deep") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source}: not TOML: {error}") from None
    except ValueError:
        # Python reads no decimal number of more than some thousand digits.
        raise ConfigError(f"{source}: a number has too many digits") from None


def set_value(tables: dict[str, Any], assignment: str) -> None:
    """Apply ``table.key=value`` to ``tables``. The value is TOML; a bare word is a string."""
    name, equals, text = assignment.partition("=")
    keys = name.strip().split(".")
    said = f"--set {shown(assignment)}"
    if not equals or len(keys) < 2 or not all(keys):
        raise ConfigError(f"{said}: write table.key=value, e.g. split.val=0.1")
    try:
        read = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        read = {"value": text.strip()}
    except RecursionError:
        raise ConfigError(f"{said}: nested too deep") from None
    except ValueError:
        raise ConfigError(f"{said}: a number has too many digits") from None
    if len(read) > 1:
        raise ConfigError(f"{said}: one key at a time, give --set again for another")
    table = tables
    for key in keys[:-1]:
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            raise ConfigError(f"{said}: {key!r} is not a table")
    table[keys[-1]] = read["value"]
