"""What each node of a cluster has, and how it comes there: the agent of a node, and who gives which chunk to whom."""
