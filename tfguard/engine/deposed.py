"""Which deposed object is being destroyed: the engine's stream does not say it, the plan or a local state does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tfguard.engine.documents import mapping, parse_json, sequence, text
from tfguard.engine.state import instance_address
from tfguard.model.plan import Plan


@dataclass(frozen=True, slots=True)
class DeposedKeys:
    """The keys of the deposed objects that a plan destroys; `state` is the local state file that the apply writes."""

    plan: Plan
    state: Path | None

    def __call__(self, address: str, id_value: str | None) -> str | None:
        """The key of the object with this id at this address, whose destruction has just begun.

        None for a current object, and where nothing names the key: a create-before-destroy replacement gets it during
        the apply, and only a local state can be read in time.
        """
        changes = [change for change in self.plan.changes if change.address == address and change.action.deletes]
        if any(change.create_first for change in changes):
            return self._in_state(address, id_value)
        if len(changes) == 1:
            return changes[0].deposed
        return next((change.deposed for change in changes if id_value and id_value in change.before.values()), None)

    def _in_state(self, address: str, id_value: str | None) -> str | None:
        if self.state is None:
            return None
        try:
            document = mapping(parse_json(self.state.read_bytes()))
        except (OSError, ValueError, RecursionError):
            return None  # it is being written; the note is not worth a second look
        for resource in map(mapping, sequence(document.get("resources"))):
            for instance in map(mapping, sequence(resource.get("instances"))):
                key, id_ = text(instance.get("deposed")), mapping(instance.get("attributes")).get("id")
                if key and id_ == id_value and instance_address(resource, instance.get("index_key")) == address:
                    return key
        return None
