"""Builds what the preflight of a blueprint asks, and makes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfguard.catalog.loader import load_catalog
from tfguard.cli.blueprint_stacks import GuardedStacks
from tfguard.flows.blueprints.context import BlueprintContext
from tfguard.flows.blueprints.preflight import preflight, refuse_failures
from tfguard.flows.blueprints.preflight_clouds import PreflightPorts
from tfguard.inventory.aws import AwsInventory
from tfguard.inventory.aws_quotas import AwsQuotas
from tfguard.inventory.combined import CombinedInventory
from tfguard.model.blueprint_request import Request
from tfguard.model.preflight import CheckResult


def look_first(context: BlueprintContext, request: Request, skipped: Mapping[str, str]) -> Sequence[CheckResult]:
    """Look whether there is what a request needs; what was seen.

    Raises `PreflightError`, `NoEngineError` or `RecordError` where there is not, and `UsageError` for a check in
    `skipped` that there is not.
    """
    stacks, catalog = context.stacks, load_catalog()
    assert isinstance(stacks, GuardedStacks)
    ports = PreflightPorts(stacks.context, CombinedInventory([AwsInventory(catalog)]), catalog, AwsQuotas(catalog))
    results = preflight(context, request, skipped, ports)
    refuse_failures(context, results)
    return results
