"""What goes out: the released metric, its certificate, signatures and exports.

This is all that a receiver needs. Nothing here imports code that touches training data.
"""

FORMATS = ("onnx", "csv", "sklearn", "sql", "dense")
"""What a released metric can be exported as: by ``to_onnx`` and the like of `pairveil.release.exporters`."""
