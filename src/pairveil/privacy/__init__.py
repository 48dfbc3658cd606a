"""What may be promised, and what it costs.

A `Query` says what is asked and with how much noise of which `mechanism`; the accountant turns queries and
the cost of a unit into epsilon; certificates state it, ledgers add it up over fits, and `noise` draws what
was promised, exactly. Nothing here sees a record.
"""
