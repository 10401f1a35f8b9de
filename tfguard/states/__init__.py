"""Where states lie: one file for each kind of place, and the table of them."""
