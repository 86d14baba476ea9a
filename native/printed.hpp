// The end of what a program's processes printed.
//
// A forked child finds this memory empty: a process must not read there what another one, which
// had another case or another program, has printed.
#pragma once

#include <cstddef>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#include "errors.hpp"
#include "protocol.hpp"

namespace brood {

class Printed {
public:
    Printed() {
        void* memory = mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                            -1, 0);
        if (memory == MAP_FAILED) raise_os_error();
        text_ = static_cast<char*>(memory);
        checked(madvise(text_, capacity, MADV_WIPEONFORK));
    }
    ~Printed() { munmap(text_, capacity); }
    Printed(const Printed&) = delete;
    Printed& operator=(const Printed&) = delete;

    const char* data() const { return text_; }
    std::size_t size() const { return size_; }
    void clear() { size_ = 0; }

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
    static constexpr std::size_t capacity = output_limit + most_read;

    char* text_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace brood
