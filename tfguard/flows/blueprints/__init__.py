"""What tfguard does with a blueprint: ask for it, provide it, repair it, cancel it, take it away."""
