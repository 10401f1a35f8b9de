"""How the calls of Google Cloud are paced and tried again, and what counts as an answer at all."""

from __future__ import annotations

import json
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from google.auth.exceptions import DefaultCredentialsError

from fixtures.google_sim import GoogleSim
from tfguard.catalog.loader import load_catalog
from tfguard.inventory.google import GoogleInventory
from tfguard.inventory.google_access import SEARCH_PACE, GoogleAccess, GoogleAccesses, Pace
from tfguard.model.inventory import CloudObject
from tfguard.model.plan import ProviderConfig

TOPIC = "google_pubsub_topic"
SEARCH = "/v1/projects/app-prod:searchAllResources"

Block = Callable[..., ProviderConfig]
Answer = Callable[[str], tuple[int, str]]


@pytest.fixture
def answering(google_block: Block) -> Iterator[Callable[[Answer], ProviderConfig]]:
    """Starts a server that answers each GET as the function says, and makes a provider block for it."""
    servers: list[ThreadingHTTPServer] = []

    def start(answer: Answer) -> ProviderConfig:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, text = answer(self.path)
                self.send_response(status)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        names = ("cloud_asset", "resource_manager_v3", "tags", "pubsub")
        url = f"http://127.0.0.1:{server.server_port}/v1/"
        return google_block(**{f"{name}_custom_endpoint": url for name in names})

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


