"""The Gaussian over the whole signal, ending on the last noisy sample: 0.7379."""

import numpy as np
from scipy.ndimage import gaussian_filter1d


def run_signal_processing(noisy_signal: np.ndarray, window_size: int = 20) -> dict[str, np.ndarray]:
    smooth = gaussian_filter1d(noisy_signal, 30)[window_size - 1 :]
    smooth[-1] = noisy_signal[-1]
    return {"filtered_signal": smooth}
