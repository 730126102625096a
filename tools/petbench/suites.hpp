// The benchmark suites. Each registers a subcommand of petbench with its options and its callback; figures
// that are compared are measured in one run and printed with their ratio.
#pragma once

#include <sys/resource.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <vector>

namespace petacq::bench {

void add_receive_suite(CLI::App& app);
void add_pipeline_suite(CLI::App& app);
void add_writer_suite(CLI::App& app);
void add_export_suite(CLI::App& app);
void add_image_suite(CLI::App& app);
void add_replay_suite(CLI::App& app);
void add_status_load_suite(CLI::App& app);
void add_sort_suite(CLI::App& app);

/// Seconds that `work` takes.
template <class Work>
double seconds_of(Work&& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Seconds of processor time that the program has used so far, all threads and the kernel's work for it.
/// Other programs on the machine change it little.
inline double cpu_seconds() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// Middle value; of an even number, the lower of the two.
inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values.at((values.size() - 1) / 2);
}

}  // namespace petacq::bench
