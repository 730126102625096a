// Work on the detector units of a scanner, on all cores.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "config/geometry.hpp"
#include "daemon/host/progress_line.hpp"

namespace petacq::petcal {

/// "module 3, unit 1"; `unit` counts bdm * du_count + du.
inline std::string unit_name(const config::Geometry& g, std::size_t unit) {
    return "module " + std::to_string(unit / g.du_count) + ", unit " + std::to_string(unit % g.du_count);
}

/// Calls `work` once for each number below `count`, on several threads, and shows the progress on a terminal.
/// Passes on what it throws.
inline void for_each_unit(const std::string& what, std::size_t count,
                          const std::function<void(std::size_t)>& work) {
    std::atomic<std::size_t> next = 0;
    daemon::ProgressLine progress(what, count, daemon::ProgressUnit::steps);
    const auto run = [&](bool shows) {
        for (std::size_t unit = next++; unit < count; unit = next++) {
            if (shows) progress.show(unit);
            work(unit);
        }
    };
    std::vector<std::future<void>> others;
    for (unsigned i = 1; i < std::thread::hardware_concurrency() && i < count; ++i)
        others.push_back(std::async(std::launch::async, run, false));
    run(true);
    for (std::future<void>& other : others)
        other.get();
}

}  // namespace petacq::petcal
