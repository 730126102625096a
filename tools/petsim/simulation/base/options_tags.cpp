// Checks and JSON of what moves and of tags.
#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tools/petsim/simulation/base/options_check.hpp"

namespace petacq::sim {

namespace {

constexpr std::array<const char*, 3> motion_shape_names{"sine", "triangle", "breath"};
constexpr std::array<const char*, 3> axis_names{"x", "y", "z"};
constexpr double max_tags = 1e7;  // of one kind

template <class Names>
std::uint8_t index_of(const Names& names, const std::string& name, const char* expected) {
    const auto* const found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) throw std::invalid_argument('"' + name + "\" is not " + expected);
    return static_cast<std::uint8_t>(found - names.begin());
}

void check_channel(const char* option, std::uint8_t channel) {
    within(option, channel, 0, 15);
}

/// `interval` is the time from one to the next.
void check_number(const char* option, double interval_s, const Options& options) {
    if (!(interval_s > 0)) refuse(option, text(interval_s) + " s", "more than 0 s");
    if (options.duration_s / interval_s > max_tags) {
        refuse(option, text(interval_s) + " s", "at least " + text(options.duration_s / max_tags) + " s");
    }
}

nlohmann::json to_json(const RegularTags& t) {
    return {{"channel", t.channel}, {"interval_s", t.interval_s}};
}

}  // namespace

MotionShape motion_shape_from_name(const std::string& name) {
    return static_cast<MotionShape>(index_of(motion_shape_names, name, "sine, triangle or breath"));
}

std::uint8_t axis_from_name(const std::string& name) {
    return index_of(axis_names, name, "x, y or z");
}

void check_movement(const Options& options, const config::Scanner& scanner) {
    const Cycle& cycle = options.cycle;
    if (cycle.period_s != 0) check_number("--cycle", cycle.period_s, options);
    within("the spread of --cycle", cycle.spread, 0, 0.3);
    for (const auto& a : options.activity) {
        within("the amplitude of a motion (mm)", a.motion.amplitude_mm, -1e5, 1e5);
        if (a.motion.amplitude_mm != 0 && cycle.period_s == 0)
            throw std::invalid_argument("a source moves, but there is no --cycle that it could follow");
    }
    if (options.bed.interval_s != 0) check_number("--bed-steps", options.bed.interval_s, options);
    within("the step of --bed-steps (mm)", options.bed.step_mm, -1e5, 1e5);
    const Turning& turning = options.turning;
    if (turning.turns() && !scanner.rotation) {
        throw std::invalid_argument(
            "--rotation, --rotation-steps: expected a scanner whose description has the key rotation");
    }
    if (turning.turns_per_minute != 0 && turning.step_deg != 0)
        throw std::invalid_argument("expected --rotation or --rotation-steps, found both");
    within("--rotation (turns per minute)", turning.turns_per_minute, -6000, 6000);
    if (turning.turns_per_minute != 0)
        check_number("--rotation", 60 / std::abs(turning.turns_per_minute) / turn_tags, options);
    // Half a turn has no short way around.
    within("the step of --rotation-steps (degrees)", turning.step_deg, -179, 179);
    if (turning.step_deg != 0) check_number("--rotation-steps", turning.interval_s, options);
}

void check_tags(const Options& options, std::size_t sources, const config::Scanner& scanner) {
    const Tags& tags = options.tags;
    if (tags.source >= sources)
        refuse("--tag-source", std::to_string(tags.source), "less than " + std::to_string(sources));
    if ((tags.trigger || !tags.gates.empty()) && options.cycle.period_s == 0)
        throw std::invalid_argument("--tag-trigger and --tag-gate need a --cycle");
    if (tags.trigger) check_channel("--tag-trigger", *tags.trigger);
    for (const GateTags& gate : tags.gates) {
        check_channel("the channel of --tag-gate", gate.channel);
        within("the start of --tag-gate", gate.from, 0, 1);
        within("the end of --tag-gate", gate.to, 0, 1);
        if (!(gate.from < gate.to)) refuse("the end of --tag-gate", text(gate.to), "later than its start");
    }
    if (tags.position) check_channel("--tag-position", *tags.position);
    if (tags.position && scanner.rotation && *tags.position == scanner.rotation->tag_channel) {
        refuse("--tag-position", std::to_string(*tags.position),
               "another channel than that of the rotation of the scanner");
    }
    if (tags.clock) {
        check_channel("the channel of --tag-clock", tags.clock->channel);
        check_number("the interval of --tag-clock", tags.clock->interval_s, options);
    }
    if (tags.dead_time) {
        check_channel("the channel of --tag-dead-time", tags.dead_time->channel);
        const double interval_s = tags.dead_time->interval_s;
        check_number("the interval of --tag-dead-time", interval_s, options);
        const double longest_s = 0x1p32 * scanner.tick_ps * 1e-12;  // so that the value fits
        if (interval_s > longest_s)
            refuse("the interval of --tag-dead-time", text(interval_s) + " s",
                   "at most " + text(longest_s) + " s");
    }
}

nlohmann::json to_json(const Motion& m) {
    return {{"axis", axis_names.at(m.axis)},
            {"amplitude_mm", m.amplitude_mm},
            {"shape", motion_shape_names.at(static_cast<std::size_t>(m.shape))}};
}

nlohmann::json to_json(const Tags& t) {
    nlohmann::json j = nlohmann::json::object();
    if (t.trigger) j["trigger"] = *t.trigger;
    for (const GateTags& gate : t.gates)
        j["gates"].push_back({{"channel", gate.channel}, {"from", gate.from}, {"to", gate.to}});
    if (t.position) j["position"] = *t.position;
    if (t.dead_time) j["dead_time"] = to_json(*t.dead_time);
    if (t.clock) j["clock"] = to_json(*t.clock);
    if (!j.empty()) j["source"] = t.source;
    return j;
}

Motion motion_from_json(const nlohmann::json& document, const std::string& path) {
    if (!document.is_object()) throw std::invalid_argument(path + ": expected an object");
    Motion m;
    for (const auto& [key, value] : document.items()) {
        std::string at = path + '/';
        at += key;
        if (key == "amplitude_mm") {
            if (!value.is_number()) throw std::invalid_argument(at + ": expected a number");
            m.amplitude_mm = value.get<double>();
        } else if (key == "axis" || key == "shape") {
            if (!value.is_string()) throw std::invalid_argument(at + ": expected a word");
            try {
                if (key == "axis") m.axis = axis_from_name(value.get<std::string>());
                if (key == "shape") m.shape = motion_shape_from_name(value.get<std::string>());
            } catch (const std::invalid_argument& e) {
                throw std::invalid_argument(at + ": " + e.what());
            }
        } else {
            throw std::invalid_argument(at + ": unknown key");
        }
    }
    return m;
}

}  // namespace petacq::sim
