// Polynomials with integer coefficients, the lowest power first, the last one not 0; none for zero.
#pragma once

#include <optional>
#include <vector>

#include "integer.hpp"

namespace brood {

using Polynomial = std::vector<Integer>;

// Over its content, with the last coefficient above 0; without the zeros of the highest powers.
Polynomial primitive(Polynomial polynomial);

Polynomial derivative(const Polynomial& polynomial);

Polynomial subtract(const Polynomial& a, const Polynomial& b);

Polynomial multiply(const Polynomial& a, const Polynomial& b);

// a / b where that has integer coefficients; b is not zero.
std::optional<Polynomial> divide(const Polynomial& a, const Polynomial& b);

// Primitive; neither is zero.
Polynomial greatest_common_divisor(Polynomial a, Polynomial b);

}  // namespace brood
