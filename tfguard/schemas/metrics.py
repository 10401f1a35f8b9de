"""`tfguard.metrics/v1`: counters, as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from tfguard.schemas.document import with_schema
from tfguard.schemas.json_schema import Shape

SCHEMA = "tfguard.metrics/v1"
SHAPE: Shape = {"metrics": [{"name": str, "value": float, "labels": Mapping[str, str]}]}


class SampleView(Protocol):
    """One value with its labels."""

    @property
    def name(self) -> str: ...
    @property
    def value(self) -> float: ...
    @property
    def labels(self) -> Mapping[str, str]: ...


def metrics_document(samples: Sequence[SampleView]) -> Mapping[str, object]:
    """The document with these values."""
    body = [{"name": one.name, "value": one.value, "labels": dict(one.labels)} for one in samples]
    return with_schema(SCHEMA, {"metrics": body})
