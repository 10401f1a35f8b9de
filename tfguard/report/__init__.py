"""One function a format: types in, text out; nothing is printed here."""
