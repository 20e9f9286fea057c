"""Coefficients of `answerability`. Written by `python -m evals.calibrate_answerability --write`."""

EMBEDDER_FINGERPRINT = "8e5e678f66dc1db46e0bbe2b035cc5372b85584472a2017dfcdb75ca47b6bc53"
INTERCEPTS = {"en": -2.1515, "other": -4.0468}
COEFFICIENTS = {
    "en": {
        "focus_cosine": 3.08,
        "dense_gap": 5.3813,
        "name_missing": -0.9319,
        "kind_missing": -2.2351,
    },
    "other": {
        "sentence_cosine": 2.9227,
        "focus_cosine": 0.9382,
        "dense_top": 1.2054,
        "dense_gap": 0.578,
        "word_coverage": 3.2946,
        "name_missing": -1.2205,
        "kind_missing": -1.3087,
    },
}
THRESHOLDS = {"en": 0.3894, "other": 0.4134}
