"""What exists at a cloud: one module each."""
