// System calls of the evaluator that Python's standard library has no door to.
//
// Does: tie a process's life to its parent's, let the fork server inherit the orphans that a
// candidate leaves behind, and put resource limits and the no-new-privileges flag on the process
// that is about to run a candidate. Linux only.
// Does not: keep a candidate away from the file system, the network or other processes of the
// same user; that needs namespaces and a system call filter, which are not here.
//
// Every function acts on the calling process only and raises OSError when the kernel refuses.

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace nb = nanobind;

namespace {

[[noreturn]] void raise_os_error() {
    PyErr_SetFromErrno(PyExc_OSError);
    throw nb::python_error();
}

void set_process_flag(int option, unsigned long value) {
    if (prctl(option, value, 0UL, 0UL, 0UL) != 0) raise_os_error();
}

// Sets the soft and the hard limit, but never above the hard limit that is already there.
void limit(__rlimit_resource resource, rlim_t value) {
    rlimit current{};
    if (getrlimit(resource, &current) != 0) raise_os_error();
    const rlim_t bound = std::min(value, current.rlim_max);  // RLIM_INFINITY is the largest rlim_t
    const rlimit wanted{bound, bound};
    if (setrlimit(resource, &wanted) != 0) raise_os_error();
}

std::uint64_t address_space_bytes() {
    std::FILE* statm = std::fopen("/proc/self/statm", "re");
    if (statm == nullptr) raise_os_error();
    unsigned long pages = 0;
    const int fields = std::fscanf(statm, "%lu", &pages);
    std::fclose(statm);
    if (fields != 1) {
        errno = EIO;
        raise_os_error();
    }
    return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

void die_with_parent(int parent, int signal) {
    set_process_flag(PR_SET_PDEATHSIG, static_cast<unsigned long>(signal));
    // The parent may have died before the flag was set; the kernel then sends nothing.
    if (getppid() != parent) kill(getpid(), signal);
}

void adopt_orphans() { set_process_flag(PR_SET_CHILD_SUBREAPER, 1UL); }

void confine(std::uint64_t memory_bytes, std::uint64_t cpu_seconds, std::uint64_t file_bytes) {
    // RLIMIT_AS rather than RLIMIT_DATA, because only RLIMIT_AS counts shared mappings.
    limit(RLIMIT_AS, address_space_bytes() + memory_bytes);
    limit(RLIMIT_CPU, cpu_seconds);
    limit(RLIMIT_FSIZE, file_bytes);
    limit(RLIMIT_CORE, 0);
    set_process_flag(PR_SET_NO_NEW_PRIVS, 1UL);
}

}  // namespace

NB_MODULE(_native, module) {
    module.doc() = "System calls that the evaluator's processes need; see native/confine.cpp.";
    module.def("die_with_parent", &die_with_parent, nb::kw_only(), nb::arg("parent"),
               nb::arg("signal"),
               "Have the kernel send `signal` to this process when the parent's thread that "
               "started it ends; at once if process `parent` is no longer the parent.");
    module.def("adopt_orphans", &adopt_orphans,
               "Make this process the parent of its descendants' orphans, instead of init.");
    module.def("confine", &confine, nb::kw_only(), nb::arg("memory_bytes"),
               nb::arg("cpu_seconds"), nb::arg("file_bytes"),
               "Limit this process and its children to `memory_bytes` of address space beyond "
               "what it has now, `cpu_seconds` of processor time and files of `file_bytes`; no "
               "core files and no new privileges. Can't be undone.");
}
