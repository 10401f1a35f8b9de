"""Probes: what asks running services whether they answer."""
