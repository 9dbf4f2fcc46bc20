"""goplanes: archives of Go game records to training sets of packed feature planes.

From Python: ``build(config)``, ``open_dataset(path)``, ``encode_position(setup, moves, scheme=...)`` (with the
globals: ``encode_inputs``), ``augment(planes, policy, value)`` and ``predict_with_symmetry(model, planes)``.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.augment import augment, predict_with_symmetry
    from pipeline.build import build
    from pipeline.load import open_dataset
    from pipeline.position import encode_inputs, encode_position

__all__ = [
    "__version__",
    "augment",
    "build",
    "encode_inputs",
    "encode_position",
    "open_dataset",
    "predict_with_symmetry",
]

__version__ = "0.1.0"

_HOMES = {
    "augment": "pipeline.augment",
    "build": "pipeline.build",
    "encode_inputs": "pipeline.position",
    "encode_position": "pipeline.position",
    "open_dataset": "pipeline.load",
    "predict_with_symmetry": "pipeline.augment",
}


class _Package(ModuleType):
    """``pipeline.build`` and ``pipeline.augment`` are the functions, also once the modules of that name are loaded."""

    def __setattr__(self, name: str, value: Any) -> None:
        # Python binds every module that it has loaded to its package.
        if isinstance(value, ModuleType) and _HOMES.get(name) == value.__name__:
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    """Import what is asked for: the compiler behind it takes a second to load, and ``--help`` needs none of it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
