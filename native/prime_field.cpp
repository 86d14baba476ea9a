#include "prime_field.hpp"

#include <utility>

namespace brood {

namespace {

Limb power(Limb base, Limb exponent, Limb modulus) {
    Limb result = 1;
    for (; exponent != 0; exponent >>= 1) {
        if (exponent & 1) result = multiply(result, base, modulus);
        base = multiply(base, base, modulus);
    }
    return result;
}

// Miller and Rabin's test with bases that no composite number of 64 bits passes (Sorenson and
// Webster 2015).
bool is_prime(Limb number) {
    constexpr Limb bases[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
    for (const Limb base : bases)
        if (number % base == 0) return number == base;
    const int twos = __builtin_ctzll(number - 1);
    for (const Limb base : bases) {
        Limb value = power(base, (number - 1) >> twos, number);
        bool passes = value == 1 || value == number - 1;
        for (int i = 1; i < twos && !passes; ++i) {
            value = multiply(value, value, number);
            passes = value == number - 1;
        }
        if (!passes) return false;
    }
    return true;
}

void drop_zeros(Residues& values) {
    while (!values.empty() && values.back() == 0) values.pop_back();
}

}  // namespace

Limb prime_below(Limb bound) {
    Limb number = bound % 2 == 0 ? bound - 1 : bound - 2;
    while (!is_prime(number)) number -= 2;
    return number;
}

Limb multiply(Limb a, Limb b, Limb prime) {
    return Limb(static_cast<unsigned __int128>(a) * b % prime);
}

Limb invert(Limb a, Limb prime) {
    return power(a, prime - 2, prime);  // Fermat
}

Residues greatest_common_divisor(Residues a, Residues b, Limb prime) {
    drop_zeros(a);
    drop_zeros(b);
    while (true) {
        std::swap(a, b);
        const Limb inverse = invert(a.back(), prime);
        for (Limb& value : a) value = multiply(value, inverse, prime);
        while (b.size() >= a.size()) {
            const Limb factor = b.back();
            const std::size_t offset = b.size() - a.size();
            for (std::size_t j = 0; j < a.size(); ++j)
                b[offset + j] = minus(b[offset + j], multiply(factor, a[j], prime), prime);
            drop_zeros(b);
        }
        if (b.empty()) return a;
    }
}

}  // namespace brood
