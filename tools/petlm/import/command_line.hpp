// The options of petlm import that declare facts which the file does not hold.
#pragma once

#include <CLI/CLI.hpp>

#include "config/choices.hpp"
#include "tools/petlm/import/import.hpp"

namespace petacq::petlm {

inline void add_declared(CLI::App& sub, Declared& o) {
    auto* window =
        sub.add_option("--window-ticks", o.window_ticks,
                       "Coincidence window that has made the pairs, inclusive; this and what follows "
                       "declares what the file does not tell");
    sub.add_option("--window-ns", o.window_ns, "The window in ns: the fewest ticks that hold it")
        ->type_name("FLOAT")
        ->excludes(window);
    sub.add_option("--window-mode", o.window_mode, "How windows were opened")
        ->check(CLI::IsMember(config::words<config::WindowMode>.names));
    sub.add_option("--policy", o.multiples_policy, "Multiples policy that was followed")
        ->check(CLI::IsMember(config::words<config::MultiplesPolicy>.names));
    sub.add_option("--min-module-difference", o.min_module_difference,
                   "Of the modules of a pair, around the ring");
    sub.add_option("--max-ring-difference", o.max_ring_difference, "Of the rings of a pair, along the axis");
    auto* delay = sub.add_option("--delay-ticks", o.delay_ticks, "Delay of the delayed pairs");
    sub.add_option("--delay-ns", o.delay_ns, "The delay in ns, to the nearest tick")
        ->type_name("FLOAT")
        ->excludes(delay);
    sub.add_option("--lower-kev", o.lower_keV, "Energy window of the photons, inclusive");
    sub.add_option("--upper-kev", o.upper_keV, "Energy window of the photons, inclusive");
    sub.add_option("--duration-s", o.duration_s, "For how long the file measured")->type_name("FLOAT");
    sub.add_option("--start-ticks", o.start_ticks, "Tick at which it began, with --duration-s; default: 0");
    sub.add_option("--start-utc", o.start_utc, "Time of day then, such as 2026-11-20T18:45:00Z");
}

}  // namespace petacq::petlm
