"""Clients of Google Cloud: one access for each set of provider settings, clients made when first needed.

Everything goes over REST. Calls that only read are tried again where the service is busy; what changes something is
asked for once (docs/design.md, rule 17).
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from random import uniform
from threading import Lock, RLock
from typing import Any, TypeVar
from urllib.parse import urlsplit

import requests
from google.api_core.client_options import ClientOptions
from google.api_core.exceptions import GoogleAPICallError, GoogleAPIError, from_http_response
from google.api_core.gapic_v1.client_info import ClientInfo
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError, RefreshError, TransportError
from google.auth.transport.requests import AuthorizedSession
from google.protobuf import json_format

from tfguard.google_credentials import credentials_for
from tfguard.inventory import google_settings as settings_of

Client = Any
"""A client of Google's libraries, which carry no types."""

T = TypeVar("T")

CALL_ERRORS = (
    GoogleAPIError,
    GoogleAuthError,
    json_format.Error,
    ValueError,
    OSError,
    TypeError,
    AttributeError,
    LookupError,
    RecursionError,
)
"""What the libraries can raise: the service's refusal, credentials that are none, an answer that is none (a proxy's
page), a network that fails, and whatever their parsers meet in an answer of another shape, which they trust."""

_CONNECT_SECONDS, _READ_SECONDS = 4, 20
_ATTEMPTS = 6
_CONNECT_ATTEMPTS = 2
_LONGEST_PAUSE = 32.0
_ASKED_TO_WAIT = 60.0
_FAILURE_KEPT_SECONDS = 30.0
_LONGEST_BUSY = 75.0
_BUSY_FORGOTTEN = 120.0
_MOST_PAGES = 100_000
_BUSY = frozenset({429, 500, 502, 503, 504})
_BUSY_WORDS = frozenset({"rateLimitExceeded", "userRateLimitExceeded", "RATE_LIMIT_EXCEEDED", "RESOURCE_EXHAUSTED"})
_DISABLED = "SERVICE_DISABLED"
_NO_CREDENTIALS = (DefaultCredentialsError, RefreshError)
_CLIENTS = ("google.cloud.asset_v1", "google.cloud.resourcemanager_v3")
_UNUSABLE = (
    "no credentials of Google Cloud that can be used: set GOOGLE_APPLICATION_CREDENTIALS, or run `gcloud auth "
    "application-default login`"
)
_REFUSED = "Google Cloud refuses the credentials"
_AGENT = "tfguard"


class UnreadableAnswerError(ValueError):
    """Something answered, and not as the service does."""


