"""Several institutions learn one metric, and nobody sees another's sums (docs/guides/parties.md)."""

from pairveil.parties.agreement import Consent, Party, coordinate, take_part, terms_for
from pairveil.parties.rehearsal import simulate

__all__ = ["Consent", "Party", "coordinate", "simulate", "take_part", "terms_for"]