class _Time:
    """A clock that only moves when somebody waits."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


def test_no_minute_has_more_searches_than_google_allows() -> None:
    time = _Time()
    pace = Pace(320, 75, time, time.wait)
    moments = []
    for number in range(2_000):
        if number in (700, 1_400):
            time.now += 45.0  # idle for a while, which may be used up at once afterwards
        pace.wait()
        moments.append(time.now)
    assert max(bisect_left(moments, start + 60) - number for number, start in enumerate(moments)) < 400
    assert moments[-1] < 9 * 60  # and it goes on: 320 in a minute
    own = (SEARCH_PACE._each, SEARCH_PACE._ahead)
    assert own == (pace._each, pace._ahead)


def test_a_busy_service_is_asked_again_and_a_refusal_is_not(
    google: GoogleSim, google_block: Block, google_inventory: GoogleInventory
) -> None:
    google.add_project("app-prod")
    google.add(TOPIC, "t", "app-prod")
    google.fail_next(SEARCH, 429, times=3)
    google.fail_next(SEARCH, 503, times=2)
    listing = google_inventory.list(TOPIC, google_block())
    assert listing.complete
    assert len(listing.objects) == 1
    google.calls.clear()
    google.fail_next(SEARCH, 403, times=1)
    assert not google_inventory.list(TOPIC, google_block()).complete
    assert sum(call.path == SEARCH for call in google.calls) == 1


def test_a_service_that_stays_busy_is_a_gap_after_a_bounded_time(google: GoogleSim, google_block: Block) -> None:
    time = _Time()
    google.add_project("app-prod")
    google.quota(0)
    inventory = GoogleInventory(load_catalog(), GoogleAccesses(Pace(320, 75, time, time.wait), time.wait, time))
    listing = inventory.list(TOPIC, google_block())
    assert listing.gap is not None
    assert listing.gap.reason == "RESOURCE_EXHAUSTED on SearchAllResources"
    assert 30 < time.now < 120  # a quota of a minute has begun anew by then
    begun = time.now
    google.calls.clear()
    assert inventory.list(TOPIC, google_block()).gap is not None
    assert time.now - begun < 15, "the time of waiting is that of all searches together"
    time.now += 300
    begun = time.now
    assert inventory.list(TOPIC, google_block()).gap is not None
    assert time.now - begun > 30, "what was long ago says nothing about now"


def test_pages_that_never_end_are_a_gap(
    answering: Callable[[Answer], ProviderConfig], google_inventory: GoogleInventory
) -> None:
    def answer(path: str) -> tuple[int, str]:
        token = parse_qs(urlsplit(path).query).get("pageToken", ["a"])[0]
        return 200, json.dumps({"results": [], "nextPageToken": "b" if token == "a" else "a"})

    listing = google_inventory.list(TOPIC, answering(answer))
    assert listing.gap is not None
    assert listing.gap.reason == "UnreadableAnswerError on SearchAllResources"


def test_the_page_of_a_proxy_is_no_empty_list(
    answering: Callable[[Answer], ProviderConfig], google_inventory: GoogleInventory
) -> None:
    listing = google_inventory.list(TOPIC, answering(lambda _: (200, "<html>sign in</html>")))
    assert listing.gap is not None
    assert listing.gap.reason == "ParseError on SearchAllResources"


@pytest.mark.parametrize(("text", "gone"), [("<html>not found</html>", False), ('{"error": {"code": 404}}', True)])
def test_only_the_services_own_word_says_that_an_object_is_gone(
    answering: Callable[[Answer], ProviderConfig], google_inventory: GoogleInventory, text: str, gone: bool
) -> None:
    name = "projects/app-prod/topics/t"
    identity = {"id": name, "project": "app-prod", "name": "t"}
    found = CloudObject("google", "app-prod", "global", TOPIC, name, name, identity)
    answer = google_inventory.detail(found, answering(lambda _: (404, text)))
    assert (answer.gone, answer.gap is None) == (gone, gone)


def test_a_disabled_service_is_told_as_such(
    answering: Callable[[Answer], ProviderConfig], google_inventory: GoogleInventory
) -> None:
    info: dict[str, object] = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "SERVICE_DISABLED"}
    info |= {"metadata": {"service": "cloudasset.googleapis.com"}}
    error = {"error": {"code": 403, "message": "m", "status": "PERMISSION_DENIED", "details": [info]}}
    listing = google_inventory.list(TOPIC, answering(lambda _: (403, json.dumps(error))))
    assert listing.gap is not None
    told = "SERVICE_DISABLED on SearchAllResources: enable cloudasset.googleapis.com in the project that asks"
    assert listing.gap.reason == told


def test_nobody_listening_is_told_soon(google_block: Block, google_inventory: GoogleInventory) -> None:
    listing = google_inventory.list(TOPIC, google_block(cloud_asset_custom_endpoint="http://127.0.0.1:9/v1/"))
    assert listing.gap is not None
    assert listing.gap.reason == "ConnectionError on SearchAllResources at 127.0.0.1"


def test_the_project_that_pays_is_named_in_the_calls(
    google: GoogleSim, google_block: Block, google_inventory: GoogleInventory
) -> None:
    google.add_project("app-prod")
    google_inventory.list(TOPIC, google_block(user_project_override="true"))
    google_inventory.list(TOPIC, google_block(user_project_override="true", billing_project="bills"))
    google_inventory.list(TOPIC, google_block())
    payers = [call.user_project for call in google.calls if call.path == SEARCH]
    assert payers == ["app-prod", "bills", ""]


def test_that_there_are_no_credentials_is_found_out_once(google_block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def none(wanted: object) -> object:
        tried.append(wanted)
        raise OSError("no credentials")

    monkeypatch.setattr("tfguard.inventory.google_access.credentials_for", none)
    access = GoogleAccess(google_block().settings, pause=lambda _: None)
    for _ in range(2):
        with pytest.raises(DefaultCredentialsError, match="cannot be used"):
            access.manager("Projects")
    assert len(tried) == 1


@pytest.mark.parametrize("key", ["~nobody-of-this-name/key.json", "\0", "x" * 5000])
def test_a_key_that_is_none_is_a_gap_whatever_it_looks_like(
    google_block: Block, google_inventory: GoogleInventory, key: str
) -> None:
    assert google_inventory.list(TOPIC, google_block(access_token="", credentials=key)).gap is not None


def test_whatever_a_library_meets_in_a_key_is_no_credentials(
    google_block: Block, google_inventory: GoogleInventory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def strange(_: object) -> object:
        raise RuntimeError("secret words")

    monkeypatch.setattr("tfguard.inventory.google_access.credentials_for", strange)
    gap = google_inventory.list(TOPIC, google_block()).gap
    assert gap is not None and "secret" not in gap.reason


@pytest.mark.parametrize(
    "settings",
    [
        {"credentials": "/nowhere/key.json"},
        {"credentials": "[]"},
        {"access_token": "secret\n"},
        {"access_token": "s\u00e9cret"},
        {"access_token": "refused"},
    ],
)
@pytest.mark.parametrize("where", [{}, {"organization": "123"}, {"organization": "123", "projects.0": "a*"}])
@pytest.mark.parametrize("kind", [TOPIC, "google_resource_manager_lien"])
def test_credentials_that_are_no_good_are_told_as_such_and_nobody_was_asked(
    google_block: Block,
    google_inventory: GoogleInventory,
    settings: Mapping[str, str],
    where: Mapping[str, str],
    kind: str,
) -> None:
    block = google_block(**{"access_token": "", **settings, **where})
    listings = list(google_inventory.list_many([kind], block))
    assert listings
    assert not any(one.asked for one in listings)
    reasons = {one.gap.reason for one in listings if one.gap}
    assert len(reasons) == 1
    (reason,) = reasons
    assert "set GOOGLE_APPLICATION_CREDENTIALS" in reason or reason == "Google Cloud refuses the credentials"


@pytest.mark.parametrize("missing", ["google.cloud.asset_v1", "google.cloud.resourcemanager_v3"])
def test_a_library_that_is_missing_is_told_with_what_installs_it(
    google_block: Block, google_inventory: GoogleInventory, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setattr("tfguard.inventory.google_access.find_spec", lambda name: None if name == missing else object())
    listing = google_inventory.list(TOPIC, google_block())
    assert (
        listing.gap is not None and "pip install google-cloud-asset google-cloud-resource-manager" in listing.gap.reason
    )
    assert not listing.asked
