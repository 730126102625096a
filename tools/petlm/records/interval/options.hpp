// The options for an interval of detector time. CLI11 takes long to compile: only main files include this.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>

#include "tools/petlm/records/interval/in_seconds.hpp"

namespace petacq::petlm {

/// The arguments must outlive the command.
inline void add_interval_options(CLI::App& sub, std::uint64_t& from, std::uint64_t& to,
                                 IntervalInSeconds& in_seconds) {
    auto* from_ticks = sub.add_option("--from-ticks", from, "Start of the interval, inclusive");
    auto* to_ticks = sub.add_option("--to-ticks", to, "End of the interval, exclusive");
    sub.add_option("--from-s", in_seconds.from, "Start of the interval, in seconds of detector time")
        ->type_name("FLOAT")
        ->excludes(from_ticks);
    sub.add_option("--to-s", in_seconds.to, "End of the interval, in seconds of detector time")
        ->type_name("FLOAT")
        ->excludes(to_ticks);
}

}  // namespace petacq::petlm
