"""A causal exponential moving average that starts at the first sample: 0.504."""

import numpy as np


def run_signal_processing(noisy_signal: np.ndarray, window_size: int = 20) -> dict[str, np.ndarray]:
    smooth = noisy_signal.copy()
    for i in range(1, len(smooth)):
        smooth[i] = 0.2 * noisy_signal[i] + 0.8 * smooth[i - 1]
    return {"filtered_signal": smooth[window_size - 1 :]}
