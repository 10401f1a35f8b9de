"""Pure conclusions: planned, recorded, state and listing in; outcomes, findings and evidence out."""
