"""The page a person looks at: what is promised to whom, how good the metric is, how to recompute it.

`data` reads what was released, `page` puts the sections together; each section is a function of that data.
"""
