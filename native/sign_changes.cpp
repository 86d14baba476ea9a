#include "sign_changes.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace brood {

namespace {

using Wide = unsigned __int128;

Integer of(Wide value) {
    return Integer(Limbs{Limb(value), Limb(value >> 64)}, false);
}

// The product of the factors of odd multiplicity: the same sign changes, all simple. Yun's
// square-free factorisation (Modern Computer Algebra, algorithm 14.21).
Polynomial sign_changing_part(const Polynomial& polynomial) {
    const Polynomial slope = derivative(polynomial);
    const Polynomial common = greatest_common_divisor(polynomial, slope);
    if (common.size() == 1) return polynomial;
    Polynomial result{Integer(1)};
    Polynomial b = divide(polynomial, common).value();  // whole by Gauss's lemma, here and below
    Polynomial c = divide(slope, common).value();
    for (bool odd = true; b.size() > 1; odd = !odd) {
        const Polynomial d = subtract(c, derivative(b));
        const Polynomial factor = d.empty() ? primitive(b) : greatest_common_divisor(b, d);
        if (odd) result = multiply(result, factor);
        b = divide(b, factor).value();
        c = divide(d, factor).value();
    }
    return primitive(std::move(result));
}

long log2_bound(const Integer& a, const Integer& b) {  // above log2(a / b), for a, b > 0
    return long(a.bit_length()) - long(b.bit_length()) + 1;
}

long divided_up(long a, long b) {  // b > 0
    return a > 0 ? (a + b - 1) / b : -(-a / b);
}

[[noreturn]] void refuse_without_root() {
    throw std::domain_error("Expected a polynomial with a positive root, but it has none");
}

// Returns b such that p(y) > 0 for all y >= 2^b. Each coefficient a_j > 0 is shared out over the d
// below it. Its share is enough for an a_i < 0, a_j y^j / d > abs(a_i) y^i, where
// y^(j - i) > d abs(a_i) / a_j; each a_i takes the j that is best for it. Far complex roots do not
// matter, unlike to the bounds on all roots.
long root_bound(const Polynomial& polynomial) {
    const std::size_t d = polynomial.size() - 1;
    std::optional<long> most;
    for (std::size_t i = 0; i <= d; ++i) {
        if (!polynomial[i].is_negative()) continue;
        const Integer shared = -polynomial[i] * Integer(static_cast<long long>(d));
        std::optional<long> least;
        for (std::size_t j = i + 1; j <= d; ++j) {
            if (polynomial[j].is_negative() || polynomial[j].is_zero()) continue;
            const long bound = divided_up(log2_bound(shared, polynomial[j]), long(j - i));
            if (!least || bound < *least) least = bound;
        }
        if (!most || *least > *most) most = least;
    }
    if (!most) refuse_without_root();
    return *most;
}

// A multiple of p(2^exponent y), by a power of two.
Polynomial stretched(Polynomial polynomial, long exponent) {
    const std::size_t d = polynomial.size() - 1;
    for (std::size_t i = 0; i <= d; ++i)
        polynomial[i] <<= exponent >= 0 ? std::size_t(exponent) * i : std::size_t(-exponent) * (d - i);
    return polynomial;
}

Polynomial shifted(Polynomial polynomial) {  // p(y + 1)
    for (std::size_t first = 0; first + 1 < polynomial.size(); ++first)
        for (std::size_t i = polynomial.size() - 1; i-- > first;) polynomial[i] += polynomial[i + 1];
    return polynomial;
}

// Sign changes in the coefficients of p(1 / (y + 1)) (y + 1)^d, zeros left out; p has no more roots
// in (0, 1), and as many where that is 0 or 1 (Descartes' rule of signs). From 2 on it says 2.
int variations(const Polynomial& polynomial) {
    const Polynomial turned = shifted(Polynomial(polynomial.rbegin(), polynomial.rend()));
    int changes = 0;
    const Integer* last = nullptr;
    for (const Integer& value : turned) {
        if (value.is_zero()) continue;
        if (last != nullptr && last->is_negative() != value.is_negative() && ++changes == 2) break;
        last = &value;
    }
    return changes;
}

// The sign of p(whole * 2^exponent), for exponent <= 0 or not: below 0, 0, above 0.
int sign_at(const Polynomial& polynomial, const Integer& whole, long exponent) {
    const Integer at = exponent > 0 ? whole << std::size_t(exponent) : whole;
    const std::size_t finer = exponent < 0 ? std::size_t(-exponent) : 0;
    Integer result;
    for (std::size_t i = polynomial.size(); i-- > 0;)
        result = result * at + (polynomial[i] << finer * (polynomial.size() - 1 - i));
    return result.is_zero() ? 0 : result.is_negative() ? -1 : 1;
}

// Narrows (left, left + 1) * 2^exponent, which holds the largest root and no other.
Dyadic bisected(const Polynomial& polynomial, Wide left, long exponent) {
    while ((left + 1) >> root_bits == 0) {
        --exponent;
        const Wide middle = 2 * left + 1;
        const int sign = sign_at(polynomial, of(middle), exponent);
        if (sign == 0) return {of(middle), exponent};
        left = sign > 0 ? 2 * left : middle;
    }
    return {of(left + 1), exponent};
}

struct Interval {
    Polynomial local;  // has the roots in (left, left + 1) * 2^exponent in (0, 1)
    Wide left;
    long exponent;
};

// Intervals are halved, and the right halves searched first (Collins and Akritas 1976). One that is
// down to a relative 2^-root_bits is not searched further: its right end is returned.
Dyadic largest_root(const Polynomial& polynomial) {
    const long exponent = root_bound(polynomial);
    if (exponent > max_exponent)
        throw std::domain_error("Expected the last sign change of P to be at x^2 < 2^" +
                                std::to_string(max_exponent) + ", but the bound on it is 2^" +
                                std::to_string(exponent));
    std::vector<Interval> waiting;
    waiting.push_back({stretched(polynomial, exponent), 0, exponent});
    while (!waiting.empty()) {
        const Interval next = std::move(waiting.back());
        waiting.pop_back();
        const int changes = variations(next.local);
        if (changes == 0) {
            if (next.left > 0 && next.local.front().is_zero())
                return {of(next.left), next.exponent};
            continue;
        }
        if (changes == 1) return bisected(polynomial, next.left, next.exponent);
        if (next.left >> root_bits != 0) return {of(next.left + 1), next.exponent};
        Polynomial halved = stretched(next.local, -1);
        Polynomial right = shifted(halved);
        waiting.push_back({std::move(halved), 2 * next.left, next.exponent - 1});
        waiting.push_back({std::move(right), 2 * next.left + 1, next.exponent - 1});
    }
    refuse_without_root();
}

// H_n for even n, in powers of x^2:
// n! sum over i of (-1)^(n/2 - i) 4^i x^(2i) / ((n/2 - i)! (2i)!) (DLMF 18.5.13).
Polynomial hermite(long long n) {
    const long long half = n / 2;
    Integer value = half % 2 == 0 ? 1 : -1;
    for (long long factor = half + 1; factor <= n; ++factor) value = value * Integer(factor);
    Polynomial result{value};
    for (long long i = 0; i < half; ++i) {
        value = divide(value * Integer(-4 * (half - i)), Integer((2 * i + 1) * (2 * i + 2))).first;
        result.push_back(value);
    }
    return result;
}

}  // namespace

Dyadic last_sign_change(const Polynomial& polynomial) {
    return largest_root(sign_changing_part(polynomial));
}

Polynomial hermite_combination(const std::vector<double>& coefficients) {
    const std::size_t m = coefficients.size();
    int bits = 0;
    for (const double value : coefficients) bits = std::max(bits, -Integer::of(value).second);
    std::vector<Polynomial> basis;
    for (std::size_t k = 0; k <= m; ++k) basis.push_back(hermite(4 * static_cast<long long>(k)));
    // c_m = -(sum of c_k H_4k(0)) / H_4m(0); all times H_4m(0), to stay with integers.
    std::vector<Integer> weights;
    Integer last;
    for (std::size_t k = 0; k < m; ++k) {
        auto [whole, exponent] = Integer::of(coefficients[k]);
        whole <<= std::size_t(bits + exponent);
        last -= whole * basis[k].front();
        weights.push_back(whole * basis[m].front());
    }
    weights.push_back(std::move(last));
    Polynomial total(2 * m);
    for (std::size_t k = 0; k <= m; ++k)
        for (std::size_t power = 1; power < basis[k].size(); ++power)
            total[power - 1] += weights[k] * basis[k][power];
    return primitive(std::move(total));
}

}  // namespace brood
