// On which cores the threads of a program may run.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "net/base/cores.hpp"
#include "tests/support/files.hpp"

namespace petacq::test {

/// Those of the calling thread.
inline net::Cores own_cores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    net::Cores cores;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
    for (unsigned core = 0; core < CPU_SETSIZE; ++core)
        if (CPU_ISSET(core, &set)) cores.push_back(static_cast<int>(core));
    return cores;
}

/// "0-3": where the threads of that name may run; "?" if they differ, "" if there are none.
inline std::string cores_of(const std::string& thread, pid_t process = getpid()) {
    std::string cores;
    const std::filesystem::path tasks = "/proc/" + std::to_string(process) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks)) {
        if (read_file(task.path() / "comm") != thread + "\n") continue;
        const std::string status = read_file(task.path() / "status");
        const std::string label = "\nCpus_allowed_list:\t";
        const std::size_t at = status.find(label) + label.size();
        const std::string found = status.substr(at, status.find('\n', at) - at);
        cores = cores.empty() || cores == found ? found : "?";
    }
    return cores;
}

}  // namespace petacq::test
