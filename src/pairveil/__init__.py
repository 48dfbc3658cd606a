"""pairveil: learn a distance metric from labelled pairs and release it with a privacy certificate.

Names are loaded on first use, so that loading a released metric needs numpy and safetensors only.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.3.0.dev0"

_HOME = {
    "PairSet": "pairveil.records.pairset",
    "GroupSet": "pairveil.records.groups",
    "Choices": "pairveil.records.choices",
    "read_features": "pairveil.records.readers",
    "read_pairs": "pairveil.records.readers",
    "read_groups": "pairveil.records.readers",
    "read_tuples": "pairveil.records.readers",
    "select_pairs": "pairveil.graph.choosing",
    "design_pairs": "pairveil.graph.choosing",
    "design_groups": "pairveil.graph.choosing",
    "kappa": "pairveil.graph.kappa",
    "Kappa": "pairveil.graph.kappa",
    "key_pairs": "pairveil.audit.attack",
    "open_dask_pairs": "pairveil.engine.backends.dask",
    "PublicBounds": "pairveil.records.scaling",
    "scale_to_bounds": "pairveil.records.scaling",
    "load_patients": "pairveil.records.embedded",
    "label_pairs": "pairveil.records.embedded",
    "Schema": "pairveil.schema.schema",
    "read_schema": "pairveil.schema.toml",
    "PrivacyLedger": "pairveil.privacy.ledger",
    "epsilon_of": "pairveil.privacy.profile",
    "calibrate_gaussian": "pairveil.privacy.calibrate",
    "calibrate_laplace": "pairveil.privacy.calibrate",
    "calibrate_choice": "pairveil.privacy.calibrate",
    "Certificate": "pairveil.privacy.certificate",
    "DPPMetricLearner": "pairveil.learners.contrastive.learner",
    "DPPTripletLearner": "pairveil.learners.tuples",
    "DPPTupletLearner": "pairveil.learners.tuples",
    "TupleSet": "pairveil.records.tupleset",
    "sample_tuples": "pairveil.graph.choosing",
    "select_tuples": "pairveil.graph.choosing",
    "kappa_of_tuples": "pairveil.graph.kappa",
    "ContrastiveMetricLearner": "pairveil.learners.contrastive.nonprivate",
    "PrivateLearner": "pairveil.learners.base",
    "PrivateMetricLearner": "pairveil.learners.estimator",
    "PrivatePreferenceRanker": "pairveil.learners.ranking",
    "PrivateConstrainedKMeans": "pairveil.learners.clustering",
    "Statistic": "pairveil.engine.statistics",
    "Recipe": "pairveil.engine.plan",
    "Ask": "pairveil.engine.plan",
    "Setting": "pairveil.engine.plan",
    "Plan": "pairveil.engine.plan",
    "outlook": "pairveil.learners.outlook",
    "Outlook": "pairveil.learners.outlook",
    "LEARNERS": "pairveil.learners",
    "error_curve": "pairveil.evaluation.curve",
    "ErrorCurve": "pairveil.release.curve",
    "PrivateSearch": "pairveil.evaluation.search",
    "private_pair_auc": "pairveil.evaluation.curve",
    "PrivateLinkageModel": "pairveil.linkage.model",
    "DedupeClassifier": "pairveil.linkage.dedupe",
    "DedupeComparator": "pairveil.linkage.dedupe",
    "from_dedupe": "pairveil.linkage.dedupe",
    "from_splink": "pairveil.linkage.splink",
    "random_pairs": "pairveil.linkage.levels",
    "level_frequencies": "pairveil.linkage.levels",
    "make_records": "pairveil.records.embedded",
    "text_levels": "pairveil.linkage.levels",
    "metric_comparison": "pairveil.linkage.splink",
    "to_recordlinkage": "pairveil.linkage.dedupe",
    "ReleasedClusters": "pairveil.release.payloads",
    "ReleasedLinkage": "pairveil.release.linkage",
    "ReleasedMetric": "pairveil.release.metric",
    "ReleasedRanking": "pairveil.release.payloads",
    "InputError": "pairveil.errors",
    "BudgetError": "pairveil.errors",
    "ClusterError": "pairveil.errors",
    "GuaranteeWarning": "pairveil.errors",
    "PrivacyLeakWarning": "pairveil.errors",
    "DataWarning": "pairveil.errors",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name == "DPPScatterLearner":
        raise AttributeError(
            "DPPScatterLearner is gone: DPPMetricLearner.fit_classes(X, y, classes) takes its statistics of "
            "people where they do best, and DPPMetricLearner.fit(pairs, y) keeps more of the gain from pairs"
        )
    if name not in _HOME:
        raise AttributeError(f"module 'pairveil' has no attribute {name!r}")
    # Always read the attribute from its home: a package and a function may share a name
    # (pairveil.graph.kappa is a module, pairveil.kappa the function).
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from pairveil.audit.attack import key_pairs
    from pairveil.engine.backends.dask import open_dask_pairs
    from pairveil.engine.plan import Ask, Plan, Recipe, Setting
    from pairveil.engine.statistics import Statistic
    from pairveil.errors import (
        BudgetError,
        ClusterError,
        DataWarning,
        GuaranteeWarning,
        InputError,
        PrivacyLeakWarning,
    )
    from pairveil.evaluation.curve import error_curve, private_pair_auc
    from pairveil.evaluation.search import PrivateSearch
    from pairveil.graph.choosing import (
        design_groups,
        design_pairs,
        sample_tuples,
        select_pairs,
        select_tuples,
    )
    from pairveil.graph.kappa import Kappa, kappa, kappa_of_tuples
    from pairveil.learners import LEARNERS
    from pairveil.learners.base import PrivateLearner
    from pairveil.learners.clustering import PrivateConstrainedKMeans
    from pairveil.learners.contrastive.learner import DPPMetricLearner
    from pairveil.learners.contrastive.nonprivate import ContrastiveMetricLearner
    from pairveil.learners.estimator import PrivateMetricLearner
    from pairveil.learners.outlook import Outlook, outlook
    from pairveil.learners.ranking import PrivatePreferenceRanker
    from pairveil.learners.tuples import DPPTripletLearner, DPPTupletLearner
    from pairveil.linkage.dedupe import (
        DedupeClassifier,
        DedupeComparator,
        from_dedupe,
        to_recordlinkage,
    )
    from pairveil.linkage.levels import level_frequencies, random_pairs, text_levels
    from pairveil.linkage.model import PrivateLinkageModel
    from pairveil.linkage.splink import from_splink, metric_comparison
    from pairveil.privacy.calibrate import calibrate_choice, calibrate_gaussian, calibrate_laplace
    from pairveil.privacy.certificate import Certificate
    from pairveil.privacy.ledger import PrivacyLedger
    from pairveil.privacy.profile import epsilon_of
    from pairveil.records.choices import Choices
    from pairveil.records.embedded import label_pairs, load_patients, make_records
    from pairveil.records.groups import GroupSet
    from pairveil.records.pairset import PairSet
    from pairveil.records.readers import read_features, read_groups, read_pairs, read_tuples
    from pairveil.records.scaling import PublicBounds, scale_to_bounds
    from pairveil.records.tupleset import TupleSet
    from pairveil.release.curve import ErrorCurve
    from pairveil.release.linkage import ReleasedLinkage
    from pairveil.release.metric import ReleasedMetric
    from pairveil.release.payloads import ReleasedClusters, ReleasedRanking
    from pairveil.schema.schema import Schema
    from pairveil.schema.toml import read_schema
