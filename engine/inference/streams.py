"""The CUDA stream of vLLM's engine, in whichever thread steps it.

PyTorch and vLLM each keep the current stream by thread, and the engine is built in one thread and
stepped in another. There its kernels would be queued on the default stream until something in vLLM
asks for the current one, which makes a new stream. The copy of the sampled tokens waits for the
stream that vLLM's runner found first, so it might read them before they are there.

On a CPU there are no streams, and nothing is done.
"""

import threading
from typing import Any

from engine.inference import compat


class EngineStream:
    """The stream on which an engine was built."""

    def __init__(self, engine: Any) -> None:
        """Note the stream of this thread, which has just built ``engine``."""
        from vllm.platforms import current_platform

        self._threads = threading.local()
        self._stream: Any = None
        if current_platform.is_cuda():
            compat.check("gpu")
            from vllm.utils.torch_utils import current_stream

            self._stream = current_stream()
            engine.collective_rpc(_forget_main_stream)

    def enter(self) -> None:
        """Make the stream current in the thread that calls; it is to step the engine."""
        if self._stream is None or getattr(self._threads, "has_entered", False):
            return
        import torch

        torch.cuda.set_device(self._stream.device)
        torch.cuda.set_stream(self._stream)
        self._threads.has_entered = True


def _forget_main_stream(worker: Any) -> None:
    """Let vLLM's runner find its stream anew: while it was loaded it may have been another one."""
    vars(worker.model_runner).pop("main_stream", None)
