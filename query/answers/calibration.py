"""Coefficients of `answerability`. Written by `python -m evals.calibrate_answerability`."""

INTERCEPT = -6.0
COEFFICIENTS = {
    "sentence_cosine": 6.0,
    "focus_cosine": 2.0,
    "dense_top": 3.0,
    "dense_gap": 2.0,
    "word_coverage": 0.5,
    "name_missing": -1.0,
    "kind_missing": -1.0,
}
THRESHOLD = 0.3
