#include "polynomial.hpp"

#include <algorithm>
#include <utility>

#include "prime_field.hpp"

namespace brood {

namespace {

void drop_zeros(Polynomial& polynomial) {
    while (!polynomial.empty() && polynomial.back().is_zero()) polynomial.pop_back();
}

Residues modulo(const Polynomial& polynomial, Limb prime) {
    Residues result;
    for (const Integer& value : polynomial) result.push_back(value.modulo(prime));
    return result;
}

// What is known of a polynomial modulo many primes: the smallest that fits all, with signs.
class Lift {
public:
    bool begun() const { return !value_.empty(); }
    std::size_t size() const { return value_.size(); }

    void restart(std::size_t size) {
        value_.assign(size, Integer());
        modulus_ = 1;
    }

    // The residues of one prime more; false where they were as foretold.
    bool add(const Residues& residues, Limb prime) {
        const Limb inverse = invert(modulus_.modulo(prime), prime);
        bool changed = false;
        for (std::size_t i = 0; i < value_.size(); ++i) {
            const Limb known = value_[i].modulo(prime);
            const Limb digit = multiply(minus(residues[i], known, prime), inverse, prime);
            if (digit == 0) continue;
            changed = true;
            const bool above_half = digit > prime / 2;
            value_[i] += modulus_ * Integer(Limbs{above_half ? prime - digit : digit}, above_half);
        }
        modulus_ = modulus_ * Integer(Limbs{prime}, false);
        return changed;
    }

    const Polynomial& value() const { return value_; }

private:
    Polynomial value_;
    Integer modulus_;
};

}  // namespace

Polynomial primitive(Polynomial polynomial) {
    drop_zeros(polynomial);
    if (polynomial.empty()) return polynomial;
    Integer content;
    for (const Integer& value : polynomial) content = greatest_common_divisor(content, value);
    if (polynomial.back().is_negative()) content = -content;
    if (!(content == Integer(1)))
        for (Integer& value : polynomial) value = divide(value, content).first;
    return polynomial;
}

Polynomial derivative(const Polynomial& polynomial) {
    Polynomial result;
    for (std::size_t i = 1; i < polynomial.size(); ++i)
        result.push_back(polynomial[i] * Integer(static_cast<long long>(i)));
    return result;
}

Polynomial subtract(const Polynomial& a, const Polynomial& b) {
    Polynomial result = a;
    if (result.size() < b.size()) result.resize(b.size());
    for (std::size_t i = 0; i < b.size(); ++i) result[i] -= b[i];
    drop_zeros(result);
    return result;
}

Polynomial multiply(const Polynomial& a, const Polynomial& b) {
    Polynomial result(a.size() + b.size() - 1);
    for (std::size_t i = 0; i < a.size(); ++i)
        for (std::size_t j = 0; j < b.size(); ++j) result[i + j] += a[i] * b[j];
    return result;
}

std::optional<Polynomial> divide(const Polynomial& a, const Polynomial& b) {
    if (a.size() < b.size()) return a.empty() ? std::optional(a) : std::nullopt;
    Polynomial rest = a, result(a.size() - b.size() + 1);
    for (std::size_t i = result.size(); i-- > 0;) {
        auto [quotient, remainder] = divide(rest[i + b.size() - 1], b.back());
        if (!remainder.is_zero()) return std::nullopt;
        for (std::size_t j = 0; j < b.size(); ++j) rest[i + j] -= quotient * b[j];
        result[i] = std::move(quotient);
    }
    drop_zeros(rest);
    return rest.empty() ? std::optional(result) : std::nullopt;
}

// Modulo primes until nothing changes (von zur Gathen and Gerhard, Modern Computer Algebra,
// algorithm 6.38). A prime that gives a divisor of too large a degree, by accident, is outvoted by
// the first one that does not; what divides both and has the least degree is the greatest divisor.
Polynomial greatest_common_divisor(Polynomial a, Polynomial b) {
    a = primitive(std::move(a));
    b = primitive(std::move(b));
    const Integer leading = greatest_common_divisor(a.back(), b.back());
    Lift lift;
    for (Limb prime = prime_below(Limb(1) << 62);; prime = prime_below(prime)) {
        if (a.back().modulo(prime) == 0 || b.back().modulo(prime) == 0) continue;
        Residues common = greatest_common_divisor(modulo(a, prime), modulo(b, prime), prime);
        if (common.size() == 1) return {Integer(1)};
        if (lift.begun() && common.size() > lift.size()) continue;
        if (!lift.begun() || common.size() < lift.size()) lift.restart(common.size());
        const Limb scale = leading.modulo(prime);
        for (Limb& value : common) value = multiply(value, scale, prime);
        if (lift.add(common, prime)) continue;
        Polynomial found = primitive(lift.value());
        if (divide(a, found) && divide(b, found)) return found;
    }
}

}  // namespace brood
