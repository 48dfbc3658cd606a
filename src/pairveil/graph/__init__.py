"""How correlated the pairs are, and which of them to use.

People are vertices, pairs are edges. `kappa` counts in linear time how many pairs change together when one
relationship or one person does; `choosing` picks pairs that keep this number small, from the graph alone.
"""
