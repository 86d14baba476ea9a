"""Inference: vLLM in this process; the only package that imports vllm."""

from engine.inference.environment import is_cpu_build, prepare
from engine.inference.llm import FanOut, LanguageModel, PrefixCacheCount, Sampling
from engine.inference.weights import find_weights

__all__ = [
    "FanOut",
    "LanguageModel",
    "PrefixCacheCount",
    "Sampling",
    "find_weights",
    "is_cpu_build",
    "prepare",
]
