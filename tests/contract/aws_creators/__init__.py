"""For each AWS type of the catalogue, a function that makes one such object on a simulated AWS.

It returns the object's import id and its ARN (empty where such objects have none), and calls the object `one`, with the
tag `team` = `blue`. One module for each catalogue file, with `CREATORS`, and with `LIMITS` for what the simulation does
not do.
"""

from importlib import import_module
from pkgutil import iter_modules

from tests.contract.aws_creators.cloud import REGION, Cloud, Creator, Limits

CREATORS: dict[str, Creator] = {}
LIMITS: dict[str, Limits] = {}

for _found in iter_modules(__path__):
    _module = import_module(f"{__name__}.{_found.name}")
    CREATORS.update(getattr(_module, "CREATORS", {}))
    LIMITS.update(getattr(_module, "LIMITS", {}))

__all__ = ["CREATORS", "LIMITS", "REGION", "Cloud", "Creator", "Limits"]
