// The face that Python sees: kernels._native. Exact scores of numbers that fit no float, without
// the GIL, so that scoring holds up no thread that generates.

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <string>
#include <vector>

#include "packing.hpp"
#include "sign_changes.hpp"

namespace nb = nanobind;
using namespace brood;

namespace {

nb::object int_of(const Integer& value) {
    const Limbs& limbs = value.magnitude();  // Linux: the least byte comes first
    const nb::bytes bytes(limbs.data(), limbs.size() * sizeof(Limb));
    const nb::object whole =
        nb::handle(reinterpret_cast<PyObject*>(&PyLong_Type)).attr("from_bytes")(bytes, "little");
    return value.is_negative() ? -whole : whole;
}

Integer integer_of(nb::handle whole) {
    const auto length = nb::cast<std::size_t>(whole.attr("bit_length")()) / 64 + 1;
    const auto bytes =
        nb::cast<nb::bytes>(
            whole.attr("__abs__")().attr("to_bytes")(length * sizeof(Limb), "little"));
    Limbs limbs(length);
    std::memcpy(limbs.data(), bytes.c_str(), bytes.size());
    return Integer(std::move(limbs), nb::cast<bool>(whole.attr("__lt__")(0)));
}

nb::tuple verify_packing(const std::vector<double>& centers, const std::vector<double>& radii,
                         int grid_bits) {
    Packing packing;
    {
        nb::gil_scoped_release released;
        packing = exact_packing(centers, radii, grid_bits);
    }
    return nb::make_tuple(int_of(packing.shrink), int_of(packing.radii_sum), packing.bits);
}

nb::tuple to_python(const Dyadic& place) {
    return nb::make_tuple(int_of(place.whole), place.exponent);
}

nb::tuple sign_change(const std::vector<nb::int_>& coefficients) {
    Polynomial polynomial;
    for (const nb::int_& value : coefficients) polynomial.push_back(integer_of(value));
    Dyadic place;
    {
        nb::gil_scoped_release released;
        place = last_sign_change(polynomial);
    }
    return to_python(place);
}

nb::object hermite_sign_change(const std::vector<double>& coefficients) {
    Dyadic place;
    {
        nb::gil_scoped_release released;
        const Polynomial polynomial = hermite_combination(coefficients);
        if (!polynomial.empty()) place = last_sign_change(polynomial);
    }
    return place.whole.is_zero() ? nb::none() : nb::object(to_python(place));
}

}  // namespace

NB_MODULE(_native, module) {
    module.doc() = "Exact scores with integers of any length, computed without the GIL.";
    module.attr("ROOT_BITS") = root_bits;
    module.attr("MAX_EXPONENT") = max_exponent;
    module.def("verify_packing", &verify_packing, nb::kw_only(), nb::arg("centers"),
               nb::arg("radii"), nb::arg("grid_bits"),
               nb::sig("def verify_packing(*, centers: list[float], radii: list[float], "
                       "grid_bits: int) -> tuple[int, int, int]"),
               "Return the shrink, the sum of the radii that are left, and b: in units of 2^-b.");
    module.def("last_sign_change", &sign_change, nb::arg("polynomial"),
               nb::sig("def last_sign_change(polynomial: list[int]) -> tuple[int, int]"),
               "Return a and b: a * 2^b bounds the last sign change of a polynomial above 0.");
    module.def("hermite_sign_change", &hermite_sign_change, nb::arg("coefficients"),
               nb::sig("def hermite_sign_change(coefficients: list[float]) -> tuple[int, int] | "
                       "None"),
               "Return a and b as above, of P(x) / x^2 in x^2; None where P is zero.");
}
