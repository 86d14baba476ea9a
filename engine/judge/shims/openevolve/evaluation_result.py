"""``EvaluationResult``: metrics, and artifacts to show to the model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class EvaluationResult:
    """What an evaluator returns.

    Attributes:
        metrics: numbers by name, ``combined_score`` among them.
        artifacts: texts, or bytes, by name.
    """

    metrics: dict[str, Any]
    artifacts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, metrics: Mapping[str, Any]) -> "EvaluationResult":
        """Return a result without artifacts."""
        return cls(metrics=dict(metrics))

    def to_dict(self) -> dict[str, Any]:
        """Return the metrics."""
        return self.metrics

    def has_artifacts(self) -> bool:
        """Return whether there is any artifact."""
        return bool(self.artifacts)

    def get_artifact_keys(self) -> list[str]:
        """Return the artifacts' names."""
        return list(self.artifacts)

    def get_artifact_size(self, key: str) -> int:
        """Return the bytes of an artifact; 0 if there is none."""
        value = self.artifacts.get(key, b"")
        return len(value if isinstance(value, bytes) else str(value).encode())

    def get_total_artifact_size(self) -> int:
        """Return the bytes of all artifacts."""
        return sum(map(self.get_artifact_size, self.artifacts))
