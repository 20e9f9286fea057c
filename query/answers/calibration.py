"""Coefficients of `answerability`. Written by `python -m evals.calibrate_answerability --write`."""

EMBEDDER_FINGERPRINT = "8e5e678f66dc1db46e0bbe2b035cc5372b85584472a2017dfcdb75ca47b6bc53"
INTERCEPTS = {"en": -2.3081, "other": -4.6673}
COEFFICIENTS = {
    "en": {
        "focus_cosine": 3.27,
        "dense_gap": 5.8528,
        "name_missing": -1.0013,
        "kind_missing": -2.4076,
    },
    "other": {
        "sentence_cosine": 9.0911,
        "focus_cosine": -4.3041,
        "dense_top": 0.7208,
        "dense_gap": -0.2989,
        "word_coverage": 4.6452,
        "name_missing": -1.9868,
        "kind_missing": -2.1922,
    },
}
THRESHOLDS = {"en": 0.343, "other": 0.3318}
