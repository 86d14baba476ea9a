#include "integer.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace brood {

namespace {

using Wide = unsigned __int128;

constexpr std::size_t limb_bits = 64;

void drop_zeros(Limbs& limbs) {
    while (!limbs.empty() && limbs.back() == 0) limbs.pop_back();
}

int compare_magnitudes(const Limbs& a, const Limbs& b) {
    if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
    for (std::size_t i = a.size(); i-- > 0;)
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    return 0;
}

// a -= b, for a >= b.
void take_away(Limbs& a, const Limbs& b) {
    Limb borrow = 0;
    for (std::size_t i = 0; i < a.size() && (i < b.size() || borrow); ++i) {
        const Wide difference = Wide(a[i]) - (i < b.size() ? b[i] : 0) - borrow;
        a[i] = Limb(difference);
        borrow = Limb(difference >> limb_bits) & 1;
    }
    drop_zeros(a);
}

// Divides a by one limb in place and returns the remainder.
Limb divide_by_limb(Limbs& a, Limb divisor) {
    Wide rest = 0;
    for (std::size_t i = a.size(); i-- > 0;) {
        rest = rest << limb_bits | a[i];
        a[i] = Limb(rest / divisor);
        rest %= divisor;
    }
    drop_zeros(a);
    return Limb(rest);
}

void shift_left(Limbs& a, std::size_t bits) {
    if (a.empty()) return;
    const std::size_t whole = bits / limb_bits, part = bits % limb_bits;
    if (part != 0) {
        Limb carry = 0;
        for (Limb& limb : a) {
            const Limb next = limb >> (limb_bits - part);
            limb = limb << part | carry;
            carry = next;
        }
        if (carry != 0) a.push_back(carry);
    }
    a.insert(a.begin(), whole, 0);
}

void shift_right(Limbs& a, std::size_t bits) {
    const std::size_t whole = std::min(bits / limb_bits, a.size()), part = bits % limb_bits;
    a.erase(a.begin(), a.begin() + whole);
    if (part != 0)
        for (std::size_t i = 0; i < a.size(); ++i) {
            a[i] >>= part;
            if (i + 1 < a.size()) a[i] |= a[i + 1] << (limb_bits - part);
        }
    drop_zeros(a);
}

// Knuth, The Art of Computer Programming, volume 2, 4.3.1, algorithm D: leaves the remainder in
// `a` and returns the quotient. `b` has two limbs or more and is at most `a`.
Limbs long_division(Limbs& a, Limbs b) {
    const auto shift = std::size_t(__builtin_clzll(b.back()));
    shift_left(a, shift);
    shift_left(b, shift);
    a.push_back(0);
    const std::size_t n = b.size();
    const Limb first = b[n - 1], second = b[n - 2];
    Limbs quotient(a.size() - n);
    for (std::size_t j = quotient.size(); j-- > 0;) {
        const Wide top = Wide(a[j + n]) << limb_bits | a[j + n - 1];
        Wide guess = a[j + n] >= first ? Wide(Limb(-1)) : top / first;
        Wide rest = top - guess * first;
        while (rest >> limb_bits == 0 && guess * second > (rest << limb_bits | a[j + n - 2])) {
            --guess;
            rest += first;
        }
        Limb carry = 0, borrow = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const Wide product = guess * b[i] + carry;
            carry = Limb(product >> limb_bits);
            const Wide difference = Wide(a[j + i]) - Limb(product) - borrow;
            a[j + i] = Limb(difference);
            borrow = Limb(difference >> limb_bits) & 1;
        }
        const Wide difference = Wide(a[j + n]) - carry - borrow;
        a[j + n] = Limb(difference);
        if (difference >> limb_bits != 0) {  // one too much
            --guess;
            Limb over = 0;
            for (std::size_t i = 0; i < n; ++i) {
                const Wide sum = Wide(a[j + i]) + b[i] + over;
                a[j + i] = Limb(sum);
                over = Limb(sum >> limb_bits);
            }
            a[j + n] += over;
        }
        quotient[j] = Limb(guess);
    }
    drop_zeros(a);
    shift_right(a, shift);
    drop_zeros(quotient);
    return quotient;
}

}  // namespace

Integer::Integer(long long value) : negative_(value < 0) {
    if (value != 0) limbs_.push_back(value < 0 ? 0 - Limb(value) : Limb(value));
}

Integer::Integer(Limbs magnitude, bool negative)
    : limbs_(std::move(magnitude)), negative_(negative) {
    trim();
}

std::pair<Integer, int> Integer::of(double value) {
    if (value == 0) return {Integer(), 0};
    int exponent = 0;
    const double fraction = std::frexp(value, &exponent);  // exact, of subnormals too
    auto whole = static_cast<long long>(std::ldexp(fraction, 53));
    const int zeros = __builtin_ctzll(static_cast<unsigned long long>(whole));
    return {Integer(whole / (1LL << zeros)), exponent - 53 + zeros};
}

