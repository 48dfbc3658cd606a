"""The learners: one file or one small package each, on `pairveil.learners.base.PrivateLearner`."""
