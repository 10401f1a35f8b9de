"""What an AWS account may have at most, from Service Quotas. The SDK is slow to import: it waits for a question."""

from __future__ import annotations

import math
from threading import Lock
from typing import TYPE_CHECKING

from tfguard.catalog.catalog import Catalog
from tfguard.inventory import aws_settings as settings_of
from tfguard.model.inventory import UNKNOWN_REGION, Scope
from tfguard.model.plan import ProviderConfig
from tfguard.model.preflight import Limit, Quota

if TYPE_CHECKING:
    from tfguard.inventory.aws_access import AwsAccesses, Client

_SERVICE = "service-quotas"
_CLOUD = "aws"
_GLOBAL = "global"
_NO_SDK = "boto3 is not installed: `pip install boto3`"


class AwsQuotas:
    """Asks Service Quotas. Implements `blueprint_ports.Quotas`; safe to use from several threads."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._lock = Lock()
        self._made: AwsAccesses | None = None

    def limit(self, quota: Quota, provider: ProviderConfig, scope: Scope) -> Limit:
        """The account's own limit, or the default where it has none. What exists once in an account is limited in the
        one region of its partition that answers for that."""
        if scope.cloud != _CLOUD:
            return Limit(reason=f"no limits of {scope.cloud} can be asked for")
        if scope.region == UNKNOWN_REGION:
            return Limit(reason=settings_of.region_is_unknown(provider) or settings_of.no_region(provider.key))
        names = (*self._catalog.endpoint_names(_SERVICE), *self._catalog.endpoint_names("sts"))
        if unknown := settings_of.whom_is_unknown(provider, names):
            return Limit(reason=unknown)
        try:
            from tfguard.inventory.aws_access import CALL_ERRORS, refusal
        except ImportError:
            return Limit(reason=_NO_SDK)
        try:
            return _limit(self._client(provider, scope.region), quota)
        except CALL_ERRORS as error:
            return Limit(reason=refusal(error, "GetServiceQuota"))

    def _client(self, provider: ProviderConfig, region: str) -> Client:
        access = self._accesses().of(provider.settings)
        if region == _GLOBAL:
            near = access.region() or settings_of.GLOBAL_REGIONS[_CLOUD]
            region = settings_of.GLOBAL_REGIONS.get(access.partition(near), near)
        return access.client(_SERVICE, region)

    def _accesses(self) -> AwsAccesses:
        from tfguard.inventory.aws_access import AwsAccesses

        with self._lock:
            if self._made is None:
                self._made = AwsAccesses(self._catalog)
            return self._made


def _limit(client: Client, quota: Quota) -> Limit:
    from tfguard.inventory.aws_access import CALL_ERRORS, is_not_found

    try:
        answer = client.get_service_quota(ServiceCode=quota.service, QuotaCode=quota.code)
        return _told(answer["Quota"])
    except CALL_ERRORS as error:
        if not is_not_found(error):
            raise
    # An account for which nothing was ever raised may have no limit of its own.
    for page in client.get_paginator("list_aws_default_service_quotas").paginate(ServiceCode=quota.service):
        for default in page["Quotas"]:
            if default.get("QuotaCode") == quota.code:
                return _told(default)
    return Limit(reason=f"Service Quotas has no {quota.service} {quota.code} here")


def _told(quota: dict[str, object]) -> Limit:
    value = quota.get("Value")
    if not isinstance(value, int | float) or not math.isfinite(value):
        return Limit(reason="Service Quotas answered without a value")
    return Limit(int(value))
