"""Makes vLLM's registry know the attention backend; imports nothing of it before."""

from engine.inference import compat

_BACKEND = "engine.inference.shared_prefix.backend.Backend"


def register() -> str:
    """Register the backend, and return the name that ``attention_backend`` takes.

    Raises:
        UserError: the installed vLLM is one that it does not fit.
    """
    compat.check("shared_prefix", "flash_attention")
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

    register_backend(AttentionBackendEnum.CUSTOM, _BACKEND)
    return str(AttentionBackendEnum.CUSTOM.name)
