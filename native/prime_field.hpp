// Numbers modulo a prime below 2^62, and polynomials of them, the lowest power first.
#pragma once

#include <vector>

#include "integer.hpp"

namespace brood {

using Residues = std::vector<Limb>;

Limb prime_below(Limb bound);  // the largest; bound is odd or a power of two, above 4

Limb multiply(Limb a, Limb b, Limb prime);

inline Limb minus(Limb a, Limb b, Limb prime) {
    return a >= b ? a - b : a + (prime - b);
}

Limb invert(Limb a, Limb prime);  // a is not 0

// With last coefficient 1; neither is zero.
Residues greatest_common_divisor(Residues a, Residues b, Limb prime);

}  // namespace brood
