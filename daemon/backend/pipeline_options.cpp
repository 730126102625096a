#include "daemon/backend/pipeline_options.hpp"

#include <thread>

#include "net/wire.hpp"

namespace petacq::daemon {

namespace {

std::uint32_t default_threads(const config::Configuration& configuration, std::size_t producers) {
    const std::size_t writers = std::size_t{configuration.listmode.files} * configuration.record_kinds();
    const std::size_t others = producers + 1 + writers;
    const std::size_t cores = std::thread::hardware_concurrency();
    return static_cast<std::uint32_t>(cores > others ? cores - others : 1);
}

}  // namespace

gpu::CoincidenceRules coincidence_rules(const config::Configuration& configuration) {
    gpu::CoincidenceRules rules = coincidence_rules(configuration.coincidence);
    rules.search = configuration.listmode.write_coincidences;
    if (configuration.gammas) rules.gammas = gamma_rules(*configuration.gammas);
    return rules;
}

gpu::CoincidenceRules coincidence_rules(const config::Coincidence& c) {
    gpu::CoincidenceRules rules;
    rules.window = c.window_ticks;
    rules.mode = c.window_mode;
    rules.policy = c.multiples_policy;
    rules.max_multiplicity = c.max_multiplicity;
    rules.min_module_difference = c.min_module_difference.value_or(0);
    rules.max_ring_difference = c.max_ring_difference.value_or(UINT32_MAX);
    rules.delay = c.delay_ticks;
    rules.delayeds = c.delayeds;
    return rules;
}

gpu::GammaRules gamma_rules(const config::Gammas& g) {
    return {static_cast<float>(g.lower_keV),
            static_cast<float>(g.upper_keV),
            g.before_ticks,
            g.after_ticks,
            g.policy,
            g.delay_ticks};
}

gpu::PipelineOptions pipeline_options(const config::Configuration& configuration,
                                      const config::Scanner& scanner, std::size_t producers) {
    gpu::PipelineOptions o;
    o.geometry = scanner.geometry;
    o.frame_version = scanner.frame_version;
    o.head_marker = configuration.frame.head_marker;
    o.tail_marker = configuration.frame.tail_marker;
    o.tag_marker = configuration.frame.tag_marker;
    o.energy = {configuration.energy.filter, static_cast<float>(configuration.energy.lower_keV),
                static_cast<float>(configuration.energy.upper_keV)};
    o.rules = coincidence_rules(configuration);
    for (const config::Source& source : config::listed_sources(configuration, scanner)) {
        if (source.bdms.empty()) continue;  // listed by the configuration, which names no modules
        net::Modules& modules = o.sources.emplace_back();
        for (const std::uint32_t bdm : source.bdms)
            modules.set(bdm);
    }
    o.emit_singles = configuration.listmode.write_singles;
    o.spectra = configuration.spectra.enabled;
    o.threads = configuration.pipeline.threads > 0 ? configuration.pipeline.threads
                                                   : default_threads(configuration, producers);
    o.sort_engine = configuration.pipeline.sort;
    o.devices = configuration.pipeline.devices.value_or(std::vector<std::uint32_t>());
    // A datagram goes into one slice as a whole, whatever the configured length of a slice.
    o.max_slice_frames = configuration.pipeline.slice_frames + net::max_datagram_frames;
    o.max_pending_singles =
        configuration.pipeline.max_pending_singles + gpu::pending_slack * o.max_slice_frames;
    return o;
}

}  // namespace petacq::daemon
