#include "tools/petsim/simulation/base/options_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "config/scanner/arrangement.hpp"
#include "config/scanner/crystal_material.hpp"
#include "config/scanner/existing_modules.hpp"

namespace petacq::sim {

// The keys are the names of the members.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Physics, efficiency, scatter, positron_range_mm, noncollinearity_deg,
                                   energy_resolution, time_resolution_ps, dead_time_ticks, paralysable,
                                   block_pile_up_ns, intrinsic_hz, dark_hz, dark_mean_keV, temperature_c,
                                   clock_drift_ps_per_c, gain_drift_percent_per_c)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Wire, sources, payload, flush_us, heartbeat_ms, skew_us, end_of_stream,
                                   head_marker, tail_marker, tag_marker)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Cycle, period_s, spread)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Bed, step_mm, interval_s)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BoardReset, source, at_s)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Silence, source, from_s, to_s)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SilentUnit, bdm, du, from_s, to_s)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GainStep, bdm, at_s, percent)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TemperatureStep, bdm, at_s, degrees)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NoisyCrystal, crystal, at_s, hz)

void refuse(const std::string& what, const std::string& found, const std::string& expected) {
    throw std::invalid_argument(what + " is " + found + "; expected " + expected);
}

std::string text(double v) {
    return nlohmann::json(v).dump();
}

void within(const char* what, double v, double low, double high) {
    if (!(v >= low && v <= high)) refuse(what, text(v), text(low) + " to " + text(high));
}

Crystals Crystals::of(const config::Scanner& scanner) const {
    if (!scanner.is_ring()) return *this;  // its layers have their own
    const config::CrystalMaterial material = config::crystal_material(scanner.dimensions);
    Crystals out = *this;
    out.attenuation_per_cm = attenuation_per_cm.value_or(material.attenuation_per_cm);
    out.photo_share = photo_share.value_or(material.photo_share);
    return out;
}

