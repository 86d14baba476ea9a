// What every kernel is timed against, in the same evaluation. It never changes.
#include <algorithm>

constexpr int n = 240;
constexpr int tile = 8;

extern "C" void multiply(const double* a, const double* b, double* c) {
    for (int i = 0; i < n * n; ++i) c[i] = 0.0;
    for (int i0 = 0; i0 < n; i0 += tile)
        for (int j0 = 0; j0 < n; j0 += tile)
            for (int k0 = 0; k0 < n; k0 += tile)
                for (int i = i0; i < std::min(i0 + tile, n); ++i)
                    for (int j = j0; j < std::min(j0 + tile, n); ++j)
                        for (int k = k0; k < std::min(k0 + tile, n); ++k)
                            c[i * n + j] += a[i * n + k] * b[k * n + j];
}
