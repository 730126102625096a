// What the kernel says about another process: the CPU time of its threads, and its memory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace petacq::bench {

struct ThreadTime {
    pid_t id = 0;
    std::string name;
    double seconds = 0;  ///< CPU time since the thread began
};

/// The threads that the process has, in the order of their ids.
std::vector<ThreadTime> thread_times(pid_t process);

/// CPU time of the threads of one name over an interval, as shares of a core.
struct ThreadGroup {
    std::string name;
    std::vector<double> shares;  ///< one for each thread, the busiest first; not empty
};

/// What the threads in `after` used since `before`, `seconds` earlier: the group with the busiest thread
/// first. Leaves out groups of which no thread used a thousandth of a core.
std::vector<ThreadGroup> thread_groups(const std::vector<ThreadTime>& before,
                                       const std::vector<ThreadTime>& after, double seconds);

/// Most memory that the process ever had resident (VmHWM). Throws std::runtime_error if it is not known.
std::uint64_t peak_memory_bytes(pid_t process);

}  // namespace petacq::bench
