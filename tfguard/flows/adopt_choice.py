"""Which of the named findings may be adopted, and to which address each goes; of the others it is kept why not."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from tfguard.errors import InputError, UsageError
from tfguard.flows.adopt_plan import Refusals
from tfguard.flows.context import StackContext
from tfguard.flows.drafted_file import marked_address
from tfguard.flows.known_states import is_this_object, known_states, refuse_if_held, refuse_if_known, types_in
from tfguard.flows.stray_findings import OwnOperations, findings_with, refuse_tainted
from tfguard.model.address import is_address, resource_type
from tfguard.model.finding import Finding, Verdict
from tfguard.model.importing import WrittenImport
from tfguard.model.inventory import CloudObject
from tfguard.model.secrets import is_secret, is_withheld
from tfguard.model.state import StateSnapshot
from tfguard.reconcile.adoption import derived_address

Placed = tuple[str, Finding]
"""An address, and the finding that is to go there."""

_ADOPTABLE = (Verdict.ORPHANED, Verdict.DUPLICATED, Verdict.UNMANAGED, Verdict.SOFT_DELETED)
_WHY_NOT = {Verdict.MANAGED: "is managed already", Verdict.FOREIGN: "belongs to another account"}


class Choice:
    """The findings with these ids among the `known` ones. `address` is what the user says of where one is to go.

    `refused` tells of those that are left out why, by their ids; whoever goes on with the others adds to it.
    """

    def __init__(
        self, context: StackContext, ids: Sequence[str], known: Sequence[Finding], address: str | None
    ) -> None:
        self._context, self._address = context, address
        self._own = OwnOperations(context.records)
        self._known = {finding.id: finding for finding in known}
        self.ids = tuple(dict.fromkeys(ids))
        self.refused: Refusals = {}

    @cached_property
    def state(self) -> StateSnapshot:
        """The state that the adoption starts from."""
        return self._context.state_before()

    def chosen(self) -> list[Placed]:
        """The findings with their addresses; those of which it is clear that they cannot be adopted are refused."""
        chosen: list[Placed] = []
        for finding_id in self.ids:
            with self.refusing(finding_id):
                chosen.append(self._place(finding_id, [address for address, _ in chosen]))
        several = Counter(address for address, _ in chosen)
        for address, finding in chosen:
            if several[address] > 1:
                self.refused[finding.id] = UsageError(
                    f"two of these findings belong to one address, {address}",
                    "adopt one of them; the other stays a finding",
                )
        chosen = self.left(chosen)
        if chosen and not self.held_already(chosen):
            self.refuse_held(chosen, self.state)
        return self.left(chosen)

    def left(self, chosen: Sequence[Placed]) -> list[Placed]:
        """Those of them that nothing is said against so far."""
        return [(address, finding) for address, finding in chosen if finding.id not in self.refused]

    @contextmanager
    def refusing(self, finding_id: str) -> Iterator[None]:
        """Within it, an error that is about one finding refuses this one."""
        try:
            yield
        except (UsageError, InputError) as error:
            self.refused[finding_id] = error

    def held_already(self, chosen: Sequence[Placed]) -> bool:
        """Whether the state has each of them at its address."""
        catalog = self._context.around.catalog
        held = [(self.state.at(address), finding.object) for address, finding in chosen]
        return all(instance and known and is_this_object(catalog, instance, known) for instance, known in held)

    def refuse_held(self, chosen: Sequence[Placed], own: StateSnapshot) -> None:
        """Refuse what would be a second object for its address, and what any known state has already (case B59).

        `own` is this stack's state; the others are read. Raises `InputError` for one that cannot be.
        """
        catalog = self._context.around.catalog
        for address, finding in chosen:
            with self.refusing(finding.id):
                refuse_if_held(catalog, own, address, finding)
        for where, state in known_states(self._context, own):
            held = types_in(catalog, state)
            for _, finding in self.left(chosen):
                if finding.object and catalog.canonical(finding.object.type) in held:
                    with self.refusing(finding.id):
                        refuse_if_known(catalog, state, where, finding)

    def written(self, finding: Finding) -> WrittenImport | None:
        """The import block of a person's that is not applied yet and names this object; None where none does.

        Raises `UsageError` for one that cannot be used: no second address may be drafted beside it.
        """
        found, canonical = finding.object, self._context.around.catalog.canonical
        if found is None or self._left(finding.id):
            return None
        names = {found.import_id, found.id, found.arn} - {None, ""}
        blocks = [
            one
            for one in self._written
            if names & ({one.import_id} if one.import_id is not None else one.texts)
            if canonical(resource_type(one.address)) == canonical(found.type) and self.state.at(one.address) is None
        ]
        if not blocks:
            return None
        where = ", ".join(dict.fromkeys(one.address for one in blocks))
        what = f"the configuration has an import block for {finding.id} already, to {where}"
        if len(blocks) > 1:
            raise UsageError(f"{what}: {len(blocks)} of them for one object", "take out those that are not meant")
        (block,) = blocks
        if block.import_id is None or not is_address(block.address):
            raise UsageError(
                f"{what}, with a `for_each` or an expression, of which only the engine knows what it means",
                "run `tfguard apply`, which imports it, or write the block with the address and the id themselves",
            )
        if not self._context.engine.declares(block.address):
            raise UsageError(
                f"{what}, which the configuration does not have", "write that resource, or take the block out"
            )
        return block

    @cached_property
    def _written(self) -> Sequence[WrittenImport]:
        return self._context.engine.written_imports()

    def _left(self, finding_id: str) -> str | None:
        return marked_address(Path(self._context.stack.directory), finding_id)

    def var_files(self, chosen: Sequence[Placed]) -> tuple[str, ...]:
        """The -var-file of the runs of this stack that the findings come from."""
        ids = sorted({self._own.of(finding) for _, finding in chosen} - {""})
        files = (name for one in ids for name in self._context.records.operation(one).intent.var_files)
        return tuple(dict.fromkeys(files))

    def _place(self, finding_id: str, taken: Collection[str]) -> Placed:
        finding, found = self._adoptable(finding_id)
        left = self._left(finding_id)
        if left and self._address not in (None, left):
            raise UsageError(
                f"an earlier adoption of {finding_id} did not get to its end, and left {left} in the configuration",
                f"adopt it to that address, or take the resource {left} and its import block out first",
            )
        written = self.written(finding)
        if written and (self._address or finding.address) not in (None, written.address):
            raise UsageError(
                f"the configuration has an import block for {finding_id} already, to {written.address}, and it would "
                f"go to {self._address or finding.address} too",
                f"adopt it with --to {shlex.quote(written.address)}, or take the block out",
            )
        where = self._address or left or (written.address if written else finding.address)
        if where is None and finding.addresses:
            raise UsageError(
                f"{finding_id} fits {len(finding.addresses)} addresses: {', '.join(finding.addresses)}",
                "say which one with --address ADDRESS",
            )
        if where is None:
            return self._new_address(found, taken), finding
        if is_withheld(where):
            raise UsageError(
                f"{finding_id} belongs to {where}, of which a key is withheld since it is marked sensitive",
                "say the whole address with --address ADDRESS",
            )
        if where == finding.address and not self._address and finding.operation_id and not self._own.of(finding):
            raise UsageError(
                f"{finding_id} belongs to {where} of another stack: operation {finding.operation_id} is not on record "
                "here",
                "import it there, or say with --to ADDRESS where it is to go here",
            )
        return where, finding

    def _adoptable(self, finding_id: str) -> tuple[Finding, CloudObject]:
        """The finding and its object. Raises `UsageError` where it is none that could be adopted, wherever to."""
        finding = self._known.get(finding_id)
        decided = [item for item in self._context.records.dispositions() if item.finding_id == finding_id]
        decision = finding.disposition if finding else next(reversed(decided), None)
        if decision and not (finding and finding.verdict is Verdict.SOFT_DELETED):
            raise UsageError(
                f"{finding_id} was settled: {decision.kind.value} by {decision.actor} at {decision.at:%Y-%m-%d %H:%M}Z",
                "see `tfguard orphans list`",
            )
        (finding,) = findings_with([finding_id], self._known.values())
        refuse_tainted([finding])
        see = f"see `tfguard orphans show {finding_id}`"
        if finding.object is None:
            raise UsageError(f"{finding_id} is {finding.verdict.value}: there is no object that could be adopted", see)
        # What a run of this stack may have made is the person's to judge; what a scan doubts may be anybody's.
        judged = finding.verdict is Verdict.UNKNOWN and self._own.of(finding)
        if finding.verdict not in _ADOPTABLE and not judged:
            stray = f"is {finding.verdict.value}, and only what is known to be stray can be adopted"
            raise UsageError(f"{finding_id} {_WHY_NOT.get(finding.verdict, stray)}", see)
        if finding.is_withheld:
            raise UsageError(
                f"{finding_id} is told without its id, which repeats a value that is marked as sensitive",
                "look it up at the provider, then run `tfguard import ADDRESS ID`",
            )
        kind = self._context.around.catalog.get(finding.object.type)
        if kind is not None and not kind.importable:
            raise UsageError(
                f"{finding_id} is an {kind.type}, which no engine can import",
                "keep it with `tfguard orphans retain`, or delete it with `tfguard orphans destroy`",
            )
        return finding, finding.object

    def _new_address(self, found: CloudObject, taken: Collection[str]) -> str:
        unfit = {*taken, *self.state.addresses}
        if is_secret(found.name or found.id, self.state.secrets):
            found = replace(found, name=None, id="")  # an address is written everywhere
        while self._context.engine.declares(address := derived_address(found, unfit)):
            unfit.add(address)
        return address
