"""``EvaluationResult``: the same as OpenEvolve's."""

# The folder of both packages is on the path where evaluators run, and nowhere else.
from openevolve.evaluation_result import (  # type: ignore[import-not-found]
    EvaluationResult as EvaluationResult,
)
