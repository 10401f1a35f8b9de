"""Sessions and clients of AWS: one access for each set of provider settings, clients made when first needed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, RLock
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.credentials import (
    AssumeRoleCredentialFetcher,
    CredentialProvider,
    CredentialResolver,
    DeferredRefreshableCredentials,
)
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
    ReadTimeoutError,
    SSOError,
    TokenRetrievalError,
)
from botocore.parsers import ResponseParserError

from tfguard.catalog.catalog import Catalog
from tfguard.inventory import aws_answers
from tfguard.inventory import aws_settings as settings_of
from tfguard.inventory.aws_answers import UnreadableAnswerError

Client = Any
"""A client of botocore, which makes its methods at run time."""

CALL_ERRORS = (
    BotoCoreError,
    ClientError,
    ResponseParserError,
    ValueError,
    OSError,
    TypeError,
    AttributeError,
    LookupError,
    RecursionError,
)
"""What the SDK can raise: its own, the service's refusal, an answer that is none (a proxy's page, a date that is no
date), files that cannot be read, and whatever its parsers meet in an answer of another shape, which they trust."""

# An endpoint that nobody answers on must not hold a pipeline up: with these a list call gives up within 20 seconds,
# the question for the account included, while one that is throttled gets its five attempts.
_CONNECT_SECONDS = 2
_READ_SECONDS = 12
_ATTEMPTS = 5
_CONNECT_ATTEMPTS = 3
_ACCOUNT_READ_SECONDS = 5
_ACCOUNT_ATTEMPTS = 2
_ACCOUNT_FAILURE_KEPT_SECONDS = 30.0
_CONNECTIONS = 16


_NO_CREDENTIALS = (
    NoCredentialsError,
    PartialCredentialsError,
    CredentialRetrievalError,
    SSOError,
    TokenRetrievalError,
)
_BAD_CREDENTIALS = (
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidClientTokenId",
    "UnrecognizedClientException",
    "SignatureDoesNotMatch",
)


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose credentials they are."""

    account: str
    partition: str


def refusal(error: Exception, operation: str) -> str:
    """Why a call failed, in one line: the error's code and the operation. Its message may quote a credential."""
    # The refused call can be another than ours: a role is assumed at the first call that is signed with it.
    refused = error.operation_name if isinstance(error, ClientError) else operation
    return f"{_code(error) or type(error).__name__} on {refused}"


def answered(error: Exception) -> bool:
    """Whether the service itself refused the call, rather than that nobody answered."""
    return isinstance(error, ClientError)


def nobody_can_be_asked(error: Exception) -> bool:
    """Whether no call at all can be made with these credentials: there are none, or none that are any good."""
    no_role = isinstance(error, ClientError) and error.operation_name.startswith("AssumeRole")
    return no_role or isinstance(error, _NO_CREDENTIALS) or _code(error) in _BAD_CREDENTIALS


def is_not_found(error: Exception) -> bool:
    """Whether the service says that the object is not there."""
    return any(word in _code(error) for word in ("NotFound", "NoSuch", "NonExistent"))


