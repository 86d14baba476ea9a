"""How a CPU adds adapters to a linear layer: one product for each run of rows with one adapter.

vLLM 0.32 copies A and B once for every token, and a row without an adapter, whose slot is -1, gets
the last slot's (vLLM's pull request 48421). Siblings stand together in a step and have the same
adapter, so there are few runs, and a run needs no copy.

Imported by vLLM alone, by name; see `engine.inference.adapters.check_adapters`.
"""

from typing import Any

from vllm.lora.punica_wrapper.punica_cpu import PunicaWrapperCPU


class AdapterRows(PunicaWrapperCPU):  # type: ignore[misc]
    """Knows the rows of a step by adapter, and adds the adapters to the layers' outputs."""

    def _update_prefill_metadata(self, token_lora_tensor: Any) -> None:
        """Take in which slot each row of the next step has; -1 for none."""
        super()._update_prefill_metadata(token_lora_tensor)
        starts, lengths, slots, *_ = self.prefill_metadata
        runs = zip(starts.tolist(), lengths.tolist(), slots.tolist(), strict=True)
        self._runs = [(start, start + count, slot) for start, count, slot in runs if slot >= 0]

    def add_lora_linear(
        self,
        y: Any,
        x: Any,
        lora_a_stacked: tuple[Any, ...],
        lora_b_stacked: tuple[Any, ...],
        scale: float,
        output_slices: tuple[int, ...],
        *,
        buffer: Any = None,
        **kwargs: Any,
    ) -> None:
        """Add ``scale * x A' B'`` to the rows of ``y`` that have an adapter.

        Args:
            y: the layer's outputs, (rows, outputs); changed in place.
            x: its inputs, (rows, inputs).
            lora_a_stacked: A of each fused part, (slots, 1, rank, inputs).
            lora_b_stacked: B of each, (slots, 1, outputs of the part, rank).
            scale: of all.
            output_slices: outputs of each part.
            buffer: unused.
            kwargs: unused.
        """
        y, x = y.view(-1, y.shape[-1]), x.view(-1, x.shape[-1])
        for start, end, slot in self._runs:
            rows, offset = x[start:end].to(lora_a_stacked[0].dtype), 0
            for a, b, size in zip(lora_a_stacked, lora_b_stacked, output_slices, strict=True):
                added = (rows @ a[slot, 0].T) @ b[slot, 0].T
                y[start:end, offset : offset + size].add_(added, alpha=scale)
                offset += size
