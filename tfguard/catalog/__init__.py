"""Resource types as data."""
