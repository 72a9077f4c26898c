"""What is checked beyond a key: what ran in a trace, and whether a restored trace is what a fresh one would be."""
