"""The contrastive learner: its recipe, its statistics, its defaults, and the estimator."""
