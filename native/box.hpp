// A box: a tree of processes behind walls, with a scratch folder, that ends as a whole.
//
// Its first process is ours. It sets up the mounts, starts the judge, and for a judge that is split
// from the program a second process behind the candidates' walls, waits for the judge and
// ends; with it the kernel ends all that is in its PID namespace.
//
// Does not: watch deadline, memory and number of processes; the server does, with `usage`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "descriptor.hpp"
#include "processes.hpp"
#include "walls.hpp"

namespace brood {

// In which process a call of `Box::open` has returned.
enum class Role { server, judge, candidate };

// Whether boxes can have namespaces of their own; '', or why not.
std::string try_box_namespaces();

struct BoxSetup {
    std::vector<std::string> readable;   // by the judge
    std::vector<std::string> libraries;  // readable by a candidate
    std::string scratch;                 // where the scratch folder is to be
    std::uint64_t scratch_bytes;
    std::uint64_t memory_bytes;
    std::uint64_t processes;
    std::uint64_t cpu_seconds;
    bool mounts;  // whether this process is in a mount namespace of its own
};

// What became of a box.
struct BoxEnd {
    std::optional<int> judge, candidate;  // exit codes, negated for a signal; none: killed with it
    std::uint64_t peak_bytes = 0;         // largest resident size of one of its processes
};

class Box {
public:
    explicit Box(BoxSetup setup);

    // Opens the box, in a process with one thread. Returns in the server, and in the judge, whose
    // descriptors 0, 1, ... are then `judge`; if `candidate` is not empty, in the candidate as well.
    // Those two are behind their walls by then, and all other descriptors are closed.
    Role open(const std::vector<int>& judge, const std::vector<int>& candidate);

    // The rest is for the server. Readable once the judge, or the box as a whole, has ended.
    int over() const { return report_.get(); }
    Usage usage(bool exactly) const { return usage_below(pid_, setup_.processes, exactly); }
    // Has this process, and in the end the box's first one, go before all that is in the box: who
    // waits in line behind a thousand processes can't end them. Only a superuser may.
    static void hurry(bool yes);
    // Ends everything in it, and returns when nothing is left.
    BoxEnd close();

    const Missing& missing() const { return missing_; }

private:
    void begin() const;
    void attend(pid_t judge, pid_t candidate, int report) const;
    void enter(pid_t first, const std::vector<int>& descriptors, Walls& walls, const Limits& limits);

    BoxSetup setup_;
    Missing missing_;
    int namespaces_;
    Walls walls_, narrow_walls_;
    pid_t pid_ = 0;
    Descriptor pidfd_, report_, self_;
};

}  // namespace brood
