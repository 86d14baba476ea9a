#include "packing.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace brood {

namespace {

// Floats as integers over one power of two.
class Grid {
public:
    Grid(const std::vector<double>& a, const std::vector<double>& b, int bits) : bits_(bits) {
        for (const auto* values : {&a, &b})
            for (const double value : *values)
                bits_ = std::max(bits_, -Integer::of(value).second);
    }

    int bits() const { return bits_; }

    Integer at(double value) const {
        auto [whole, exponent] = Integer::of(value);
        return std::move(whole) << std::size_t(bits_ + exponent);
    }

private:
    int bits_;
};

void raise(Integer& most, const Integer& value) {
    if (most < value) most = value;
}

// Whether rounded numbers show that two circles do not overlap. Each of them is off by a relative
// 2^-52 at most, or by 2^-1073, and both margins are far above what that adds up to.
bool surely_apart(double dx, double dy, double a, double b) {
    constexpr double relative = 0x1p-48, absolute = 0x1p-1000;
    return (a + b) * (1 + relative) + absolute < std::hypot(dx, dy) * (1 - relative);
}

}  // namespace

Packing exact_packing(const std::vector<double>& centers, const std::vector<double>& radii,
                      int grid_bits) {
    if (centers.size() != 2 * radii.size())
        throw std::invalid_argument("Expected two coordinates for each radius");
    const Grid grid(centers, radii, grid_bits);
    const Integer unit = grid.at(1.0);
    std::vector<Integer> x, y, r;
    for (std::size_t i = 0; i < radii.size(); ++i) {
        x.push_back(grid.at(centers[2 * i]));
        y.push_back(grid.at(centers[2 * i + 1]));
        r.push_back(grid.at(radii[i]));
    }
    Integer shrink;
    for (std::size_t i = 0; i < r.size(); ++i) {
        for (const Integer& wall : {x[i], y[i], unit - x[i], unit - y[i]})
            raise(shrink, r[i] - wall);
        for (std::size_t j = 0; j < i; ++j) {
            if (surely_apart(centers[2 * i] - centers[2 * j], centers[2 * i + 1] - centers[2 * j + 1],
                             radii[i], radii[j]))
                continue;
            const Integer dx = x[i] - x[j], dy = y[i] - y[j];
            const Integer distance = square_root(dx * dx + dy * dy);
            const Integer overlap = r[i] + r[j] - distance;
            if (!overlap.is_negative()) raise(shrink, (overlap + 1) >> 1);  // rounded up
            raise(shrink, std::max(r[i], r[j]) - distance);
        }
    }
    Integer sum;
    for (const Integer& radius : r)
        if (shrink < radius) sum += radius - shrink;
    return {std::move(shrink), std::move(sum), grid.bits()};
}

}  // namespace brood
