// Turning errno into Python's OSError.
#pragma once

#include <nanobind/nanobind.h>

#include <cerrno>

namespace brood {

[[noreturn]] inline void raise_os_error() {
    PyErr_SetFromErrno(PyExc_OSError);
    throw nanobind::python_error();
}

// Passes a system call's result on, unless it is -1.
template <typename Result> Result checked(Result result) {
    if (result == static_cast<Result>(-1)) raise_os_error();
    return result;
}

}  // namespace brood
