"""goplanes: archives of Go game records to training sets of packed feature planes.

From Python: ``build(config)``, ``open_dataset(path)``, ``encode_position(setup, moves, scheme=...)``,
``augment(planes, policy, value)`` and ``predict_with_symmetry(model, planes)``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.augment import augment, predict_with_symmetry
    from pipeline.build import build
    from pipeline.load import open_dataset
    from pipeline.position import encode_position

__all__ = ["__version__", "augment", "build", "encode_position", "open_dataset", "predict_with_symmetry"]

__version__ = "0.1.0"

_HOMES = {
    "augment": "pipeline.augment",
    "build": "pipeline.build",
    "encode_position": "pipeline.position",
    "open_dataset": "pipeline.load",
    "predict_with_symmetry": "pipeline.augment",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for: the compiler behind it takes a second to load, and ``--help`` needs none of it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Set for good: a submodule of the same name (``build``, ``augment``) would otherwise take its place.
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value
