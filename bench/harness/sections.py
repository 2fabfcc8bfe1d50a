"""The sections of bench/sections."""

import importlib.util
import pathlib
import sys

SECTIONS = pathlib.Path(__file__).resolve().parents[1] / "sections"


def load():
    """{name: module}, in the order in which they are run and shown (ORDER)."""
    sys.path.insert(0, str(SECTIONS.parent))
    modules = {}
    for path in sorted(SECTIONS.glob("*.py")):
        if path.name.startswith("_"):
            continue
        spec = importlib.util.spec_from_file_location(f"sections.{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        modules[path.stem] = module
    return dict(sorted(modules.items(), key=lambda item: (item[1].ORDER, item[0])))


def select(modules, names):
    """Those named, and what they need (NEEDS), in order."""
    unknown = [name for name in names if name not in modules]
    if unknown:
        raise KeyError(f"no section {', '.join(unknown)}; there are {', '.join(modules)}")
    wanted = set(names)
    while True:
        more = {need for name in wanted for need in getattr(modules[name], "NEEDS", ())} - wanted
        if not more:
            return {name: module for name, module in modules.items() if name in wanted}
        wanted |= more
