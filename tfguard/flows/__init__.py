"""What tfguard does, through ports alone."""
