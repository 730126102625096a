// The options of petlm import that declare facts which the file does not hold.
#pragma once

#include <CLI/CLI.hpp>

#include "config/choices.hpp"
#include "tools/petlm/import/declared/options.hpp"

namespace petacq::petlm {

/// The same time in ticks or, to be rounded, in ns.
template <class Ticks>
void add_declared_time(CLI::App& sub, const std::string& name, std::optional<Ticks>& ticks,
                       std::optional<std::string>& ns, const std::string& help, const std::string& ns_help) {
    auto* const in_ticks = sub.add_option(name + "-ticks", ticks, help);
    sub.add_option(name + "-ns", ns, ns_help)->type_name("FLOAT")->excludes(in_ticks);
}

inline void add_declared_gammas(CLI::App& sub, DeclaredGammas& o) {
    const std::string fewest = "The same in ns: the fewest ticks that hold it";
    sub.add_option("--gamma-lower-kev", o.lower_keV, "Energy window of the gammas of triples, inclusive");
    sub.add_option("--gamma-upper-kev", o.upper_keV, "Energy window of the gammas of triples, inclusive");
    add_declared_time(sub, "--gamma-before", o.before_ticks, o.before_ns,
                      "How long before its pair a gamma could come, inclusive", fewest);
    add_declared_time(sub, "--gamma-after", o.after_ticks, o.after_ns,
                      "How long after its pair a gamma could come, inclusive", fewest);
    sub.add_option("--gamma-policy", o.policy, "Which gammas of a pair were kept")
        ->check(CLI::IsMember(config::words<config::GammaPolicy>.names));
    add_declared_time(sub, "--gamma-delay", o.delay_ticks, o.delay_ns, "Delay of the delayed gammas",
                      "The delay in ns, to the nearest tick");
}

inline void add_declared_activity(CLI::App& sub, Declared& o) {
    sub.add_option("--activity-mbq", o.activity_MBq, "Its activity at the time of the assay");
    sub.add_option("--assay", o.assay_utc,
                   "When the activity was measured: a time such as 2026-11-20T18:45:00Z");
}

/// But for the options of the nuclide, which other commands have, too.
inline void add_declared(CLI::App& sub, Declared& o) {
    add_declared_time(sub, "--window", o.window_ticks, o.window_ns,
                      "Coincidence window that has made the pairs, inclusive; this and what follows "
                      "declares what the file does not tell",
                      "The window in ns: the fewest ticks that hold it");
    sub.add_option("--window-mode", o.window_mode, "How windows were opened")
        ->check(CLI::IsMember(config::words<config::WindowMode>.names));
    sub.add_option("--policy", o.multiples_policy, "Multiples policy that was followed")
        ->check(CLI::IsMember(config::words<config::MultiplesPolicy>.names));
    sub.add_option("--max-multiplicity", o.max_multiplicity, "Larger groups were dropped");
    sub.add_option("--min-module-difference", o.min_module_difference,
                   "Of the modules of a pair, around the ring");
    sub.add_option("--max-ring-difference", o.max_ring_difference, "Of the rings of a pair, along the axis");
    add_declared_time(sub, "--delay", o.delay_ticks, o.delay_ns, "Delay of the delayed pairs",
                      "The delay in ns, to the nearest tick");
    sub.add_option("--delayed-rule", o.delayed_rule, "How delayed pairs were found")
        ->check(CLI::IsMember(config::words<config::DelayedRule>.names));
    sub.add_option("--lower-kev", o.lower_keV, "Energy window of the photons, inclusive");
    sub.add_option("--upper-kev", o.upper_keV, "Energy window of the photons, inclusive");
    add_declared_gammas(sub, o.gammas);
    sub.add_option("--duration-s", o.duration_s, "For how long the file measured")->type_name("FLOAT");
    sub.add_option("--start-ticks", o.start_ticks, "Tick at which it began, with --duration-s; default: 0");
    sub.add_option("--start-utc", o.start_utc, "Time of day then, such as 2026-11-20T18:45:00Z");
}

}  // namespace petacq::petlm
