"""The part of the probe that runs inside the target: standard library only, and little of that."""
