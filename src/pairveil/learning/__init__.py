"""How the metric is learned: losses, the frozen plan, the engine, the estimators."""
