#include "daemon/status/document_detector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <span>

#include "config/energy_bins.hpp"
#include "daemon/detector/module_sums.hpp"
#include "daemon/status/lasting_reasons.hpp"
#include "daemon/status/status.hpp"
#include "net/endpoint.hpp"

namespace petacq::daemon {

namespace {

using nlohmann::json;

/// Why the source is degraded: a reason of health, or its own loss. Empty if it is well.
std::string trouble(const Observation& seen, std::uint32_t index, const SourceStatus& now,
                    const SourceStatus& before) {
    for (const char* code : {"sequence_meaningless", "source_clock", "source_silent", "source_lagging",
                             "source_leading", "source_jumping", "source_stepped_back", "source_restarted"}) {
        if (const HealthReason* reason = seen.health->find(code, index)) return reason->problem.message();
    }
    const std::uint64_t received = now.datagrams - before.datagrams;
    const std::uint64_t lost_now = now.lost.value_or(0);
    const std::uint64_t lost_before = before.lost.value_or(0);
    if (lost_now <= lost_before) return "";
    const auto lost = static_cast<double>(lost_now - lost_before);
    const double fraction = lost / (lost + static_cast<double>(received));
    const double margin = seen.health->find("datagrams_lost") != nullptr ? 0.5 : 1;
    if (fraction <= margin * seen.configuration().health.max_loss_fraction) return "";
    return fmt::format("{:.3g} % of its datagrams are lost", 100 * fraction);
}

std::int64_t steady_ns(std::chrono::steady_clock::time_point time) {
    return time.time_since_epoch() / std::chrono::nanoseconds(1);
}

double seconds_since(std::int64_t then_ns, std::int64_t now_ns) {
    return std::max(0.0, static_cast<double>(now_ns - then_ns) * 1e-9);
}

/// A source keeps its position in the list, but another may have taken it.
bool same_source(const SourceStatus& a, const SourceStatus& b, bool bare) {
    return bare ? a.address == b.address && a.port == b.port : a.id == b.id;
}

/// Counts between the latest two histograms.
struct RecentHistograms {
    gpu::SinglesHistograms counted;
    double seconds = 0;  ///< 0: counted since the daemon started
};

RecentHistograms recent_histograms(const AcquisitionSnapshot& now) {
    RecentHistograms recent{*now.histograms};
    if (now.histograms_before) {
        recent.counted -= *now.histograms_before;
        recent.seconds =
            std::chrono::duration<double>(now.histograms_taken - now.histograms_before_taken).count();
    }
    return recent;
}

/// Counts per second of the units of modules [first, last).
std::vector<double> unit_rates(const RecentHistograms& recent, const config::Geometry& g, std::uint32_t first,
                               std::uint32_t last) {
    std::vector<double> rates;
    for (std::size_t unit = std::size_t{first} * g.du_count; unit < std::size_t{last} * g.du_count; ++unit)
        rates.push_back(static_cast<double>(recent.counted.temperature_count[unit]) / recent.seconds);
    return rates;
}

bool in_trouble(const LastingReasons& health, std::uint32_t bdm) {
    constexpr std::array codes{"temperature_high",     "detector_time_step",     "detector_gain_step",
                               "detector_few_prompts", "detector_time_off",      "detector_gain_off",
                               "detector_prompts_off", "detector_unit_silent",   "detector_noisy",
                               "boards_out_of_step",   "boards_without_partners"};
    return std::any_of(codes.begin(), codes.end(),
                       [&](const char* code) { return health.find(code, bdm) != nullptr; });
}

json or_null(std::optional<double> number, double factor = 1) {
    return number ? json(*number * factor) : json();
}

/// The sums of the modules in the latest second of detector time; empty: there is none yet.
ModuleTable latest_modules(const Observation& seen) {
    const auto& second = seen.now->acquisition->second;
    if (!second || second->length_s <= 0) return {};
    const config::Geometry& g = seen.scanner().geometry;
    return detector_sums(*second, g, crystals_by_unit(g)).modules;
}

/// How often the singles of the latest second of detector time pass in a second of the interval; nothing: it
/// cannot be known.
std::optional<double> pace_of(const Observation& seen, const RecentHistograms& recent) {
    const auto& second = seen.now->acquisition->second;
    if (!second || second->length_s <= 0 || recent.seconds <= 0) return {};
    const auto& crystals = recent.counted.per_crystal;
    const auto singles = std::accumulate(crystals.begin(), crystals.end(), std::uint64_t{0});
    if (singles == 0) return 0;
    if (second->sums.counts.decided == 0) return {};
    return static_cast<double>(singles) / static_cast<double>(second->sums.counts.decided) / recent.seconds;
}

/// The share of the latest second of detector time for which the boards report dead time; null if they do
/// not.
json reported_dead_time(const Observation& seen, std::uint32_t bdm) {
    const auto& second = seen.now->acquisition->second;
    if (!second || second->range.ticks() == 0 || bdm >= second->dead_time.size()) return {};
    const double part = second->dead_time[bdm] / static_cast<double>(second->range.ticks());
    return number_if(!std::isnan(part), part);
}

}  // namespace

std::string ranges_of(const net::Modules& bdms) {
    std::string text;
    const std::uint32_t end = bdms.end();
    for (std::uint32_t first = 0; first < end; ++first) {
        if (!bdms[first]) continue;
        std::uint32_t last = first;
        while (bdms[last + 1])
            ++last;
        if (!text.empty()) text += ',';
        text += std::to_string(first);
        if (last > first) text += '-' + std::to_string(last);
        first = last;
    }
    return text;
}

json make_sources(const Observation& seen) {
    json sources = json::array();
    const bool bare = seen.configuration().receive.framing == config::Framing::bare;
    const double tick_s = seen.scanner().tick_ps * 1e-12;
    const AcquisitionSnapshot& now = *seen.now->acquisition;
    const AcquisitionSnapshot& before = *seen.before->acquisition;
    const double seconds = std::chrono::duration<double>(now.taken - before.taken).count();
    const std::int64_t now_ns = steady_ns(seen.now->taken);
    for (std::uint32_t i = 0; i < now.sources.sources.size(); ++i) {
        const SourceStatus& s = now.sources.sources[i];
        // One that is not in the earlier list had counted nothing.
        SourceStatus b;
        if (i < before.sources.sources.size() && same_source(s, before.sources.sources[i], bare))
            b = before.sources.sources[i];
        const std::string reason = trouble(seen, i, s, b);
        json one = {{"id", bare ? json() : json(s.id)},
                    {"address", s.address == 0 ? "" : net::to_text({s.address, s.port})},
                    {"state", name_of(s.state)},
                    {"health", reason.empty() ? "ok" : "degraded"},
                    {"reason", reason.empty() ? json() : json(reason)},
                    {"datagrams", s.datagrams},
                    {"datagrams_per_s", rate(s.datagrams, b.datagrams, seconds)},
                    {"frames", s.frames},
                    {"frames_per_s", rate(s.frames, b.frames, seconds)},
                    {"duplicate", s.sequence.duplicate},
                    {"repeated", s.sequence.repeated},
                    {"reordered", s.sequence.reordered},
                    {"restarted", s.sequence.restarted},
                    {"stray", s.sequence.stray},
                    {"clock_jumps", s.clock_jumps},
                    {"steps_back", s.steps_back},
                    {"progress_s", static_cast<double>(s.progress) * tick_s},
                    {"bdms", ranges_of(s.bdms)}};
        one["sequence_fault"] = s.numbers ? json(name_of(s.numbers.fault)) : json();
        one["lost"] = s.lost ? json(*s.lost) : json();
        const double lost = rate(s.lost.value_or(0), b.lost.value_or(0), seconds);
        const double sent = lost + rate(s.datagrams, b.datagrams, seconds);
        one["lost_per_s"] = number_if(s.lost.has_value(), lost);
        one["lost_fraction"] = number_if(s.lost.has_value() && sent > 0, lost / sent);
        one["skew_us"] = s.skew ? json(static_cast<double>(*s.skew) * tick_s * 1e6) : json();
        one["first_seen_s"] = s.first_seen ? json(seconds_since(*s.first_seen, now_ns)) : json();
        one["last_seen_s"] = s.last_seen ? json(seconds_since(*s.last_seen, now_ns)) : json();
        sources.push_back(std::move(one));
    }
    // Sources without an id stay in the order in which they appeared.
    std::stable_sort(sources.begin(), sources.end(),
                     [](const json& a, const json& b) { return a["id"] < b["id"]; });
    return sources;
}

json make_unknown_sources(const Observation& seen) {
    json unknown = json::array();
    const std::int64_t now_ns = steady_ns(seen.now->taken);
    for (const net::UnknownSender& s : seen.now->unknown_senders) {
        unknown.push_back({{"id", s.id ? json(*s.id) : json()},
                           {"address", net::to_text(s.sender)},
                           {"datagrams", s.datagrams},
                           {"frames", s.frames},
                           {"bdms", ranges_of(s.bdms)},
                           {"first_seen_s", seconds_since(s.first_ns, now_ns)},
                           {"last_seen_s", seconds_since(s.latest_ns, now_ns)}});
    }
    return unknown;
}

/// Counts only the singles between the latest two histograms, so that a change shows at once.
json make_modules(const Observation& seen) {
    json modules = json::array();
    if (!seen.now->acquisition->histograms) return modules;
    const RecentHistograms recent = recent_histograms(*seen.now->acquisition);
    const config::Geometry& g = seen.scanner().geometry;
    const ModuleTable latest = latest_modules(seen);
    const std::optional<double> pace = pace_of(seen, recent);
    const auto& dead_time_ns = seen.configuration().estimates.dead_time_ns;
    constexpr std::uint32_t bins = config::energy_bins;
    const double bin_keV = recent.counted.energy_bin_keV;
    for (std::uint32_t bdm = 0; bdm < g.bdm_count; ++bdm) {
        if (!g.module_exists(bdm)) continue;
        const auto spectrum = std::span(recent.counted.energy).subspan(std::size_t{bdm} * bins, bins);
        std::uint64_t singles = 0;
        double sum = 0;
        for (std::uint32_t bin = 0; bin < bins; ++bin) {
            singles += spectrum[bin];
            sum += static_cast<double>(spectrum[bin]) * (bin + 0.5) * bin_keV;
        }
        // The last bin holds all higher energies, so it is no peak.
        const auto peak = std::max_element(spectrum.begin(), spectrum.end() - 1) - spectrum.begin();
        const auto temperature = module_temperature(*seen.now->acquisition, g, bdm);
        json one = {{"bdm", bdm}, {"health", in_trouble(*seen.health, bdm) ? "degraded" : "ok"}};
        one["singles_per_s"] = number_if(recent.seconds > 0, static_cast<double>(singles) / recent.seconds);
        one["mean_keV"] = number_if(singles > 0, sum / static_cast<double>(singles));
        one["peak_keV"] = number_if(singles > 0, (static_cast<double>(peak) + 0.5) * bin_keV);
        one["temperature_C"] = number_if(temperature.has_value(), temperature.value_or(0));
        const ModuleSums prompts = latest.empty() ? ModuleSums{} : latest[bdm];
        one["mean_dt_ns"] = or_null(prompts.mean_dt(), seen.scanner().tick_ps * 1e-3);
        one["photopeak_keV"] = or_null(prompts.photopeak_keV());
        one["prompts_per_single"] = or_null(prompts.prompts_per_single());
        one["expected_randoms_per_s"] = or_null(pace, prompts.ends - prompts.trues);
        one["dead_time_fraction"] = reported_dead_time(seen, bdm);
        if (one["dead_time_fraction"].is_null() && dead_time_ns && recent.seconds > 0) {
            one["dead_time_fraction"] =
                dead_time_fraction(unit_rates(recent, g, bdm, bdm + 1), *dead_time_ns * 1e-9);
        }
        modules.push_back(std::move(one));
    }
    return modules;
}

/// null: nothing is known yet, or no coincidences are looked for.
json make_synchrony(const Observation& seen) {
    const auto& report = seen.now->acquisition->synchrony;
    if (!report) return {};
    const double tick_ns = seen.scanner().tick_ps * 1e-3;
    json modules = json::array();
    for (std::uint32_t bdm = 0; bdm < report->modules.size(); ++bdm) {
        if (!seen.scanner().geometry.module_exists(bdm)) continue;
        const ModuleSynchrony& module = report->modules[bdm];
        const bool known = module.state == ModuleSynchrony::SynchronyState::in_step ||
                           module.state == ModuleSynchrony::SynchronyState::out_of_step;
        modules.push_back({{"bdm", bdm},
                           {"source", module.source ? json(*module.source) : json()},
                           {"state", name_of(module.state)},
                           {"offset_ns", number_if(known, module.late_ticks * tick_ns)},
                           {"error_ns", number_if(known, module.error_ticks * tick_ns)},
                           {"add_ticks", known ? json(-std::llround(module.late_ticks)) : json()},
                           {"pairs", std::llround(module.pairs)}});
    }
    return {{"singles", report->singles},
            {"limit_ns", report->min_ticks * tick_ns},
            {"reach_ns", report->reach_ticks * tick_ns},
            {"modules", std::move(modules)}};
}

std::optional<double> module_temperature(const AcquisitionSnapshot& now, const config::Geometry& g,
                                         std::uint32_t bdm) {
    if (!now.histograms) return {};
    std::int64_t sum = 0;
    std::uint64_t count = 0;
    for (std::size_t unit = std::size_t{bdm} * g.du_count; unit < (bdm + std::size_t{1}) * g.du_count;
         ++unit) {
        sum += now.histograms->temperature_sum_16ths[unit];
        count += now.histograms->temperature_count[unit];
        if (!now.histograms_before) continue;
        sum -= now.histograms_before->temperature_sum_16ths[unit];
        count -= now.histograms_before->temperature_count[unit];
    }
    if (count == 0) return {};
    return static_cast<double>(sum) / 16 / static_cast<double>(count);
}

json make_dead_time(const Observation& seen) {
    const auto& dead_time_ns = seen.configuration().estimates.dead_time_ns;
    if (!dead_time_ns) return {};
    json dead_time = {{"model", "non-paralysable"}, {"dead_time_ns", *dead_time_ns}, {"fraction", nullptr}};
    if (!seen.now->acquisition->histograms) return dead_time;
    const RecentHistograms recent = recent_histograms(*seen.now->acquisition);
    if (recent.seconds > 0) {
        const config::Geometry& g = seen.scanner().geometry;
        dead_time["fraction"] =
            dead_time_fraction(unit_rates(recent, g, 0, g.bdm_count), *dead_time_ns * 1e-9);
    }
    return dead_time;
}

double dead_time_fraction(const std::vector<double>& rates, double dead_time_s) {
    double measured = 0;
    double expected = 0;
    for (const double r : rates) {
        const double alive = 1 - r * dead_time_s;
        if (alive <= 0) return 1;
        measured += r;
        expected += r / alive;
    }
    return expected > 0 ? 1 - measured / expected : 0;
}

}  // namespace petacq::daemon
