"""Frozen types and closed sets; no input or output."""
