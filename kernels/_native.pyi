ROOT_BITS: int
MAX_EXPONENT: int

def verify_packing(
    *, centers: list[float], radii: list[float], grid_bits: int
) -> tuple[int, int, int]:
    """Return the shrink, the sum of the radii that are left, and b: in units of 2^-b."""

def last_sign_change(polynomial: list[int]) -> tuple[int, int]:
    """Return a and b: a * 2^b bounds the last sign change of a polynomial above 0."""

def hermite_sign_change(coefficients: list[float]) -> tuple[int, int] | None:
    """Return a and b as above, of P(x) / x^2 in x^2; None where P is zero."""
