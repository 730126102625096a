// The cores on which threads run.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <span>
#include <string>
#include <vector>

namespace petacq::net {

/// Numbers of logical processors, ascending. Empty: any.
using Cores = std::vector<int>;

/// "0-15,32"
std::string to_text(std::span<const int> cores);

/// Lets a thread run on these cores only. 0, or the number of the error: it then runs where it did. Nothing
/// changes without cores.
int run_on(pthread_t thread, std::span<const int> cores);

/// While it lives, the calling thread runs on these cores, unless the system refuses. Threads that it makes
/// stay there. Memory that it touches first is of their NUMA node.
class OnCores {
  public:
    explicit OnCores(std::span<const int> cores);
    ~OnCores();
    OnCores(const OnCores&) = delete;
    OnCores& operator=(const OnCores&) = delete;

  private:
    cpu_set_t before_{};
    bool moved_ = false;
};

}  // namespace petacq::net
