"""Where the records lie: on this machine, or with the workers of a cluster. All give the same integers."""
