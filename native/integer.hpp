// Integers of any length, for scores that may not round. No global state; nothing here needs
// Python, so all of it may run without the GIL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace brood {

using Limb = std::uint64_t;
using Limbs = std::vector<Limb>;  // the least first, the last one not 0; none for zero

class Integer {
public:
    Integer() = default;
    Integer(long long value);
    Integer(Limbs magnitude, bool negative);

    // value = result * 2^exponent exactly, with result odd or 0; value is finite.
    static std::pair<Integer, int> of(double value);

    const Limbs& magnitude() const { return limbs_; }
    bool is_zero() const { return limbs_.empty(); }
    bool is_negative() const { return negative_; }
    std::size_t bit_length() const;

    // The remainder of a division by a number above 0, in 0 .. divisor - 1.
    Limb modulo(Limb divisor) const;

    Integer operator-() const;
    Integer& operator+=(const Integer& other);
    Integer& operator-=(const Integer& other);
    Integer& operator<<=(std::size_t bits);
    Integer& operator>>=(std::size_t bits);  // towards 0

private:
    void add(const Limbs& other);
    void subtract(const Limbs& other);  // what is below 0 turns the sign
    void trim();

    Limbs limbs_;
    bool negative_ = false;
};

int compare(const Integer& a, const Integer& b);  // below 0, 0, above 0

Integer operator*(const Integer& a, const Integer& b);
inline Integer operator+(Integer a, const Integer& b) { return a += b; }
inline Integer operator-(Integer a, const Integer& b) { return a -= b; }
inline Integer operator<<(Integer a, std::size_t bits) { return a <<= bits; }
inline Integer operator>>(Integer a, std::size_t bits) { return a >>= bits; }
inline bool operator<(const Integer& a, const Integer& b) { return compare(a, b) < 0; }
inline bool operator==(const Integer& a, const Integer& b) { return compare(a, b) == 0; }

// Quotient, towards 0, and remainder, with the sign of a; b is not 0.
std::pair<Integer, Integer> divide(const Integer& a, const Integer& b);

Integer greatest_common_divisor(Integer a, Integer b);  // at least 0

Integer square_root(const Integer& a);  // rounded down; a is at least 0

}  // namespace brood
