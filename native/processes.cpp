#include "processes.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <dirent.h>
#include <fstream>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "child.hpp"

namespace brood {

namespace {

constexpr int kill_rounds = 5000;

// The children of each of a process's threads.
void add_children(pid_t pid, std::vector<pid_t>& found) {
    const std::string folder = "/proc/" + std::to_string(pid) + "/task";
    DIR* const threads = opendir(folder.c_str());
    if (threads == nullptr) return;  // it has just ended
    while (const dirent* each = readdir(threads)) {
        if (each->d_name[0] == '.') continue;
        std::ifstream list(folder + "/" + each->d_name + "/children");
        for (pid_t child = 0; list >> child;) found.push_back(child);
    }
    closedir(threads);
}

// The sum of those lines of a file of /proc that begin with one of two words; it is in kB.
std::uint64_t kilobytes(pid_t pid, const char* file, const char* first, const char* second) {
    std::ifstream lines("/proc/" + std::to_string(pid) + "/" + file);
    std::uint64_t sum = 0;
    for (std::string line; std::getline(lines, line);) {
        for (const std::string word : {first, second}) {
            if (line.rfind(word, 0) == 0) sum += std::strtoull(line.c_str() + word.size(), nullptr, 10);
        }
    }
    return sum;
}

}  // namespace

std::vector<pid_t> processes_below(pid_t pid) {
    std::vector<pid_t> found;
    add_children(pid, found);
    for (std::size_t i = 0; i < found.size(); ++i) add_children(found[i], found);
    return found;
}

Usage usage_below(pid_t pid, std::uint64_t most, bool exactly) {
    Usage usage;
    const std::vector<pid_t> all = processes_below(pid);
    for (const pid_t each : all) usage.tasks += static_cast<std::uint64_t>(thread_count(each));
    if (usage.tasks > most) return usage;
    for (const pid_t each : all) {
        const std::uint64_t resident = kilobytes(each, "status", "RssAnon:", "RssShmem:");
        const std::uint64_t share =
            exactly ? kilobytes(each, "smaps_rollup", "Pss_Anon:", "Pss_Shmem:") : 0;
        usage.bytes += (share > 0 ? share : resident) << 10;
    }
    return usage;
}

bool end_all_below() {
    for (int round = 0; round < kill_rounds; ++round) {
        pid_t reaped = 0;
        while ((reaped = waitpid(-1, nullptr, WNOHANG)) > 0) {}
        if (reaped < 0) return true;
        for (const pid_t each : processes_below(getpid())) kill(each, SIGKILL);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
}

}  // namespace brood
