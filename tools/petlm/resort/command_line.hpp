// The options that petlm resort and petlm-mpi have in common. Each program includes it once: CLI11 takes long
// to compile.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>

#include "config/choices.hpp"
#include "tools/petlm/records/interval/options.hpp"
#include "tools/petlm/resort/search/options.hpp"

namespace petacq::petlm {

/// `o` must outlive the command.
inline void add_resort_options(CLI::App& sub, ResortOptions& o) {
    sub.add_option("runs", o.input.runs, "Run directories with singles.plm, or files of singles in them")
        ->required();
    add_interval_options(sub, o.input.from, o.input.to, o.input.in_seconds);
    sub.add_flag("--partial", o.input.partial,
                 "Of several runs, also search the time in which not all of them have data");
    auto* window = sub.add_option("--window-ticks", o.window_ticks, "Coincidence window, inclusive");
    sub.add_option("--window-ns", o.window_ns, "The window in ns: the whole ticks in it")
        ->type_name("FLOAT")
        ->excludes(window);
    sub.add_option("--window-mode", o.window_mode, "How windows are opened")
        ->check(CLI::IsMember(config::words<config::WindowMode>.names));
    sub.add_option("--policy", o.multiples_policy, "Multiples policy")
        ->check(CLI::IsMember(config::words<config::MultiplesPolicy>.names));
    sub.add_option("--max-multiplicity", o.max_multiplicity, "Drop larger groups");
    sub.add_option("--min-module-difference", o.min_module_difference, "Around the ring");
    sub.add_option("--max-ring-difference", o.max_ring_difference, "Along the axis");
    auto* delay = sub.add_option("--delay-ticks", o.delay_ticks, "Delay of the window for randoms");
    auto* delay_ns = sub.add_option("--delay-ns", o.delay_ns, "The delay in ns, to the nearest tick")
                         ->type_name("FLOAT")
                         ->excludes(delay);
    sub.add_flag("--no-delay", o.no_delay, "Search for no delayeds")->excludes(delay)->excludes(delay_ns);
    sub.add_option("--delayeds", o.delayeds, "How delayeds are found")
        ->check(CLI::IsMember(config::words<config::DelayedRule>.names));
    sub.add_option("--lower-kev", o.lower_keV, "Energy window; not below that of the saved singles");
    sub.add_option("--upper-kev", o.upper_keV, "Energy window; not above that of the saved singles");
    auto* no_gammas = sub.add_flag("--no-gammas", o.no_gammas, "Find pairs alone, no triples");
    const auto gammas = [&](const char* name, auto& value, const char* help) {
        return sub.add_option(name, value, help)->excludes(no_gammas);
    };
    gammas("--gamma-lower-kev", o.gamma_lower_keV,
           "Energy window of gammas; inside those of the saved singles");
    gammas("--gamma-upper-kev", o.gamma_upper_keV,
           "Energy window of gammas; inside those of the saved singles");
    auto* before = gammas("--gamma-before-ticks", o.gamma_before_ticks,
                          "How long before its pair a gamma may come, inclusive");
    gammas("--gamma-before-ns", o.gamma_before_ns, "The same in ns: the whole ticks in it")
        ->type_name("FLOAT")
        ->excludes(before);
    auto* after = gammas("--gamma-after-ticks", o.gamma_after_ticks,
                         "How long after its pair a gamma may come, inclusive");
    gammas("--gamma-after-ns", o.gamma_after_ns, "The same in ns: the whole ticks in it")
        ->type_name("FLOAT")
        ->excludes(after);
    gammas("--gamma-policy", o.gamma_policy, "Which gammas of a pair are kept")
        ->check(CLI::IsMember(config::words<config::GammaPolicy>.names));
    auto* gamma_delay =
        gammas("--gamma-delay-ticks", o.gamma_delay_ticks, "Delay of gammas for triples by chance");
    auto* gamma_delay_ns =
        gammas("--gamma-delay-ns", o.gamma_delay_ns, "The delay in ns, to the nearest tick")
            ->type_name("FLOAT")
            ->excludes(gamma_delay);
    sub.add_flag("--no-gamma-delay", o.no_gamma_delay, "Search for no delayed gammas")
        ->excludes(gamma_delay)
        ->excludes(gamma_delay_ns);
    sub.add_option("--backend", o.backend, "What computes")
        ->check(CLI::IsMember(config::words<config::Backend>.names))
        ->capture_default_str();
    sub.add_option("--gpus", o.gpus, "GPUs to use; default: all")->check(CLI::Range(1U, 64U));
    sub.add_option("--shard-singles", o.shard_singles, "Singles that a worker searches at once, about")
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 32U));
}

}  // namespace petacq::petlm
