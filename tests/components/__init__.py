"""Real servers for the tests: each module starts one on loopback, on free ports, and stops it by its process id."""
