"""One file for each operator: its formula. Importing a file registers what it defines; `load` imports them all."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from pathlib import Path
from types import ModuleType

from superopt.errors import BadOption
from superopt.ops.registry import REGISTRY, Registry

_OF_USER = "specs_of_user."


def load(*folders: Path) -> Registry:
    """Every operator of this package, and those of further folders of definitions."""
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"{__name__}.{module.name}")
    for folder in folders:
        if not folder.is_dir():
            raise BadOption(f"{folder}: is no folder of operator definitions")
        for path in sorted(folder.glob("*.py")):
            _load_file(path)
    return REGISTRY


def of_user() -> list[ModuleType]:
    """The definitions of further folders that were loaded: no other process can import them by their names."""
    return [module for name, module in sys.modules.items() if name.startswith(_OF_USER)]


def _load_file(path: Path) -> None:
    name = f"{_OF_USER}{path.resolve().parent.name}.{path.stem}"
    if name in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
