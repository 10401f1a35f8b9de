"""When the credentials of a run end, as far as the environment and the files that it names tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tfguard.inventory.aws_profiles import profile_expiry
from tfguard.inventory.expiry import parse_time, token_expiry
from tfguard.model.credentials import Expiry
from tfguard.model.plan import ProviderConfig


@dataclass(frozen=True, slots=True)
class _Source:
    """Variables that tell the end of the same credentials, the one to be believed first; `needs` are those in whose
    presence these credentials are used at all."""

    names: tuple[str, ...]
    read: Callable[[str], datetime | None]
    needs: str
    for_sign_in: bool = False


# They count for every stack: also what is no AWS provider (a state, a record, `aws eks get-token`) can live on them.
_ENVIRONMENT = (
    _Source(("AWS_CREDENTIAL_EXPIRATION", "AWS_SESSION_EXPIRATION"), parse_time, "AWS_ACCESS_KEY_ID"),
    # Handed in once, and exchanged for tokens that end later; those renew themselves with it, and it does not.
    _Source(("ARM_OIDC_TOKEN",), token_expiry, "ARM_USE_OIDC", for_sign_in=True),
)
# By the last part of a provider's source, and by backend: who can end beside the environment.
_BY_PROVIDER: Mapping[str, Callable[[Mapping[str, str], Mapping[str, str]], Expiry | None]] = {"aws": profile_expiry}
_BACKENDS: Mapping[str, str] = {"s3": "aws"}


class RunCredentials:
    """The credentials that a run's environment, providers and backend use. Implements `ports.Credentials`."""

    def __init__(
        self, environ: Mapping[str, str], backend: str = "", backend_settings: Mapping[str, str] | None = None
    ):
        self._environ = environ
        self._backend = (_BACKENDS.get(backend, ""), backend_settings or {})

    def expiries(self, providers: Sequence[ProviderConfig]) -> tuple[Expiry, ...]:
        """Every end that is written down, the earliest first; most credentials have none that could be read."""
        found = [_from_environment(source, self._environ) for source in _ENVIRONMENT]
        used = [(provider.source.rpartition("/")[2], provider.settings) for provider in providers]
        for name, settings in (*used, self._backend):
            if name in _BY_PROVIDER:
                found.append(_BY_PROVIDER[name](settings, self._environ))
        return tuple(sorted(dict.fromkeys(item for item in found if item), key=lambda item: item.at))


def _from_environment(source: _Source, environ: Mapping[str, str]) -> Expiry | None:
    if environ.get(source.needs, "").lower() in ("", "0", "false"):
        return None
    for name in source.names:
        if ends := source.read(environ.get(name, "")):
            return Expiry(name, ends, source.for_sign_in)
    return None
