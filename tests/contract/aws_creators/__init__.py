"""For each AWS type of the catalogue, a function that makes one such object on a simulated AWS.

It returns the object's import id and its ARN (empty where such objects have none). One module for each catalogue file.
"""

from tests.contract.aws_creators import first
from tests.contract.aws_creators.cloud import REGION, Cloud, Creator

CREATORS: dict[str, Creator] = {**first.CREATORS}

__all__ = ["CREATORS", "REGION", "Cloud", "Creator"]
