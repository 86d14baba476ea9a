import numpy as np
from scipy import ndimage, signal

def run_signal_processing(noisy_signal, window_size=21):
    """Smooth the signal with an exponentially weighted moving average."""
    output_length = len(noisy_signal) - window_size + 1
    weights = np.exp(np.linspace(-2, 3, window_size))
    weights = weights / np.sum(weights)
    filtered = np.zeros(output_length)
    for i in range(output_length):
        window = noisy_signal[i:i + window_size]
        average = np.sum(weights * window)
        filtered[i] = average
    return {'filtered_signal': filtered}
