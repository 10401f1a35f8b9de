"""One state of a scan: its bytes from wherever they lie, what they say, and where its record is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tfguard.catalog.catalog import Catalog
from tfguard.engine.backend import StateLocation
from tfguard.engine.encrypted import EncryptedStates
from tfguard.engine.locate import InstalledEngine
from tfguard.engine.state import parse_any_state
from tfguard.errors import EncryptedStateError, NoEngineError, RecordError, TfguardError
from tfguard.model.operation import Stack
from tfguard.model.state import EMPTY_STATE, StateSnapshot
from tfguard.ports import KnownState, RecordStore

_HEAD = "head.json"

# Several states are read at a time; of engines one is enough.
_ONE_ENGINE = threading.Lock()


@dataclass(frozen=True, slots=True)
class StateReader:
    """What every place of states has in common.

    `engine` finds the engine, which is asked only for what nothing else reads. `records_url` is what `records:` says;
    `shared_records` opens the record of a stack there, None where records lie beside states. `beside` opens the one
    beside a state by its location alone, and raises `RecordError` where tfguard cannot write any.
    """

    catalog: Catalog
    engine: Callable[[], InstalledEngine]
    beside: Callable[[StateLocation], RecordStore]
    shared_records: Callable[[Stack], RecordStore] | None
    records_url: str

    def known(
        self,
        location: StateLocation,
        fetch: Callable[[], bytes | None],
        decrypt: Callable[[bytes], StateSnapshot],
        records: RecordStore | None,
    ) -> KnownState:
        """The state at `location`. `fetch` gives its bytes, None where nothing was written there yet."""
        place, workspace = location.stack.location, location.stack.workspace
        try:
            return KnownState(place, workspace, self._read(place, fetch, decrypt), records=records)
        except TfguardError as error:
            return KnownState(place, workspace, None, error.what, records)

    def _read(
        self, place: str, fetch: Callable[[], bytes | None], decrypt: Callable[[bytes], StateSnapshot]
    ) -> StateSnapshot:
        data = fetch()
        if data is None:
            return EMPTY_STATE
        try:
            return parse_any_state(data, place, self.catalog)
        except EncryptedStateError as error:
            try:
                with _ONE_ENGINE:
                    return decrypt(data)
            except NoEngineError as missing:
                raise EncryptedStateError(f"{error.what}, and {missing.what}", missing.advice) from missing

    def encrypted(self, directory: Path, workspace: str | None = None) -> EncryptedStates:
        """What reads encrypted states in a folder. Raises `NoEngineError`."""
        return EncryptedStates(self.engine(), directory, self.catalog, workspace=workspace)

    def decrypted(self, data: bytes, place: str) -> StateSnapshot:
        """The state in an encrypted document that came from somewhere else. Raises `EncryptedStateError`."""
        return self.encrypted(Path()).in_bytes(data, place)

    def records(
        self, location: StateLocation, beside: Callable[[], RecordStore] | None, also: Sequence[StateLocation] = ()
    ) -> RecordStore | None:
        """The record of the state at `location`: below `records:`, or `beside` it.

        Below `records:` a stack goes by its location as its own backend block spells it. Where that is not known,
        `also` are other ways to spell it: the first that has a record counts.
        """
        if self.shared_records is None:
            if beside:
                return beside()
            try:
                return self.beside(location)
            except RecordError:
                return None  # a backend that tfguard cannot write to: its applies have no record there either
        first, *others = (self.shared_records(one.stack) for one in (location, *also))
        return next((store for store in (first, *others) if others and _has_head(store)), first)


def _has_head(store: RecordStore) -> bool:
    try:
        return store.read(_HEAD) is not None
    except RecordError:
        return False
