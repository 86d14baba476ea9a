// Making a process cheap to fork.
#pragma once

namespace brood {

// Rearranges the calling process's memory, without changing its contents, so that forking it and
// ending its children cost less. What the kernel refuses stays as it was.
void make_forks_cheap();

}  // namespace brood
