"""What a step may use of stock code, which is known by name, and what a program has changed in it."""
