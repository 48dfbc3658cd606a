"""What may be promised: units, events, accounting, the ledger, trusted noise."""
