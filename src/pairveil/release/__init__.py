"""What goes out: the released metric and its certificate. Nothing here touches training data."""