std::size_t Integer::bit_length() const {
    if (limbs_.empty()) return 0;
    return limbs_.size() * limb_bits - std::size_t(__builtin_clzll(limbs_.back()));
}

Limb Integer::modulo(Limb divisor) const {
    Wide rest = 0;
    for (std::size_t i = limbs_.size(); i-- > 0;) rest = (rest << limb_bits | limbs_[i]) % divisor;
    return negative_ && rest != 0 ? divisor - Limb(rest) : Limb(rest);
}

Integer Integer::operator-() const {
    return Integer(limbs_, !negative_);
}

Integer& Integer::operator+=(const Integer& other) {
    if (negative_ == other.negative_)
        add(other.limbs_);
    else
        subtract(other.limbs_);
    return *this;
}

Integer& Integer::operator-=(const Integer& other) {
    if (negative_ == other.negative_)
        subtract(other.limbs_);
    else
        add(other.limbs_);
    return *this;
}

Integer& Integer::operator<<=(std::size_t bits) {
    shift_left(limbs_, bits);
    return *this;
}

Integer& Integer::operator>>=(std::size_t bits) {
    shift_right(limbs_, bits);
    trim();
    return *this;
}

void Integer::add(const Limbs& other) {
    const std::size_t length = other.size();  // `other` may be these limbs
    if (limbs_.size() < length) limbs_.resize(length);
    Limb carry = 0;
    for (std::size_t i = 0; i < limbs_.size() && (i < length || carry); ++i) {
        const Wide sum = Wide(limbs_[i]) + (i < length ? other[i] : 0) + carry;
        limbs_[i] = Limb(sum);
        carry = Limb(sum >> limb_bits);
    }
    if (carry != 0) limbs_.push_back(carry);
}

void Integer::subtract(const Limbs& other) {
    if (compare_magnitudes(limbs_, other) >= 0) {
        take_away(limbs_, other);
    } else {
        Limbs difference = other;
        take_away(difference, limbs_);
        limbs_ = std::move(difference);
        negative_ = !negative_;
    }
    trim();
}

void Integer::trim() {
    drop_zeros(limbs_);
    if (limbs_.empty()) negative_ = false;
}

int compare(const Integer& a, const Integer& b) {
    if (a.is_negative() != b.is_negative()) return a.is_negative() ? -1 : 1;
    const int magnitudes = compare_magnitudes(a.magnitude(), b.magnitude());
    return a.is_negative() ? -magnitudes : magnitudes;
}

Integer operator*(const Integer& a, const Integer& b) {
    if (a.is_zero() || b.is_zero()) return Integer();
    const Limbs &x = a.magnitude(), &y = b.magnitude();
    Limbs product(x.size() + y.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        Limb carry = 0;
        for (std::size_t j = 0; j < y.size(); ++j) {
            const Wide sum = Wide(x[i]) * y[j] + product[i + j] + carry;
            product[i + j] = Limb(sum);
            carry = Limb(sum >> limb_bits);
        }
        product[i + y.size()] = carry;
    }
    return Integer(std::move(product), a.is_negative() != b.is_negative());
}

std::pair<Integer, Integer> divide(const Integer& a, const Integer& b) {
    if (compare_magnitudes(a.magnitude(), b.magnitude()) < 0) return {Integer(), a};
    Limbs rest = a.magnitude(), quotient;
    if (b.magnitude().size() == 1) {
        quotient = rest;
        rest = {divide_by_limb(quotient, b.magnitude().front())};
    } else {
        quotient = long_division(rest, b.magnitude());
    }
    return {Integer(std::move(quotient), a.is_negative() != b.is_negative()),
            Integer(std::move(rest), a.is_negative())};
}

Integer greatest_common_divisor(Integer a, Integer b) {
    while (!b.is_zero()) a = std::exchange(b, divide(a, b).second);
    return a.is_negative() ? -a : a;
}

// Newton's steps at a precision that doubles: root is within 1 of the root of the leading bits of a,
// two for each of its own (as Python's math.isqrt does it).
Integer square_root(const Integer& a) {
    if (a.is_zero()) return a;
    const std::size_t half = (a.bit_length() - 1) / 2;
    int steps = 0;
    while (half >> steps > 30) ++steps;
    std::size_t known = half >> steps;
    const Integer leading = a >> 2 * (half - known);  // 62 bits at most
    Integer root(static_cast<long long>(std::sqrt(double(leading.magnitude().front()))));
    while (steps-- > 0) {
        const std::size_t before = known;
        known = half >> steps;
        const Integer dividend = a >> (2 * half + 1 - before - known);
        root = (root << (known - before - 1)) + divide(dividend, root).first;
    }
    return a < root * root ? root - 1 : root;
}

}  // namespace brood
