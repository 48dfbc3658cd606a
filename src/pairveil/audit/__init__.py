"""How private a release is in fact: attacks, and lower bounds on epsilon that are measured from outside.

`audit` (`learner_target`) fits any private learner many times and bounds its epsilon statistically;
`audit_exactly` (`exact_audit`) takes one fit and compares how far every query moved with what was charged for
it; `audit_trainer` (`trainer_audit`) looks at what any function returns. All three run on a canary, two
inputs that differ in one protected unit (``canaries/``). `bounds`, `families` and `one_run` turn an
attacker's right guesses into a lower bound on epsilon. `attack` plays the paper's attack.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOME = {
    "audit": "pairveil.audit.learner_target",
    "audit_exactly": "pairveil.audit.exact_audit",
    "audit_trainer": "pairveil.audit.trainer_audit",
    "ExactFinding": "pairveil.audit.exact_audit",
    "Finding": "pairveil.audit.auditor",
    "TrainerFinding": "pairveil.audit.trainer_audit",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'pairveil.audit' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


if TYPE_CHECKING:
    from pairveil.audit.auditor import Finding as Finding
    from pairveil.audit.exact_audit import ExactFinding as ExactFinding
    from pairveil.audit.exact_audit import audit_exactly as audit_exactly
    from pairveil.audit.learner_target import audit as audit
    from pairveil.audit.trainer_audit import TrainerFinding as TrainerFinding
    from pairveil.audit.trainer_audit import audit_trainer as audit_trainer
