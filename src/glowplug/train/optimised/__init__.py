"""Grappler's results, kept by the graph that was traced: for functions that are traced in every process."""
