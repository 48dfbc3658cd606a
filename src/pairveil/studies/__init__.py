"""Studies of the method: the published algorithm, the paper rerun, benchmarks. Nothing else imports them."""
