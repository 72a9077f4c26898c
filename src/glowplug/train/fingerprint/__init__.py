"""What a step depends on, hashed by value."""
