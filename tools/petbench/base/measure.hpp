// Times, medians, and the table that compares candidates.
#pragma once

#include <fmt/format.h>
#include <sys/resource.h>
#include <ctime>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "config/base/seconds_since.hpp"
#include "config/median.hpp"

namespace petacq::bench {

using config::median;

/// Seconds that `work` takes.
template <class Work>
double seconds_of(Work&& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return config::seconds_since(start);
}

/// Seconds of processor time used so far by this program and the children it waited for: all threads, and the
/// kernel's work for them. Other programs on the machine hardly change it.
inline double cpu_seconds() {
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    double sum = 0;
    for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
        rusage used{};
        getrusage(who, &used);
        sum += seconds(used.ru_utime) + seconds(used.ru_stime);
    }
    return sum;
}

/// Processor time of the calling thread.
inline double thread_cpu_seconds() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// The median of a[i] / b[i], for figures that were measured in pairs.
inline double median_ratio(const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < a.size(); ++i)
        ratios.push_back(a[i] / b[i]);
    return median(ratios);
}

/// One of several ways to do the same work, with the time that it took in each round.
struct Candidate {
    std::string name;
    std::vector<double> seconds = {};
    std::vector<double> cpu = {};

    template <class Work>
    void measure(Work&& work) {
        const double cpu_before = cpu_seconds();
        seconds.push_back(seconds_of(work));
        cpu.push_back(cpu_seconds() - cpu_before);
    }
};

/// A table that is printed row by row: names on the left, and cells that end where their column ends.
class TextTable {
  public:
    TextTable(std::size_t name_width, std::vector<std::size_t> widths)
        : name_width_(name_width), widths_(std::move(widths)) {}
    /// At most a cell for each column; `rest` follows them.
    void row(const std::string& name, const std::vector<std::string>& cells,
             const std::string& rest = "") const {
        std::string line = fmt::format("{:{}}", name, name_width_);
        for (std::size_t i = 0; i < cells.size(); ++i)
            line += fmt::format(" {:>{}}", cells[i], widths_.at(i));
        std::puts((line + rest).c_str());
    }

  private:
    std::size_t name_width_;
    std::vector<std::size_t> widths_;
};

/// Prints a line for each candidate: the median rate at which it did `amount` units of work in a round, its
/// ratio to the rate of the first candidate, and the units per CPU second.
inline void print_comparison(const std::vector<Candidate>& candidates, double amount, const char* unit) {
    const double baseline = median(candidates.front().seconds);
    const TextTable table(30, {10, 10});
    for (const Candidate& c : candidates) {
        const double seconds = median(c.seconds);
        table.row(c.name, {fmt::format("{:.2f} s", seconds), fmt::format("{:.2f}", amount / seconds)},
                  fmt::format(" {}/s   {:.2f} of {}   {:8.2f} {} per CPU second", unit, baseline / seconds,
                              candidates.front().name, amount / median(c.cpu), unit));
    }
}

}  // namespace petacq::bench
