"""The behavioural net (``make net``): seeded scenarios by two versions of pairveil, compared field by field.

`scenarios` fits, certifies, audits and runs the command line through public names alone, so that it runs on
any version; `compare` runs it on the reference commit and on this tree and reports every difference that
``expected.toml`` does not list with its reason.
"""
