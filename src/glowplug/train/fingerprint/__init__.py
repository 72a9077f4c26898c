"""What a step depends on, hashed by value: `walker` goes through it, `code` and `stock` are rooms for what it meets."""