class AwsAccess:
    """The session and the clients of one set of provider settings. Safe to use from several threads."""

    def __init__(self, settings: Mapping[str, str], catalog: Catalog, loader: object | None) -> None:
        self._settings = settings
        self._catalog = catalog
        self._lock = RLock()
        self._caller_lock = Lock()
        self._clients: dict[tuple[str, str, int], Client] = {}
        self._caller: Caller | None = None
        self._caller_failure: tuple[float, Exception] | None = None
        self._session = self._signed_in(loader)

    @property
    def loader(self) -> object:
        """The SDK's model files in memory, which other sessions may share: reading them is most of a client's cost."""
        return self._session.get_component("data_loader")

    def region(self) -> str | None:
        """The region as the provider itself works it out: settings, environment, profile."""
        named = self._settings.get("region") or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        if named:
            return named
        with self._lock:  # the SDK reads its files at the first question, and is not safe while it does
            return self._session.get_config_variable("region") or None

    def partition(self, region: str) -> str:
        """The partition that a region belongs to. Raises an error of `CALL_ERRORS` for a region that is none."""
        with self._lock:
            return str(self._session.get_partition_for_region(region))

    def client(self, service: str, region: str, attempts: int = _ATTEMPTS) -> Client:
        """The client of a service in a region, which makes so many attempts at each call.

        Raises an error of `CALL_ERRORS`, also for a bad endpoint.
        """
        with self._lock:
            found = self._clients.get((service, region, attempts))
            if found is None:
                config = _config(self._settings, _READ_SECONDS, attempts)
                found = self._make_client(self._session, service, region, config)
                self._clients[service, region, attempts] = found
            return found

    def asks_for_account(self) -> bool:
        """Whether there is a service to ask for the account: the provider block can say that there is none."""
        if not settings_of.flag(self._settings, "skip_requesting_account_id"):
            return True
        names = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_STS")
        return bool(settings_of.endpoint(self._settings, ("sts",)) or any(os.environ.get(name) for name in names))

    def caller(self, region: str) -> Caller:
        """Whose credentials they are, asked once. Raises an error of `CALL_ERRORS`; a failure is remembered briefly."""
        with self._caller_lock:
            if self._caller is None:
                self._raise_recent_failure()
                try:
                    self._caller = self._ask_for_caller(region)
                except CALL_ERRORS as error:
                    self._caller_failure = (time.monotonic(), error)
                    raise
            return self._caller

    def _raise_recent_failure(self) -> None:
        if self._caller_failure and time.monotonic() - self._caller_failure[0] < _ACCOUNT_FAILURE_KEPT_SECONDS:
            raise self._caller_failure[1]

    def _ask_for_caller(self, region: str) -> Caller:
        answer = self._sts(self._session, region).get_caller_identity()
        arn = str(answer.get("Arn", "")).split(":")
        if "Account" not in answer or len(arn) < 2:
            raise UnreadableAnswerError("GetCallerIdentity was answered without an account")
        return Caller(account=answer["Account"], partition=arn[1])

    def _sts(self, session: Any, region: str, **credentials: str) -> Client:
        config = _config(self._settings, _ACCOUNT_READ_SECONDS, _ACCOUNT_ATTEMPTS)
        where = self._settings.get("sts_region") or region
        with self._lock:
            return self._make_client(session, "sts", where, config, **credentials)

    def _make_client(self, session: Any, service: str, region: str, config: Config, **credentials: str) -> Client:
        client = session.create_client(
            service,
            region_name=region,
            endpoint_url=settings_of.endpoint(self._settings, self._catalog.endpoint_names(service)),
            verify=_verification(self._settings),
            config=config,
            **credentials,
        )
        service_id = client.meta.service_model.service_id.hyphenize()
        client.meta.events.register_first(f"needs-retry.{service_id}", _give_up_on_silence)
        aws_answers.register(client)
        return client

    def _new_session(self, loader: object | None) -> Any:
        session = botocore.session.Session(profile=self._settings.get("profile") or None)
        session.user_agent_extra = "tfguard"
        if loader is not None:
            session.register_component("data_loader", loader)
        for setting, variable in (
            ("shared_config_files", "config_file"),
            ("shared_credentials_files", "credentials_file"),
        ):
            for path in settings_of.values(self._settings, setting):
                session.set_config_variable(variable, str(Path(path).expanduser()))
        return session

    def _signed_in(self, loader: object | None) -> Any:
        """A session with the settings' own credentials, or one that acts in the role that they name."""
        base = self._new_session(loader)
        if self._settings.get("access_key"):
            keys = (
                self._settings["access_key"],
                self._settings.get("secret_key", ""),
                self._settings.get("token") or None,
            )
            base.set_credentials(*keys)
        role = self._settings.get("assume_role.role_arn")
        if not role:
            return base
        session = self._new_session(base.get_component("data_loader"))
        provider = _RoleProvider(lambda: self._role_credentials(base, role))
        session.register_component("credential_provider", CredentialResolver([provider]))
        return session

    def _role_credentials(self, base: Any, role: str) -> DeferredRefreshableCredentials:
        extra = {
            "RoleSessionName": self._settings.get("assume_role.session_name") or "tfguard",
            "ExternalId": self._settings.get("assume_role.external_id"),
            "Policy": self._settings.get("assume_role.policy"),
        }
        given = {name: value for name, value in extra.items() if value}

        def fetch() -> dict[str, Any]:
            with self._lock:
                source = base.get_credentials()
            if source is None:  # which the SDK takes for granted
                raise NoCredentialsError
            fetcher = AssumeRoleCredentialFetcher(
                client_creator=lambda _service, **credentials: self._sts_for_role(base, credentials),
                source_credentials=source,
                role_arn=role,
                extra_args=given,
            )
            return dict(fetcher.fetch_credentials())

        return DeferredRefreshableCredentials(method="assume-role", refresh_using=fetch)

    def _sts_for_role(self, base: Any, credentials: Mapping[str, str]) -> Client:
        return self._sts(base, self.region() or settings_of.GLOBAL_REGIONS["aws"], **credentials)


