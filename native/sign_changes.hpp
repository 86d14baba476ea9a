// Where polynomials change their sign for the last time, without rounding; kernels.uncertainty says
// what for.
#pragma once

#include <vector>

#include "polynomial.hpp"

namespace brood {

constexpr int root_bits = 80;  // roots are located to a relative 2^-root_bits

// Polynomials are refused that may have a root above 2^max_exponent: the search would begin with
// numbers of that many bits more for each degree, for a root that is of no use to anyone.
constexpr int max_exponent = 64;

// whole * 2^exponent.
struct Dyadic {
    Integer whole;
    long exponent;
};

// An upper bound on the last place above 0 where the polynomial changes its sign, at most a
// relative 2^-root_bits above it, or above a place where it almost does. Its degree is 1 or more
// and its last coefficient above 0.
// Throws std::domain_error where there is no such place or it may lie above 2^max_exponent.
Dyadic last_sign_change(const Polynomial& polynomial);

// P(x) / x^2 times a positive number, primitive, in powers of x^2; empty where P is zero. See
// kernels.uncertainty (1); the coefficients are finite, and there are 1 to 32.
Polynomial hermite_combination(const std::vector<double>& coefficients);

}  // namespace brood
