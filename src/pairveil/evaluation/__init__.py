"""How good a metric is: pair AUC, nearest neighbours, gain kept."""
