"""How private a release is in fact: attacks, and lower bounds on epsilon that are measured from outside.

`audit` (`learner_target`) fits any private learner many times and bounds its epsilon statistically;
`audit_exactly` (`exact_audit`) takes one fit and compares how far every query moved with what was charged for
it; `audit_trainer` (`trainer_audit`) looks at what any function returns. All three run on a canary, two
inputs that differ in one protected unit (``canaries/``). `bounds`, `families` and `one_run` turn an
attacker's right guesses into a lower bound on epsilon. `attack` plays the paper's attack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairveil._lazy import offered

__all__ = [
    "ExactFinding",
    "Finding",
    "TrainerFinding",
    "audit",
    "audit_exactly",
    "audit_trainer",
    "key_pairs",
]

__getattr__ = offered(
    __name__,
    {
        "pairveil.audit.learner_target": "audit",
        "pairveil.audit.exact_audit": "ExactFinding audit_exactly",
        "pairveil.audit.trainer_audit": "TrainerFinding audit_trainer",
        "pairveil.audit.auditor": "Finding",
        "pairveil.audit.attack": "key_pairs",
    },
)

if TYPE_CHECKING:
    from pairveil.audit.attack import key_pairs as key_pairs
    from pairveil.audit.auditor import Finding as Finding
    from pairveil.audit.exact_audit import ExactFinding as ExactFinding
    from pairveil.audit.exact_audit import audit_exactly as audit_exactly
    from pairveil.audit.learner_target import audit as audit
    from pairveil.audit.trainer_audit import TrainerFinding as TrainerFinding
    from pairveil.audit.trainer_audit import audit_trainer as audit_trainer