namespace {

constexpr std::array<const char*, field_count> field_names{"marker", "bdm",   "du",      "x",     "time",
                                                           "energy", "magic", "version", "length"};

void check_crystals(const Crystals& c, const config::Scanner& scanner) {
    if (c.attenuation_per_cm) within("--crystal-attenuation-per-cm", *c.attenuation_per_cm, 0.001, 1000);
    if (c.photo_share) within("--photo-share", *c.photo_share, 0, 1);
    if (c.model != CrystalModel::surface && scanner.is_ring() &&
        !(scanner.dimensions.crystal_length_mm > 0)) {
        refuse("the length of the crystals", text(scanner.dimensions.crystal_length_mm) + " mm",
               "more than 0 mm with --crystals depth or scatter");
    }
    if (c.cascade && c.model == CrystalModel::surface)
        refuse("--crystals", "surface", "depth or scatter with --intrinsic-cascade");
}

void check_lutetium(double intrinsic_hz, const config::Scanner& scanner) {
    if (intrinsic_hz == 0 || scanner.is_ring()) return;
    for (const config::ModuleType& type : scanner.arrangement->types()) {
        for (const config::CrystalLayer& layer : type.layers)
            if (config::contains_lutetium(layer.material)) return;
    }
    refuse("--intrinsic-hz", text(intrinsic_hz), "0, since no crystal of the scanner contains lutetium");
}

void check_detector_faults(const Faults& f, const config::Geometry& g) {
    const auto below = [](const char* what, std::uint32_t found, std::uint32_t count) {
        if (found >= count) refuse(what, std::to_string(found), "less than " + std::to_string(count));
    };
    const auto bdm = [&](const char* what, std::uint32_t found) {
        below(what, found, g.bdm_count);
        if (!g.module_exists(found)) refuse(what, std::to_string(found), "a BDM that has units");
    };
    for (const auto& s : f.silent_units) {
        bdm("the BDM of --silent-unit", s.bdm);
        below("the DU of --silent-unit", s.du, g.du_count);
        if (g.crystals_of_unit(s.bdm * g.du_count + s.du) == 0) {
            refuse("--silent-unit", std::to_string(s.bdm) + "." + std::to_string(s.du),
                   "a DU that the scanner has");
        }
        within("the start of --silent-unit", s.from_s, 0, 1e9);
        if (!(s.to_s > s.from_s)) refuse("the end of --silent-unit", text(s.to_s), "later than its start");
    }
    for (const auto& s : f.gain_steps) {
        bdm("the BDM of --gain-step", s.bdm);
        within("the time of --gain-step", s.at_s, 0, 1e9);
        within("the percentage of --gain-step", s.percent, -100, 1000);
    }
    for (const auto& s : f.temperature_steps) {
        bdm("the BDM of --temperature-step", s.bdm);
        within("the time of --temperature-step", s.at_s, 0, 1e9);
        within("the degrees of --temperature-step", s.degrees, -100, 100);
    }
    for (const auto& n : f.noisy_crystals) {
        below("the crystal of --noisy-crystal", n.crystal, g.crystal_count());
        within("the time of --noisy-crystal", n.at_s, 0, 1e9);
        within("the rate of --noisy-crystal (Hz)", n.hz, 0, 1e8);
    }
}

void check_faults(const Options& options, const config::Scanner& scanner) {
    const Faults& f = options.faults;
    within("--loss", f.loss, 0, 1);
    within("--duplicate", f.duplicate, 0, 1);
    within("--reorder", f.reorder, 0, 1);
    within("--reorder-span", f.reorder_span, 1, 10000);
    double sum = 0;
    for (std::size_t i = 0; i < field_count; ++i) {
        within("--corrupt", f.corrupt[i], 0, 1);
        sum += f.corrupt[i];
        if (f.corrupt[i] > 0 && options.wire.framing == net::Framing::bare &&
            (static_cast<Field>(i) == Field::magic || static_cast<Field>(i) == Field::version)) {
            refuse("--corrupt", field_names[i], "a field that bare framing has");
        }
    }
    if (sum > 1) refuse("the sum of all --corrupt", text(sum), "at most 1");
    const std::size_t sources = wire_sources(options, scanner).size();
    const auto source = [&](const char* what, std::uint16_t id) {
        if (id >= sources) {
            refuse(std::string("the source of ") + what, std::to_string(id),
                   "less than " + std::to_string(sources));
        }
    };
    for (const auto& j : f.jumps) {
        source("--clock-jump", j.source);
        within("the time of --clock-jump", j.at_s, 0, 1e9);
    }
    for (const auto& r : f.resets) {
        source("--reset", r.source);
        within("the time of --reset", r.at_s, 0, 1e9);
    }
    for (const auto& s : f.silences) {
        source("--silent", s.source);
        within("the start of --silent", s.from_s, 0, 1e9);
        if (!(s.to_s > s.from_s)) refuse("the end of --silent", text(s.to_s), "later than its start");
    }
    check_detector_faults(f, scanner.geometry);
}

nlohmann::json to_json(const Faults& f) {
    nlohmann::json j{{"loss", f.loss},
                     {"duplicate", f.duplicate},
                     {"reorder", f.reorder},
                     {"reorder_span", f.reorder_span},
                     {"corrupt", nlohmann::json::object()},
                     {"clock_jumps", nlohmann::json::array()},
                     {"resets", f.resets},
                     {"silent", f.silences},
                     {"silent_units", f.silent_units},
                     {"gain_steps", f.gain_steps},
                     {"temperature_steps", f.temperature_steps},
                     {"noisy_crystals", f.noisy_crystals}};
    for (std::size_t i = 0; i < field_count; ++i) {
        if (f.corrupt[i] > 0) j["corrupt"][field_names[i]] = f.corrupt[i];
    }
    for (const auto& e : f.jumps) {
        j["clock_jumps"].push_back({{"source", e.source}, {"at_s", e.at_s}, {"ticks", e.ticks}});
        if (e.datagrams) j["clock_jumps"].back()["datagrams"] = *e.datagrams;
    }
    return j;
}

}  // namespace

const char* name_of(Field field) {
    return field_names.at(static_cast<std::size_t>(field));
}

Field field_from_name(const std::string& name) {
    const auto* const found = std::find(field_names.begin(), field_names.end(), name);
    if (found == field_names.end()) {
        throw std::invalid_argument(fmt::format("field \"{}\" cannot be corrupted; expected {} or {}", name,
                                                fmt::join(field_names.begin(), field_names.end() - 1, ", "),
                                                field_names.back()));
    }
    return static_cast<Field>(found - field_names.begin());
}

std::vector<config::Source> wire_sources(const Options& options, const config::Scanner& scanner) {
    if (options.wire.sources == 0 && !scanner.sources.empty()) return scanner.sources;
    const std::vector<std::uint32_t> modules = config::existing_modules(scanner.geometry);
    const bool one_per_module = options.wire.sources == 0;
    const std::size_t count = one_per_module ? modules.size() : options.wire.sources;
    std::vector<config::Source> sources(count);
    for (std::size_t s = 0; s < count && options.wire.framing == net::Framing::sequenced; ++s)
        sources[s].id = static_cast<std::uint16_t>(one_per_module ? modules[s] : s);
    for (std::size_t i = 0; i < modules.size(); ++i)
        sources[i * count / modules.size()].bdms.push_back(modules[i]);
    return sources;
}

