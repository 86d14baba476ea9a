#include <algorithm>

constexpr int n = 240;  // rows and columns of every matrix

// EVOLVE-BLOCK-START
constexpr int rows = 8;
constexpr int columns = 8;
constexpr int depth = 8;

extern "C" void multiply(const double* a, const double* b, double* c) {
    for (int i = 0; i < n * n; ++i) c[i] = 0.0;
    for (int i0 = 0; i0 < n; i0 += rows)
        for (int j0 = 0; j0 < n; j0 += columns)
            for (int k0 = 0; k0 < n; k0 += depth)
                for (int i = i0; i < std::min(i0 + rows, n); ++i)
                    for (int j = j0; j < std::min(j0 + columns, n); ++j)
                        for (int k = k0; k < std::min(k0 + depth, n); ++k)
                            c[i * n + j] += a[i * n + k] * b[k * n + j];
}
// EVOLVE-BLOCK-END
