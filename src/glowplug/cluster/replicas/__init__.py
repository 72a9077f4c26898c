"""What answers requests in a cluster: the replica, its models in processes of their own, and its two protocols."""
