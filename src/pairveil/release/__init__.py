"""What goes out: the released metric, its certificate, signatures and exports.

This is all that a receiver needs. Nothing here imports code that touches training data.
"""
