"""Inference: vLLM in this process; the only package that imports vllm."""

from engine.inference.environment import prepare
from engine.inference.llm import FanOut, LanguageModel, PrefixCacheCount, Sampling
from engine.inference.weights import find_weights

__all__ = [
    "FanOut",
    "LanguageModel",
    "PrefixCacheCount",
    "Sampling",
    "find_weights",
    "prepare",
]
