"""A simulated AWS to make objects on, and what their makers share."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import boto3

from tfguard.model.plan import ProviderConfig

REGION = "eu-west-1"
TAGS = [{"Key": "team", "Value": "blue"}]
TRUST = json.dumps({"Version": "2012-10-17", "Statement": []})
RIGHTS = json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "*"}]}
)


@dataclass(frozen=True)
class Cloud:
    """A simulated AWS."""

    url: str

    def client(self, service: str) -> Any:
        """A client of the SDK that talks to it."""
        return boto3.client(
            service, REGION, endpoint_url=self.url, aws_access_key_id="test", aws_secret_access_key="test"
        )

    def provider(self) -> ProviderConfig:
        """A provider block that talks to it."""
        keys = {"access_key": "test", "secret_key": "test"}
        return ProviderConfig(
            "aws", "registry.terraform.io/hashicorp/aws", {"region": REGION, "endpoint_url": self.url, **keys}
        )


@dataclass(frozen=True)
class Limits:
    """What an object made here lacks although such an object of AWS has it: each with the reason.

    `list` tells that the simulation cannot even list the type, which is a gap then. `attributes` are keys and traits
    that this one object has no value for. A limit that does not show fails the test.
    """

    list: str = ""
    arn: str = ""
    name: str = ""
    owner: str = ""
    created: str = ""
    tags: str = ""
    delete: str = ""
    empty: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)


def ec2_tags(kind: str) -> list[dict[str, Any]]:
    """`TagSpecifications` of a kind of EC2 object, with the name `one`."""
    return [{"ResourceType": kind, "Tags": [*TAGS, {"Key": "Name", "Value": "one"}]}]


Creator = Callable[[Cloud], tuple[str, str]]
"""Makes an object; its import id and its ARN."""
