"""What an error text of the google provider proves about a create, and that none of its own words leave it."""

from __future__ import annotations

import pytest

from tfguard.model.failure import CREATES, FailureKind, blocks_deletion
from tfguard.reconcile.failures import classify

K = FailureKind
CANARY = "hunter2-canary"
HTTPS = "https://compute.googleapis.com/compute/v1/projects/p/global/networks?alt=json"


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Error creating Network: googleapi: Error 409: 'n' already exists, alreadyExists", K.ALREADY_EXISTS),
        ("googleapi: Error 409: Your previous request succeeded and you already own it., conflict", K.ALREADY_EXISTS),
        ("error creating project p (p): googleapi: Error 409: Requested entity already exists, alreadyExists",
         K.ALREADY_EXISTS),
        ("Error creating Topic: rpc error: code = AlreadyExists desc = Resource already exists", K.ALREADY_EXISTS),
        ("Error creating Database: googleapi: Error 400: Invalid request: failed to create database d. Detail: pq: "
         'database "d" already exists., invalid', K.ALREADY_EXISTS),
        ("Error creating Database: googleapi: Error 400: Invalid request: failed to create database d. Detail: "
         "Can't create database 'd'; database exists, invalid", K.ALREADY_EXISTS),
        ("Error creating Account: googleapi: Error 400: it is there, alreadyExists", K.ALREADY_EXISTS),
        ("Error creating Network: googleapi: Error 403: the quota of it already exists, forbidden", K.REFUSED),
        ("Error creating Network: googleapi: Error 403: Required 'compute.networks.create' permission, forbidden",
         K.REFUSED),
        ("Error creating Instance: googleapi: Error 400: Invalid value for field 'resource.name', invalid", K.REFUSED),
        ("error creating project p (p): googleapi: Error 403: no permission, forbidden. If you received a 403 error",
         K.REFUSED),
        ("Error creating Network: googleapi: Error 403: Quota 'NETWORKS' exceeded, quotaExceeded", K.NO_REPLY),
        ("Error creating Network: googleapi: Error 403: Rate Limit Exceeded, rateLimitExceeded", K.NO_REPLY),
        ("Error creating Network: googleapi: Error 429: Quota exceeded for it, rateLimitExceeded", K.NO_REPLY),
        ("Error creating Network: googleapi: Error 503: backend, backendError", K.NO_REPLY),
        ("Error creating Instance: googleapi: Error 400: it is not ready, resourceNotReady", K.NO_REPLY),
        ("Error creating Instance: googleapi: Error 409: it is in use, resourceInUseByAnotherResource", K.NO_REPLY),
        ("Error creating Network: googleapi: got HTTP response code 403 with body: <html>forbidden</html>", K.NO_REPLY),
        ("googleapi: Error 403: caller does not have storage.buckets.create access, forbidden", K.NO_REPLY),
        (f'Error creating Network: Post "{HTTPS}": unexpected EOF', K.NO_REPLY),
        (f'Error creating Network: Post "{HTTPS}": oauth2: cannot fetch token: 400 Bad Request', K.NO_REPLY),
        ("Error waiting for creating Network: googleapi: Error 403: forbidden to look, forbidden", K.WAITING),
        ("Error waiting to create Instance: Error waiting for Creating Instance: Quota exceeded", K.WAITING),
        ("Error waiting for creating Firewall: error while retrieving operation: googleapi: Error 403: "
         "Rate Limit Exceeded, rateLimitExceeded", K.WAITING),
        ("timeout while waiting for state to become 'DONE' (last state: 'RUNNING', timeout: 4m0s)", K.WAITING),
        ('Error reading Network "n": googleapi: Error 403: not allowed to look, forbidden', K.OTHER),
        ("Error: rpc error: code = Unavailable desc = transport is closing", K.OTHER),  # go-plugin's, of any provider
        ("creating EC2 VPC: rpc error: code = Unavailable desc = error reading from server: EOF", K.OTHER),
        ("the disk is waiting to attach itself", K.OTHER),
    ],
)  # fmt: skip
def test_a_create_is_refused_only_where_no_earlier_try_can_have_been_accepted(words: str, kind: K) -> None:
    told = classify(words)
    assert told.kind is kind
    assert (told.operation == CREATES) is (kind is K.REFUSED or (kind is K.ALREADY_EXISTS and "googleapi" in words))


@pytest.mark.parametrize(
    "words",
    [
        f"Error creating Secret: googleapi: Error 400: Invalid value {CANARY}, {CANARY}",
        f"Error creating {CANARY}: googleapi: Error 409: {CANARY} already exists, alreadyExists",
        f'Error creating Secret: Post "https://x.googleapis.com/{CANARY}": unexpected EOF',
        f"Error creating Secret: rpc error: code = Internal desc = {CANARY}",
    ],
)
def test_no_word_of_the_text_itself_is_kept(words: str) -> None:
    assert CANARY not in classify(words, CANARY).detail


def test_a_refused_delete_that_something_blocks_is_told_apart() -> None:
    used = "Error deleting Network: googleapi: Error 400: The network resource 'n' is already being used by 'f'"
    assert blocks_deletion(f"{used}, resourceInUseByAnotherResource")
    assert not blocks_deletion("Error deleting Network: googleapi: Error 403: not allowed, forbidden")
