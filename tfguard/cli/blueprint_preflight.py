"""Builds what the preflight of a blueprint asks, and makes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfguard.catalog.loader import load_catalog
from tfguard.cli.blueprint_stacks import GuardedStacks
from tfguard.flows.blueprints.context import BlueprintContext
from tfguard.flows.blueprints.preflight import Preflight, refuse_failures
from tfguard.flows.blueprints.preflight_clouds import PreflightPorts
from tfguard.inventory.aws_quotas import AwsQuotas
from tfguard.inventory.clouds import inventory_of_clouds
from tfguard.model.blueprint_decision import Told
from tfguard.model.blueprint_request import Request
from tfguard.model.blueprint_view import PlanOutline
from tfguard.model.preflight import CheckResult


class FirstLook:
    """The preflight of a request, as `provide` calls it, without the checks of `skipped`, and with what a person has
    `told` of steps. Afterwards `outlines` is what the engine would do, by step."""

    def __init__(self, context: BlueprintContext, skipped: Mapping[str, str], told: Mapping[str, Told]) -> None:
        self._context = context
        self._skipped = skipped
        self._told = told
        self.outlines: Mapping[str, PlanOutline] = {}

    def __call__(self, request: Request) -> Sequence[CheckResult]:
        """Look whether there is what a request needs; what was seen.

        Raises `PreflightError`, `NoEngineError` or `RecordError` where there is not, and `UsageError` for a check in
        `skipped` that there is not.
        """
        made = _preflight(self._context, request, self._skipped, self._told)
        results = made.run()
        refuse_failures(self._context, results)
        self.outlines = made.outlines()
        return results


def planned(context: BlueprintContext, request: Request) -> Mapping[str, PlanOutline]:
    """What the engine would do in each stack of a request that is to be applied; a stack that was never set up is. Why
    one cannot be planned is said."""
    made = _preflight(context, request, {}, {})
    made.plan_alone()
    for name, why in made.refusals().items():
        context.console.warn(f"{name}: cannot be planned: {why}")
    return made.outlines()


def _preflight(
    context: BlueprintContext, request: Request, skipped: Mapping[str, str], told: Mapping[str, Told]
) -> Preflight:
    stacks, catalog = context.stacks, load_catalog()
    assert isinstance(stacks, GuardedStacks)
    ports = PreflightPorts(stacks.context, inventory_of_clouds(catalog), catalog, AwsQuotas(catalog))
    return Preflight(context, request, skipped, ports, told)