void check(const Options& options, const config::Scanner& scanner) {
    within("--start-time-s", options.start_s, 0, 1e9);
    within("--duration-s", options.duration_s, 0, 1e9);
    const double max_ticks = 0x1p62;
    if ((options.start_s + options.duration_s) * 1e12 / scanner.tick_ps > max_ticks) {
        refuse("the end of the simulation", text(options.start_s + options.duration_s) + " s",
               "at most 2^62 ticks of " + text(scanner.tick_ps) + " ps");
    }
    check_activity(options, scanner);
    const Physics& p = options.physics;
    within("--efficiency", p.efficiency, 0, 1);
    within("--scatter", p.scatter, 0, 1);
    within("--positron-range-mm", p.positron_range_mm, 0, 100);
    within("--noncollinearity-deg", p.noncollinearity_deg, 0, 10);
    within("--energy-resolution", p.energy_resolution, 0, 2);
    within("--time-resolution-ps", p.time_resolution_ps, 0, 1e6);
    within("--dead-time-ticks", static_cast<double>(p.dead_time_ticks), 0, 1e15);
    within("--intrinsic-hz", p.intrinsic_hz, 0, 1e6);
    within("--dark-hz", p.dark_hz, 0, 1e8);
    within("--dark-mean-kev", p.dark_mean_keV, 0.1, 1000);
    within("--temperature-c", p.temperature_c, -100, 100);
    within("--block-pile-up-ns", p.block_pile_up_ns, 0, 1e6);
    within("--clock-drift-ps-per-c", p.clock_drift_ps_per_c, -1e6, 1e6);
    within("--gain-drift-percent-per-c", p.gain_drift_percent_per_c, -20, 20);
    check_crystals(options.crystals, scanner);
    check_lutetium(p.intrinsic_hz, scanner);
    const Wire& w = options.wire;
    if (const std::size_t modules = config::existing_modules(scanner.geometry).size(); w.sources > modules) {
        refuse("--sources", std::to_string(w.sources), "at most one per BDM, " + std::to_string(modules));
    }
    if (w.sources == 0 && !scanner.sources.empty() &&
        scanner.sources.front().id.has_value() != (w.framing == net::Framing::sequenced)) {
        refuse("--framing", name_of(w.framing),
               "that of the sources that the scanner description lists (or --sources)");
    }
    within("--payload", w.payload, w.framing == net::Framing::bare ? 16 : 32, net::max_datagram_bytes);
    within("--flush-us", w.flush_us, 0.001, 1e9);
    within("--heartbeat-ms", w.heartbeat_ms, 0, 1e9);
    within("--skew-us", w.skew_us, 0, 1e9);
    within("the head marker", w.head_marker, 0, 15);
    within("the tail marker", w.tail_marker, 0, 15);
    within("the tag marker", w.tag_marker, 0, 15);
    check_movement(options, scanner);
    check_tags(options, wire_sources(options, scanner).size(), scanner);
    within("--threads", options.threads, 1, 1024);
    check_faults(options, scanner);
}

nlohmann::json to_json(const Options& o) {
    nlohmann::json j{{"seed", o.seed},
                     {"start_time_s", o.start_s},
                     {"duration_s", o.duration_s},
                     {"activity_scale", o.activity_scale},
                     {"sources", nlohmann::json::array()},
                     {"cycle", o.cycle},
                     {"bed", o.bed},
                     {"physics", o.physics},
                     {"tags", to_json(o.tags)},
                     {"faults", to_json(o.faults)}};
    for (const auto& a : o.activity)
        j["sources"].push_back(to_json(a));
    // Only where they have an effect.
    if (o.turning.turns_per_minute != 0) j["rotation"] = {{"turns_per_minute", o.turning.turns_per_minute}};
    if (o.turning.step_deg != 0)
        j["rotation"] = {{"step_deg", o.turning.step_deg}, {"interval_s", o.turning.interval_s}};
    if (o.object) j["object"] = to_json(*o.object);
    if (o.crystals.model != CrystalModel::surface) {
        nlohmann::json& crystals = j["crystals"];
        crystals = {{"model", config::name_of(o.crystals.model)}, {"cascade", o.crystals.cascade}};
        if (o.crystals.attenuation_per_cm) crystals["attenuation_per_cm"] = *o.crystals.attenuation_per_cm;
        if (o.crystals.photo_share) crystals["photo_share"] = *o.crystals.photo_share;
    }
    j["wire"] = o.wire;
    j["wire"]["framing"] = name_of(o.wire.framing);
    return j;
}

}  // namespace petacq::sim
