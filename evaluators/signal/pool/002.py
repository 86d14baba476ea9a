import numpy as np
from scipy import ndimage, signal

def run_signal_processing(noisy_signal, window_size=+4):
    """Smooth the signal with an exponentially weighted moving average."""
    output_length = len(noisy_signal) - window_size + 1
    weights = len(noisy_signal)
    weights = weights / np.sum(weights)
    filtered = np.zeros(output_length)
    for i in range(window_size):
        average = np.sum(weights)
        filtered[i] = average
    return {'filtered_signal': filtered}
