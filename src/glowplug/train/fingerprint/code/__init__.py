"""The program's own code: what it reads and calls, hashed by value, and whether it may run in a trace that is kept."""
