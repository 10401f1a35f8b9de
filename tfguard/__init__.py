"""Stands in for terraform and tofu in pipelines and finds the cloud objects that no state knows."""

__version__ = "0.1.0"
