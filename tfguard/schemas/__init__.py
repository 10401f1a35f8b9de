"""Versioned documents to types and back."""