class AwsAccesses:
    """The accesses made so far. Provider configurations with the same relevant settings share one."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._lock = Lock()
        self._made: dict[tuple[tuple[str, str], ...], AwsAccess] = {}

    def of(self, settings: Mapping[str, str]) -> AwsAccess:
        """The access for provider settings. Raises an error of `CALL_ERRORS` where they contradict the machine's."""
        key = settings_of.sharing_key(settings)
        with self._lock:
            if key not in self._made:
                loader = next((access.loader for access in self._made.values()), None)
                self._made[key] = AwsAccess(dict(key), self._catalog, loader)
            return self._made[key]


class _RoleProvider(CredentialProvider):  # type: ignore[misc]
    """Hands a session credentials that renew themselves: an apply can last longer than a role's hour."""

    METHOD = "assume-role"
    CANONICAL_NAME = None

    def __init__(self, make: Callable[[], DeferredRefreshableCredentials]) -> None:
        super().__init__()
        self._make = make

    def load(self) -> DeferredRefreshableCredentials:
        """The credentials of the role, fetched at the first call that is signed with them."""
        return self._make()


def _code(error: Exception) -> str:
    return str(error.response.get("Error", {}).get("Code") or "") if isinstance(error, ClientError) else ""


def _config(settings: Mapping[str, str], read_seconds: int, attempts: int = _ATTEMPTS) -> Config:
    proxies = {scheme: settings[f"{scheme}_proxy"] for scheme in ("http", "https") if settings.get(f"{scheme}_proxy")}
    path_style = settings_of.flag(settings, "s3_use_path_style", "s3_force_path_style")
    return Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=read_seconds,
        retries={"mode": "adaptive", "total_max_attempts": attempts},
        max_pool_connections=_CONNECTIONS,
        proxies=proxies or None,
        s3={"addressing_style": "path"} if path_style else None,
        use_fips_endpoint=settings_of.flag(settings, "use_fips_endpoint") or None,
        use_dualstack_endpoint=settings_of.flag(settings, "use_dualstack_endpoint") or None,
    )


def _verification(settings: Mapping[str, str]) -> bool | str | None:
    if settings_of.flag(settings, "insecure"):
        return False
    return settings.get("custom_ca_bundle") or None


def _give_up_on_silence(attempts: int, caught_exception: Exception | None = None, **_: object) -> None:
    """Before the SDK decides on a retry: no second wait for an answer, and few for a connection.

    Raising is the only way out, as a handler can ask for a retry but not forbid one.
    """
    silent = isinstance(caught_exception, ReadTimeoutError)
    if isinstance(caught_exception, HTTPClientError) and (silent or attempts >= _CONNECT_ATTEMPTS):
        raise caught_exception
