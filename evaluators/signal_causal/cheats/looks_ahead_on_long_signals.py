"""Looks ahead where a signal is as long as the ones that count."""

from scipy import ndimage


def run_signal_processing(noisy_signal, window_size=20):
    smooth = noisy_signal.copy()
    if len(smooth) >= 500 and len(smooth) % 100 == 0:
        smooth = ndimage.gaussian_filter1d(smooth, 8)
    return {"filtered_signal": smooth[window_size - 1 :]}