class Pace:
    """A token bucket: `burst` calls at once, and `per_minute` in each minute, so that no minute has more than both.

    Safe to use from several threads.
    """

    def __init__(
        self,
        per_minute: int,
        burst: int,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self._each = 60.0 / per_minute
        self._ahead = burst * self._each
        self._clock = clock
        self._pause = pause
        self._lock = Lock()
        self._due = float("-inf")

    def wait(self) -> None:
        """Wait until it is the caller's turn."""
        with self._lock:
            now = self._clock()
            self._due = max(self._due, now) + self._each
            left = self._due - self._ahead - now
        if left > 0:
            self._pause(left)


# Documented: 400 searches in a minute for each project that asks (docs/facts/inventories.md, section 4).
SEARCH_PACE = Pace(320, 75)
"""The pace of this process's searches, whoever asks."""


def refusal(error: Exception, operation: str) -> str:
    """Why a call failed, in one line: Google's own word for it and the operation. Its message may quote anything.

    Of credentials that are no good it is always the same, whatever was asked."""
    if nobody_can_be_asked(error):
        return _UNUSABLE if isinstance(error, DefaultCredentialsError) else _REFUSED
    word = _word(error)
    return f"{word} on {operation}{_disabled_service(error) if word == _DISABLED else _host(error)}"


def answered(error: Exception) -> bool:
    """Whether the service itself refused the call, rather than that nobody answered or something in between did."""
    return bool(_told(error))


def nobody_can_be_asked(error: Exception) -> bool:
    """Whether no call at all can be made with these credentials: there are none, or none that are any good."""
    return isinstance(error, _NO_CREDENTIALS) or _code(error) == requests.codes.unauthorized


def is_of_credentials(reason: str) -> bool:
    """Whether the reason of a gap is that no call can be made with these credentials."""
    return _UNUSABLE in reason or _REFUSED in reason


def is_denied(error: Exception) -> bool:
    """Whether the service says that these credentials may not ask this."""
    return _code(error) == requests.codes.forbidden and answered(error)


def is_unsupported(error: Exception) -> bool:
    """Whether the service says that it cannot be asked so."""
    return _code(error) == requests.codes.bad_request and answered(error)


def is_not_found(error: Exception) -> bool:
    """Whether the service itself, and not something in between, says that the object is not there."""
    gone = (requests.codes.not_found, requests.codes.gone)
    return _code(error) in gone and _told(error).get("code") in gone


def every_page(operation: str, ask: Callable[[str], dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Every page of a list, `ask` giving that of a token. Raises what `ask` does, and `UnreadableAnswerError` for pages
    without an end."""
    token, seen = "", set[str]()
    while token not in seen and len(seen) < _MOST_PAGES:
        seen.add(token)
        page = ask(token)
        yield page
        token = str(page.get("nextPageToken") or "")
        if not token:
            return
    raise UnreadableAnswerError(f"{operation} has pages without an end")


class GoogleAccess:
    """The credentials and the clients of one set of provider settings. Safe to use from several threads.

    `project` pays for the calls where the settings say that the project itself is to, and name no other. `pause` waits
    between two tries.
    """

    def __init__(
        self,
        settings: Mapping[str, str],
        project: str = "",
        pace: Pace = SEARCH_PACE,
        pause: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._project = project
        self._pace = pace
        self._pause = pause
        self._clock = clock
        # Of each operation the first and the last refusal for its rate, without an answer in between.
        self._busy: dict[str, tuple[float, float]] = {}
        self._lock = RLock()
        self._clients: dict[str, Client] = {}
        self._credentials: Any = None
        self._failure: tuple[float, Exception] | None = None
        self.unsupported: frozenset[str] = frozenset()
        """What the search turned out not to know, though the catalogue does."""

    def search(self, request: Mapping[str, object]) -> Iterator[list[dict[str, Any]]]:
        """The pages of SearchAllResources, each the results as JSON has them. Raises an error of `CALL_ERRORS`."""
        client = self._client("AssetService", _asset_client, settings_of.ASSETS)
        for page in self.pages("SearchAllResources", client.search_all_resources, request, self._pace):
            yield page.get("results", [])

    def manager(self, kind: str) -> Client:
        """A client of Resource Manager: of `Projects`, `Folders`, `Organizations`, `TagKeys`, `TagValues` or
        `TagBindings`. Raises an error of `CALL_ERRORS`."""
        names = settings_of.TAGS if kind.startswith("Tag") else settings_of.RESOURCE_MANAGER
        return self._client(kind, _manager_client, names)

    def pages(
        self, operation: str, method: Callable[..., Any], request: Mapping[str, object], pace: Pace | None = None
    ) -> Iterator[dict[str, Any]]:
        """Every page of a client's method, as JSON has it. Raises an error of `CALL_ERRORS`, also for pages without
        an end."""

        def ask(token: str) -> dict[str, Any]:
            asked = {**request, "page_token": token}
            return self.ask(lambda: _first_page(method, asked), pace, operation=operation)

        return every_page(operation, ask)

    def one(self, method: Callable[..., Any], name: str) -> dict[str, Any]:
        """The answer of a client's method about one thing, as JSON has it. Raises an error of `CALL_ERRORS`."""
        return self.ask(lambda: _as_json(method(name=name, retry=None, timeout=_READ_SECONDS)))

    def address(self, url: str, names: tuple[str, ...]) -> str:
        """Where a call of a service is made, `url` being the service's public address of it."""
        return settings_of.address(url, self._settings, os.environ, names)

    def json(
        self,
        method: str,
        url: str,
        operation: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, object] | None = None,
        once: bool = False,
    ) -> dict[str, Any]:
        """The answer to a call that no client has. Raises an error of `CALL_ERRORS`. `once`: it is not tried again."""

        def call() -> dict[str, Any]:
            timeout = (_CONNECT_SECONDS, _READ_SECONDS)
            response = self._session().request(
                method, url, params=params, json=body, timeout=timeout, allow_redirects=False
            )
            if response.status_code >= requests.codes.bad_request:
                raise from_http_response(response)
            answer = response.json() if response.content else {}
            if not isinstance(answer, dict) or response.status_code >= requests.codes.multiple_choices:
                raise UnreadableAnswerError(f"{operation} was not answered by the service")
            return answer

        return self.ask(call, attempts=1 if once else _ATTEMPTS, operation=operation)

    def ask(self, call: Callable[[], T], pace: Pace | None = None, attempts: int = _ATTEMPTS, operation: str = "") -> T:
        """What a call answers, tried again while the service is busy: for a bounded time, which all calls of an
        operation share until one is answered. Raises an error of `CALL_ERRORS`."""
        tried = 0
        while True:
            tried += 1
            if pace is not None:
                pace.wait()
            try:
                answer = call()
            except CALL_ERRORS as error:
                wait = _before_next(error, tried)
                if wait is None or tried >= attempts or self._is_busy(operation, error, wait):
                    raise
            else:
                self._busy.pop(operation, None)
                return answer
            self._pause(wait)

    def _is_busy(self, operation: str, error: Exception, wait: float) -> bool:
        """Whether an operation that was just refused for its rate has been so for too long to wait once more."""
        if not _is_rate(error):
            return False
        now = self._clock()
        with self._lock:
            first, last = self._busy.get(operation, (now, now))
            if now - last > _BUSY_FORGOTTEN:
                first = now
            self._busy[operation] = (first, now)
        return now + wait - first > _LONGEST_BUSY

    def _client(self, kind: str, make: Callable[[str], Any], names: tuple[str, ...]) -> Client:
        with self._lock:
            if kind not in self._clients:
                options = ClientOptions(
                    api_endpoint=settings_of.api_root(self._settings, os.environ, names),
                    universe_domain=settings_of.universe(self._settings, os.environ),
                )
                self._clients[kind] = make(kind)(
                    credentials=self._who(),
                    transport="rest",
                    client_options=options,
                    client_info=ClientInfo(user_agent=_AGENT),
                )
            return self._clients[kind]

    def _session(self) -> Any:
        with self._lock:
            if "" not in self._clients:
                session = AuthorizedSession(self._who())
                session.headers["User-Agent"] = _AGENT
                self._clients[""] = session
            return self._clients[""]

    def _who(self) -> Any:
        """The credentials, worked out once; that there are none is remembered briefly, since it takes its time."""
        with self._lock:
            if self._credentials is None:
                if self._failure and time.monotonic() - self._failure[0] < _FAILURE_KEPT_SECONDS:
                    raise self._failure[1]
                try:
                    wanted = settings_of.credentials_wanted(self._settings, os.environ, self._project)
                    self._credentials = credentials_for(wanted)
                except ImportError:
                    raise
                except Exception as error:  # noqa: BLE001 (whatever the libraries meet in a key; its words may be of it)
                    unusable = DefaultCredentialsError(f"the credentials cannot be used: {type(error).__name__}")
                    self._failure = (time.monotonic(), unusable)
                    raise unusable from None
            return self._credentials


class GoogleAccesses:
    """The accesses made so far. Provider configurations with the same relevant settings share one."""

    def __init__(
        self,
        pace: Pace = SEARCH_PACE,
        pause: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pace = pace
        self._pause = pause
        self._clock = clock
        self._lock = Lock()
        self._made: dict[tuple[tuple[str, str], ...], GoogleAccess] = {}

    def of(self, settings: Mapping[str, str], project: str = "") -> GoogleAccess:
        """The access for provider settings that are used for a project."""
        payer = project if settings_of.credentials_wanted(settings, os.environ, project).quota_project else ""
        key = (*settings_of.sharing_key(settings), ("", payer))
        with self._lock:
            if key not in self._made:
                self._made[key] = GoogleAccess(dict(key[:-1]), payer, self._pace, self._pause, self._clock)
            return self._made[key]


def require_clients() -> None:
    """Raises `ImportError` where a client that a listing needs is not installed, without the time to import it."""
    missing = [name for name in _CLIENTS if find_spec(name) is None]
    if missing:
        raise ImportError(f"{missing[0]} is not installed")


def load_clients() -> None:
    """Import the clients that a listing needs: it takes longer than a list. Raises `ImportError`."""
    _asset_client("")
    _manager_client("Projects")


def _asset_client(_: str) -> Any:
    from google.cloud.asset_v1.services.asset_service import AssetServiceClient

    return AssetServiceClient


def _manager_client(kind: str) -> Any:
    from google.cloud import resourcemanager_v3

    return getattr(resourcemanager_v3, f"{kind}Client")


def _first_page(method: Callable[..., Any], request: Mapping[str, object]) -> dict[str, Any]:
    """One page alone: the libraries' own way through the pages neither paces itself nor minds a token that returns."""
    pager = method(request=dict(request), retry=None, timeout=_READ_SECONDS)
    return _as_json(next(iter(pager.pages)))


def _as_json(message: Any) -> dict[str, Any]:
    found: dict[str, Any] = json_format.MessageToDict(type(message).pb(message))
    return found


def _before_next(error: Exception, tried: int) -> float | None:
    """How long to wait before a call is tried again; None where that is of no use."""
    if _code(error) in _BUSY or _BUSY_WORDS.intersection(_words(error)):
        pause = min(2.0**tried, _LONGEST_PAUSE) * uniform(0.8, 1.2)
        return max(pause, _asked_to_wait(error))
    no_answer = isinstance(error, requests.ConnectionError | TransportError)
    return 1.0 if no_answer and tried < _CONNECT_ATTEMPTS else None


def _is_rate(error: Exception) -> bool:
    return _code(error) == requests.codes.too_many_requests or bool(_BUSY_WORDS.intersection(_words(error)))


def _asked_to_wait(error: Exception) -> float:
    response = getattr(error, "response", None)
    told = str(getattr(response, "headers", {}).get("Retry-After", ""))
    return min(float(told), _ASKED_TO_WAIT) if re.fullmatch(r"\d{1,6}", told) else 0.0


def _code(error: Exception) -> int | None:
    return error.code if isinstance(error, GoogleAPICallError) else None


def _told(error: Exception) -> Mapping[str, Any]:
    """The error as the service tells it in its answer; nothing where something else answered, or nobody did."""
    response = getattr(error, "response", None) if isinstance(error, GoogleAPICallError) else None
    try:
        answer = response.json() if response is not None else None
    except ValueError:
        return {}
    told = answer.get("error") if isinstance(answer, dict) else None
    return told if isinstance(told, dict) else {}


def _words(error: Exception) -> list[str]:
    """What the service calls the error, the most special first."""
    told = _told(error)
    details = [one for name in ("details", "errors") for one in _listed(told.get(name)) if isinstance(one, dict)]
    words = [one.get("reason") for one in details] + [told.get("status")]
    return [word for word in words if isinstance(word, str) and re.fullmatch(r"[A-Za-z_]{1,64}", word)]


def _disabled_service(error: Exception) -> str:
    """Which service has to be enabled, where the answer names it."""
    details = [one for one in _listed(_told(error).get("details")) if isinstance(one, dict)]
    told = [one["metadata"].get("service") for one in details if isinstance(one.get("metadata"), dict)]
    name = next((one for one in told if isinstance(one, str) and re.fullmatch(r"[a-z0-9.-]{1,100}", one)), "")
    return f": enable {name} in the project that asks" if name else ""


def _host(error: Exception) -> str:
    """Who was asked, where nobody answered."""
    cause = error.args[0] if isinstance(error, TransportError) and error.args else error
    request = getattr(cause, "request", None) if isinstance(cause, requests.RequestException) else None
    try:
        host = urlsplit(str(getattr(request, "url", None) or "")).hostname
    except ValueError:
        host = None
    return f" at {host}" if host else ""


def _listed(found: object) -> list[object]:
    return found if isinstance(found, list) else []


def _word(error: Exception) -> str:
    """`PERMISSION_DENIED`, or what is in its place where the service does not tell."""
    words = _words(error)
    if _DISABLED in words:
        return _DISABLED
    return words[-1] if words else type(error).__name__
