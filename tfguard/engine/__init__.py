"""terraform and tofu: their command line, process, event stream, plan, state, backend and words."""
