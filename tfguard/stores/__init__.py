"""Where records live: each store moves bytes, and knows nothing of what they mean."""
