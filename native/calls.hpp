// Which system calls a candidate may make.
#pragma once

#include <linux/filter.h>
#include <string>
#include <vector>

namespace brood {

struct CallRules {
    bool writing;  // files may be opened for writing; something else says which
    bool signals;  // signals may be sent; something else says to whom
    bool processes = false;  // processes and programs may be started, and files made and changed
};

// Returns a seccomp filter, or an empty one and the reason.
std::vector<sock_filter> make_call_filter(const CallRules& rules, std::string& why);

}  // namespace brood
