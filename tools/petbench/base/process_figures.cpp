#include "tools/petbench/base/process_figures.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>

namespace petacq::bench {

namespace fs = std::filesystem;

namespace {

fs::path folder_of(pid_t process) {
    return fs::path("/proc") / std::to_string(process);
}

std::string line_of(const fs::path& file) {
    std::ifstream in(file);
    std::string line;
    std::getline(in, line);
    return line;
}

/// From schedstat, which counts nanoseconds; from stat, which counts clock ticks, where the kernel has none.
double cpu_seconds_of(const fs::path& task) {
    double ns = 0;
    if (std::istringstream(line_of(task / "schedstat")) >> ns && ns > 0) return ns * 1e-9;
    const std::string line = line_of(task / "stat");
    const std::size_t name_end = line.rfind(')');
    if (name_end == std::string::npos) return 0;
    std::istringstream fields(line.substr(name_end + 1));
    std::string skipped;
    for (int i = 0; i < 11; ++i)
        fields >> skipped;
    double user = 0;
    double system = 0;
    fields >> user >> system;
    return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

std::vector<ThreadTime> thread_times(pid_t process) {
    std::vector<ThreadTime> threads;
    for (const auto& task : fs::directory_iterator(folder_of(process) / "task")) {
        threads.push_back({static_cast<pid_t>(std::stol(task.path().filename().string())),
                           line_of(task.path() / "comm"), cpu_seconds_of(task.path())});
    }
    std::sort(threads.begin(), threads.end(),
              [](const ThreadTime& a, const ThreadTime& b) { return a.id < b.id; });
    return threads;
}

std::vector<ThreadGroup> thread_groups(const std::vector<ThreadTime>& before,
                                       const std::vector<ThreadTime>& after, double seconds) {
    std::map<std::string, std::vector<double>> by_name;
    for (const ThreadTime& thread : after) {
        const auto earlier = std::find_if(before.begin(), before.end(),
                                          [&](const ThreadTime& other) { return other.id == thread.id; });
        const double used = thread.seconds - (earlier == before.end() ? 0 : earlier->seconds);
        by_name[thread.name].push_back(used / seconds);
    }
    std::vector<ThreadGroup> groups;
    for (auto& [name, shares] : by_name) {
        std::sort(shares.begin(), shares.end(), std::greater<>());
        if (shares.front() >= 1e-3) groups.push_back({name, std::move(shares)});
    }
    std::stable_sort(groups.begin(), groups.end(), [](const ThreadGroup& a, const ThreadGroup& b) {
        return a.shares.front() > b.shares.front();
    });
    return groups;
}

std::uint64_t peak_memory_bytes(pid_t process) {
    std::ifstream in(folder_of(process) / "status");
    for (std::string key; in >> key;) {
        std::uint64_t kib = 0;
        if (key == "VmHWM:" && in >> kib) return kib << 10;
    }
    throw std::runtime_error("the memory of process " + std::to_string(process) + " is not known");
}

}  // namespace petacq::bench
