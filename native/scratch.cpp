#include "scratch.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <utility>

namespace brood {

namespace {

// The interface of mounts that have no place yet: its header clashes with <sys/mount.h>.
constexpr long open_tree = 428, move_mount = 429;
constexpr unsigned int clone_tree = 1, recursive = 0x8000, from_descriptor = 4;
constexpr std::uint64_t reserved_numbers = 300;  // the kernel's RESERVED_PIDS
constexpr std::uint64_t bytes_per_file = 4096;  // with fewer, the number of files is what is bounded

// Makes the folders above `path`, and an empty file or folder for something to be mounted on.
void make_place(const std::string& path, bool is_folder) {
    for (std::size_t slash = path.find('/', 1); slash != std::string::npos;
         slash = path.find('/', slash + 1)) {
        mkdir(path.substr(0, slash).c_str(), 0755);
    }
    if (is_folder) {
        mkdir(path.c_str(), 0755);
    } else {
        close(open(path.c_str(), O_CREAT | O_CLOEXEC | O_WRONLY, 0644));
    }
}

// Whether a PID namespace has a largest number of its own, as since Linux 6.14. Before, that file is
// the whole machine's, and a superuser would change it for everybody.
bool has_own_largest_number() {
    utsname system{};
    int major = 0, minor = 0;
    return uname(&system) == 0 && std::sscanf(system.release, "%d.%d", &major, &minor) == 2 &&
           std::pair(major, minor) >= std::pair(6, 14);
}

}  // namespace

std::string mount_scratch(const std::string& place, std::uint64_t bytes,
                          const std::vector<std::string>& readable) {
    std::vector<std::pair<std::string, int>> hidden;
    for (const std::string& path : readable) {
        if (path.rfind(place + "/", 0) != 0) continue;
        const auto tree = syscall(open_tree, AT_FDCWD, path.c_str(), clone_tree | recursive | O_CLOEXEC);
        if (tree >= 0) hidden.emplace_back(path, static_cast<int>(tree));
    }
    const std::string options = "mode=1777,size=" + std::to_string(bytes) +
                                ",nr_inodes=" + std::to_string(bytes / bytes_per_file + 16);
    if (mount("scratch", place.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) != 0) {
        return std::string("no scratch folder of its own: ") + strerror(errno);
    }
    const std::string files = place + "/files", shared = place + "/shared";
    for (const std::string& each : {files, shared}) {
        mkdir(each.c_str(), 0);
        chmod(each.c_str(), 01777);
    }
    mount(shared.c_str(), "/dev/shm", nullptr, MS_BIND, nullptr);  // not every program needs it
    if (mount(files.c_str(), place.c_str(), nullptr, MS_BIND, nullptr) != 0) {
        return std::string("no scratch folder of its own: ") + strerror(errno);
    }
    for (const auto& [path, tree] : hidden) {
        struct stat status {};
        make_place(path, fstat(tree, &status) == 0 && S_ISDIR(status.st_mode));
        syscall(move_mount, tree, "", AT_FDCWD, path.c_str(), from_descriptor);
        close(tree);
    }
    return "";
}

void mount_processes(std::uint64_t most) {
    constexpr auto flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    // Refused where the old one is covered in part, as in some containers.
    if (mount("proc", "/proc", "proc", flags, nullptr) != 0) return;
    // Once all numbers were used, those below `reserved_numbers` are not used again.
    if (has_own_largest_number()) {
        std::ofstream("/proc/sys/kernel/pid_max") << reserved_numbers + most;
    }
    mount(nullptr, "/proc", nullptr, MS_REMOUNT | MS_RDONLY | flags, nullptr);
}

}  // namespace brood
