// Independent processes, each with a pipeline of one thread: what the machine gives if nothing is shared.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace petacq::bench {

/// Each process repeats the same measurement when told to. They are forks of the calling process, which must
/// not have started threads.
class Processes {
  public:
    /// `prepare(i)` is called in process i, and what it returns once for each measurement.
    Processes(std::size_t count, const std::function<std::function<double()>(std::size_t)>& prepare);
    ~Processes();
    Processes(const Processes&) = delete;
    Processes& operator=(const Processes&) = delete;

    /// Measures in the first `count` processes at once. Returns the sum of their results.
    double measure(std::size_t count);

  private:
    struct Process {
        pid_t pid;
        int orders;   // a byte for each measurement; closed: the end
        int results;  // doubles
    };
    std::vector<Process> processes_;
};

}  // namespace petacq::bench
