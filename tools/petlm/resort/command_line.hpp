// The options that petlm resort and petlm-mpi have in common. Each program includes it once: CLI11 takes long
// to compile.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>

#include "tools/petlm/commands.hpp"

namespace petacq::petlm {

/// `o` must outlive the command.
inline void add_resort_options(CLI::App& sub, ResortOptions& o) {
    sub.add_option("runs", o.input.runs, "Run directories with singles.plm, or files of singles in them")
        ->required();
    sub.add_option("--from-ticks", o.input.from, "Start of the interval, inclusive");
    sub.add_option("--to-ticks", o.input.to, "End of the interval, exclusive");
    sub.add_flag("--partial", o.input.partial,
                 "Of several runs, also search the time in which not all of them have data");
    sub.add_option("--window-ticks", o.window_ticks, "Coincidence window, inclusive");
    sub.add_option("--window-mode", o.window_mode, "single or every");
    sub.add_option("--policy", o.multiples_policy, "Multiples policy");
    sub.add_option("--max-multiplicity", o.max_multiplicity, "Drop larger groups");
    sub.add_option("--min-module-difference", o.min_module_difference, "Around the ring");
    sub.add_option("--max-ring-difference", o.max_ring_difference, "Along the axis");
    auto* delay = sub.add_option("--delay-ticks", o.delay_ticks, "Delay of the window for randoms");
    sub.add_flag("--no-delay", o.no_delay, "Search for no delayeds")->excludes(delay);
    sub.add_option("--delayeds", o.delayeds, "shifted_group or delayed_window: how delayeds are found");
    sub.add_option("--lower-kev", o.lower_keV, "Energy window; not below that of the saved singles");
    sub.add_option("--upper-kev", o.upper_keV, "Energy window; not above that of the saved singles");
    sub.add_option("--backend", o.backend, "auto, cuda or cpu")->capture_default_str();
    sub.add_option("--gpus", o.gpus, "GPUs to use; default: all")->check(CLI::Range(1U, 64U));
    sub.add_option("--shard-singles", o.shard_singles, "Singles that a worker searches at once, about")
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 32U));
}

}  // namespace petacq::petlm
