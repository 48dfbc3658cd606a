"""How private a release is in fact: attacks, and lower bounds on epsilon that are measured from outside.

`audit` (`targets`) fits any private learner many times and bounds its epsilon statistically;
`audit_exactly` (`exact_audit`) takes one fit and compares how far every query moved with what was charged for
it; `audit_trainer` (`trainer_audit`) looks at what any function returns. All three run on a canary, two
inputs that differ in one protected unit (`canaries`). `auditor` turns an attacker's right guesses into a
lower bound on epsilon. `attack` plays the paper's attack.
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

TARGETS: dict[str, str] = {
    "learner": "pairveil.audit.targets:learner_target",
    "published-dpp": "pairveil.audit.published:published_dpp",
    "published-dpp-s": "pairveil.audit.published:published_dpp_s",
    "laplace": "pairveil.audit.targets:one_step_laplace",
    "gaussian": "pairveil.audit.targets:one_step_gaussian",
    "choice": "pairveil.audit.targets:one_choice",
    "staircase-iid": "pairveil.audit.published:staircase_iid",
    "staircase-joint": "pairveil.audit.published:staircase_joint",
}
"""Everything that the command line can audit: a name, and where the function is that makes it, of as many of
the arguments of `pairveil.audit.targets.make_target`, kappa and delta as it has parameters for."""

__getattr__ = offered(
    __name__,
    {
        "pairveil.audit.targets": "audit",
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
    from pairveil.audit.targets import audit as audit
    from pairveil.audit.trainer_audit import TrainerFinding as TrainerFinding
    from pairveil.audit.trainer_audit import audit_trainer as audit_trainer
