// A file descriptor that is closed when its owner goes.
#pragma once

#include <fcntl.h>
#include <unistd.h>
#include <utility>

#include "errors.hpp"

namespace brood {

class Descriptor {
public:
    explicit Descriptor(int fd = -1) : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Descriptor() { reset(); }

    int get() const { return fd_; }
    void reset() {
        if (fd_ >= 0) close(fd_);
        fd_ = -1;
    }
    // Leaves the descriptor open, or its number to whatever has it by now.
    void forget() { fd_ = -1; }

private:
    int fd_;
};

// The reading and the writing end.
inline std::pair<Descriptor, Descriptor> make_pipe() {
    int ends[2];
    checked(pipe2(ends, O_CLOEXEC));
    return {Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace brood
