// The end of what a program's processes printed.
#pragma once

#include <cstddef>
#include <cstring>
#include <unistd.h>

#include "protocol.hpp"

namespace brood {

class Printed {
public:
    const char* data() const { return text_; }
    std::size_t size() const { return size_; }

    // Forgets all of it, so that no later child finds it in the memory that it inherits.
    void wipe() {
        std::memset(text_, 0, sizeof text_);
        size_ = 0;
    }

    // Takes what is in the pipe now, up to what a pipe can hold, and keeps the end of it.
    void take(int fd) {
        for (int reads = 0; reads < 16; ++reads) {
            const ssize_t bytes = read(fd, text_ + size_, most_read);
            if (bytes <= 0) return;
            size_ += static_cast<std::size_t>(bytes);
            if (size_ <= output_limit) continue;
            std::memmove(text_, text_ + size_ - output_limit, output_limit);
            size_ = output_limit;
        }
    }

private:
    static constexpr std::size_t most_read = 1 << 16;

    char text_[output_limit + most_read] = {};
    std::size_t size_ = 0;
};

}  // namespace brood
