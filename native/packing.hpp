// The exact verification of circles in the unit square; kernels.circle_packing says what it is.
#pragma once

#include <vector>

#include "integer.hpp"

namespace brood {

// Both numbers in units of 2^-bits.
struct Packing {
    Integer shrink;
    Integer radii_sum;
    int bits;
};

// centers: x and y of each circle in turn; radii: one of each. All are finite, the radii at least 0
// and the centres in the square. Throws std::invalid_argument where the sizes do not fit.
Packing exact_packing(const std::vector<double>& centers, const std::vector<double>& radii,
                      int grid_bits);

}  // namespace brood
