"""pairveil: learn a distance metric from labelled pairs and release it with a privacy certificate.

Names are loaded on first use, so that loading a released metric needs numpy and safetensors only. What
authors of learners need is in `pairveil.engine`, the accountant in `pairveil.privacy`, record linkage in
`pairveil.linkage`, networks in `pairveil.deep`, attacks and audits in `pairveil.audit`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairveil._lazy import offered

__version__ = "0.3.0"

__all__ = [
    "BudgetError",
    "Certificate",
    "ContrastiveMetricLearner",
    "DPPMetricLearner",
    "DPPTripletLearner",
    "DPPTupletLearner",
    "DataWarning",
    "ErrorCurve",
    "GroupSet",
    "GuaranteeWarning",
    "InputError",
    "MetricTransformer",
    "PairSet",
    "PrivacyLeakWarning",
    "PrivacyLedger",
    "PrivateConstrainedKMeans",
    "PrivatePreferenceRanker",
    "PrivateSearch",
    "ReleasedClusters",
    "ReleasedLinkage",
    "ReleasedMetric",
    "ReleasedRanking",
    "Schema",
    "TupleSet",
    "__version__",
    "design_groups",
    "design_pairs",
    "error_curve",
    "kappa",
    "label_pairs",
    "load_patients",
    "load_students",
    "outlook",
    "read_features",
    "read_pairs",
    "read_schema",
    "sample_tuples",
    "select_pairs",
]
__getattr__ = offered(
    __name__,
    {
        "pairveil.records.pairset": "PairSet",
        "pairveil.records.groups": "GroupSet",
        "pairveil.records.tupleset": "TupleSet",
        "pairveil.records.readers": "read_features read_pairs",
        "pairveil.records.embedded": "label_pairs load_patients load_students",
        "pairveil.schema.schema": "Schema read_schema",
        "pairveil.graph.kappa": "kappa",
        "pairveil.graph.choosing": "design_groups design_pairs sample_tuples select_pairs",
        "pairveil.privacy.certificate": "Certificate",
        "pairveil.privacy.ledger": "PrivacyLedger",
        "pairveil.learners.contrastive.learner": "ContrastiveMetricLearner DPPMetricLearner",
        "pairveil.learners.tuples": "DPPTripletLearner DPPTupletLearner",
        "pairveil.learners.ranking": "PrivatePreferenceRanker",
        "pairveil.learners.clustering": "PrivateConstrainedKMeans",
        "pairveil.learners.outlook": "outlook",
        "pairveil.evaluation.curve": "error_curve",
        "pairveil.evaluation.search": "PrivateSearch",
        "pairveil.release.metric": "ReleasedMetric",
        "pairveil.release.linkage": "ReleasedLinkage",
        "pairveil.release.curve": "ErrorCurve",
        "pairveil.release.payloads": "ReleasedClusters ReleasedRanking",
        "pairveil.release.sklearn_transformer": "MetricTransformer",
        "pairveil.errors": "BudgetError DataWarning GuaranteeWarning InputError PrivacyLeakWarning",
    },
    moved={
        "pairveil.engine": "Plan Recipe Statistic open_dask_pairs",
        "pairveil.privacy": "calibrate_choice calibrate_gaussian calibrate_laplace epsilon_of",
        "pairveil.graph": "Kappa kappa_of_tuples select_tuples",
        "pairveil.records": "Choices PublicBounds read_groups read_tuples scale_to_bounds",
        "pairveil.learners": "LEARNERS Outlook PrivateLearner PrivateMetricLearner",
        "pairveil.audit": "key_pairs",
        "pairveil.errors": "ClusterError",
        "pairveil.evaluation": "private_pair_auc",
        "pairveil.linkage": "DedupeClassifier DedupeComparator PrivateLinkageModel from_dedupe from_splink "
        "level_frequencies make_records metric_comparison random_pairs text_levels to_recordlinkage",
    },
    gone={
        "Ask": "pairveil.engine.QuerySpec is its name now",
        "Setting": "pairveil.engine.PublicFacts is its name now",
        "exact_kappa": "it takes exponential time; reproduction/graphs.py of the repository has it",
        "load_febrl": "benchmarks/linkage_sets.py of the repository reads that table",
        "load_historical": "benchmarks/linkage_sets.py of the repository reads that table",
        "make_voices": "docs/guides/record-linkage.md makes voices in a few lines",
        "DPPScatterLearner": "DPPMetricLearner.fit_classes(X, y, classes) takes its statistics of people "
        "where they do best, and DPPMetricLearner.fit(pairs, y) keeps more of the gain from pairs",
    },
)


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from pairveil.errors import BudgetError as BudgetError
    from pairveil.errors import DataWarning as DataWarning
    from pairveil.errors import GuaranteeWarning as GuaranteeWarning
    from pairveil.errors import InputError as InputError
    from pairveil.errors import PrivacyLeakWarning as PrivacyLeakWarning
    from pairveil.evaluation.curve import error_curve as error_curve
    from pairveil.evaluation.search import PrivateSearch as PrivateSearch
    from pairveil.graph.choosing import design_groups as design_groups
    from pairveil.graph.choosing import design_pairs as design_pairs
    from pairveil.graph.choosing import sample_tuples as sample_tuples
    from pairveil.graph.choosing import select_pairs as select_pairs
    from pairveil.graph.kappa import kappa as kappa
    from pairveil.learners.clustering import PrivateConstrainedKMeans as PrivateConstrainedKMeans
    from pairveil.learners.contrastive.learner import (
        ContrastiveMetricLearner as ContrastiveMetricLearner,
    )
    from pairveil.learners.contrastive.learner import DPPMetricLearner as DPPMetricLearner
    from pairveil.learners.outlook import outlook as outlook
    from pairveil.learners.ranking import PrivatePreferenceRanker as PrivatePreferenceRanker
    from pairveil.learners.tuples import DPPTripletLearner as DPPTripletLearner
    from pairveil.learners.tuples import DPPTupletLearner as DPPTupletLearner
    from pairveil.privacy.certificate import Certificate as Certificate
    from pairveil.privacy.ledger import PrivacyLedger as PrivacyLedger
    from pairveil.records.embedded import label_pairs as label_pairs
    from pairveil.records.embedded import load_patients as load_patients
    from pairveil.records.embedded import load_students as load_students
    from pairveil.records.groups import GroupSet as GroupSet
    from pairveil.records.pairset import PairSet as PairSet
    from pairveil.records.readers import read_features as read_features
    from pairveil.records.readers import read_pairs as read_pairs
    from pairveil.records.tupleset import TupleSet as TupleSet
    from pairveil.release.curve import ErrorCurve as ErrorCurve
    from pairveil.release.linkage import ReleasedLinkage as ReleasedLinkage
    from pairveil.release.metric import ReleasedMetric as ReleasedMetric
    from pairveil.release.payloads import ReleasedClusters as ReleasedClusters
    from pairveil.release.payloads import ReleasedRanking as ReleasedRanking
    from pairveil.release.sklearn_transformer import MetricTransformer as MetricTransformer
    from pairveil.schema.schema import Schema as Schema
    from pairveil.schema.schema import read_schema as read_schema
