// What the texts on the command line mean.
#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "config/base/json_file.hpp"
#include "config/base/json_schema.hpp"
#include "tools/petsim/command_line.hpp"

namespace petacq::sim {

namespace {

template <class Number>
bool read_whole(std::string_view text, Number& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
}

[[noreturn]] void refuse(const char* option, const std::string& text, const char* expected) {
    throw std::invalid_argument(std::string(option) + ": \"" + text + "\" is not " + expected);
}

std::vector<double> numbers(const char* option, const std::string& text, std::size_t count,
                            const char* expected) {
    std::vector<double> out;
    std::string_view rest = text;
    for (;;) {
        const std::size_t comma = rest.find(',');
        double value = 0;
        if (!read_whole(rest.substr(0, comma), value)) refuse(option, text, expected);
        out.push_back(value);
        if (comma == std::string_view::npos) break;
        rest.remove_prefix(comma + 1);
    }
    if (out.size() != count) refuse(option, text, expected);
    return out;
}

// Splits `text` at the first `mark`; false if there is none.
bool cut(std::string_view text, char mark, std::string_view& before, std::string_view& after) {
    const std::size_t at = text.find(mark);
    if (at == std::string_view::npos) return false;
    before = text.substr(0, at);
    after = text.substr(at + 1);
    return true;
}

/// Of the sources on the command line.
Motion motion_of(const Command& command) {
    Motion motion;
    if (command.motion.empty()) return motion;
    std::string_view axis;
    std::string_view rest;
    std::string_view shape;
    const bool has_rest = cut(command.motion, ',', axis, rest);
    std::string_view amplitude = rest;
    const bool has_shape = cut(rest, ',', amplitude, shape);
    if (!has_shape) amplitude = rest;
    if (!has_rest || !read_whole(amplitude, motion.amplitude_mm))
        refuse("--motion", command.motion, "AXIS,MM[,SHAPE]");
    try {
        motion.axis = axis_from_name(std::string(axis));
        if (has_shape) motion.shape = motion_shape_from_name(std::string(shape));
    } catch (const std::invalid_argument& e) {
        throw std::invalid_argument(std::string("--motion: ") + e.what());
    }
    return motion;
}

void read_cycle(Command& command) {
    std::string_view a;
    std::string_view b;
    Cycle& cycle = command.options.cycle;
    if (cut(command.cycle, ',', a, b)) {
        if (!read_whole(a, cycle.period_s) || !read_whole(b, cycle.spread))
            refuse("--cycle", command.cycle, "SECONDS[,SPREAD]");
    } else if (!command.cycle.empty() && !read_whole(std::string_view(command.cycle), cycle.period_s)) {
        refuse("--cycle", command.cycle, "SECONDS[,SPREAD]");
    }
    if (!command.bed_steps.empty()) {
        const auto v = numbers("--bed-steps", command.bed_steps, 2, "MM,SECONDS");
        command.options.bed = {v[0], v[1]};
    }
    if (!command.rotation_steps.empty()) {
        const auto v = numbers("--rotation-steps", command.rotation_steps, 2, "DEGREES,SECONDS");
        command.options.turning.step_deg = v[0];
        command.options.turning.interval_s = v[1];
    }
}

std::optional<RegularTags> regular_tags(const char* option, const std::string& text) {
    if (text.empty()) return {};
    std::string_view a;
    std::string_view b;
    RegularTags tags;
    if (!cut(text, ':', a, b) || !read_whole(a, tags.channel) || !read_whole(b, tags.interval_s))
        refuse(option, text, "CHANNEL:SECONDS");
    return tags;
}

void read_tags(Command& command) {
    Tags& tags = command.options.tags;
    for (const auto& text : command.gates) {
        std::string_view a;
        std::string_view b;
        std::string_view phases;
        GateTags gate;
        if (!cut(text, ':', a, phases) || !read_whole(a, gate.channel) || !cut(phases, '-', a, b) ||
            !read_whole(a, gate.from) || !read_whole(b, gate.to)) {
            refuse("--tag-gate", text, "CHANNEL:FROM-TO");
        }
        tags.gates.push_back(gate);
    }
    tags.dead_time = regular_tags("--tag-dead-time", command.dead_time_tags);
    tags.clock = regular_tags("--tag-clock", command.clock_tags);
}

void read_object(Command& command) {
    if (command.object.empty()) return;
    if (command.options.object) throw std::invalid_argument("--object: the source description has one, too");
    constexpr const char* expected = "x,y,z,radius,length[,1/cm]";
    const bool water = std::count(command.object.begin(), command.object.end(), ',') == 4;
    const auto v = numbers("--object", command.object, water ? 5 : 6, expected);
    command.options.object = {{{v[0], v[1], v[2]}, v[3], v[4]}, water ? water_per_cm : v[5]};
}

void read_activity(Command& command) {
    auto& activity = command.options.activity;
    if (!command.source_file.empty()) {
        std::ifstream in(command.source_file);
        if (!in) throw std::invalid_argument("--source: cannot open " + command.source_file);
        const std::string text{std::istreambuf_iterator<char>(in), {}};
        if (config::json_nested_deeper(text))
            throw std::invalid_argument("--source: " + command.source_file + " is nested too deeply");
        const auto document = nlohmann::json::parse(text, nullptr, false, true);
        if (document.is_discarded())
            throw std::invalid_argument("--source: " + command.source_file + " is not JSON");
        try {
            SourceDescription description = sources_from_json(document);
            activity = std::move(description.sources);
            command.options.object = description.object;
        } catch (const std::invalid_argument& e) {
            throw std::invalid_argument("--source: " + command.source_file + ": " + e.what());
        }
    }
    const Motion motion = motion_of(command);
    ActivityCurve curve;
    if (!command.activity_curve_file.empty()) {
        try {
            curve = curve_from_csv(command.activity_curve_file);
        } catch (const std::invalid_argument& e) {
            throw std::invalid_argument(std::string("--activity-curve: ") + e.what());
        }
    }
    const auto add = [&](ActivitySource a) {
        a.half_life_s = command.half_life_s;
        a.photon_kev = command.photon_kev;
        a.motion = motion;
        a.curve = curve;
        activity.push_back(std::move(a));
    };
    if (!command.cold.empty() && command.cylinders.empty())
        throw std::invalid_argument("--cold: there is no --cylinder that it could be in");
    std::vector<Cylinder> cold;
    for (const auto& text : command.cold) {
        const auto v = numbers("--cold", text, 5, "x,y,z,radius,length");
        cold.push_back({{v[0], v[1], v[2]}, v[3], v[4]});
    }
    for (const auto& text : command.points) {
        const auto v = numbers("--point", text, 4, "x,y,z,MBq");
        add({Shape::point, {v[0], v[1], v[2]}, {}, 0, 0, v[3], 0});
    }
    for (const auto& text : command.lines) {
        const auto v = numbers("--line", text, 7, "x1,y1,z1,x2,y2,z2,MBq");
        add({Shape::line, {v[0], v[1], v[2]}, {v[3], v[4], v[5]}, 0, 0, v[6], 0});
    }
    for (const auto& text : command.cylinders) {
        const auto v = numbers("--cylinder", text, 6, "x,y,z,radius,length,MBq");
        ActivitySource cylinder{Shape::cylinder, {v[0], v[1], v[2]}, {}, v[3], v[4], v[5], 0};
        cylinder.cold = cold;
        add(std::move(cylinder));
    }
    if (activity.empty() && command.source_file.empty()) add({Shape::point, {}, {}, 0, 0, 1, 0});
}

/// Reads NUMBER@SECONDS:VALUE.
template <class Fault>
void read_from_time(const char* option, const std::string& text, const char* expected,
                    std::uint32_t Fault::*number, double Fault::*value, std::vector<Fault>& faults) {
    std::string_view a;
    std::string_view b;
    std::string_view rest;
    Fault fault;
    if (!cut(text, '@', a, rest) || !read_whole(a, fault.*number) || !cut(rest, ':', a, b) ||
        !read_whole(a, fault.at_s) || !read_whole(b, fault.*value)) {
        refuse(option, text, expected);
    }
    faults.push_back(fault);
}

void read_detector_faults(Command& command) {
    Faults& faults = command.options.faults;
    for (const auto& text : command.silent_units) {
        std::string_view place;
        std::string_view times;
        std::string_view a;
        std::string_view b;
        SilentUnit silent;
        if (!cut(text, '@', place, times) || !cut(place, '.', a, b) || !read_whole(a, silent.bdm) ||
            !read_whole(b, silent.du) || !cut(times, '-', a, b) || !read_whole(a, silent.from_s) ||
            !read_whole(b, silent.to_s)) {
            refuse("--silent-unit", text, "BDM.DU@FROM-TO");
        }
        faults.silent_units.push_back(silent);
    }
    for (const auto& text : command.gain_steps) {
        read_from_time("--gain-step", text, "BDM@SECONDS:PERCENT", &GainStep::bdm, &GainStep::percent,
                       faults.gain_steps);
    }
    for (const auto& text : command.temperature_steps) {
        read_from_time("--temperature-step", text, "BDM@SECONDS:DEGREES", &TemperatureStep::bdm,
                       &TemperatureStep::degrees, faults.temperature_steps);
    }
    for (const auto& text : command.noisy_crystals) {
        read_from_time("--noisy-crystal", text, "CRYSTAL@SECONDS:HZ", &NoisyCrystal::crystal,
                       &NoisyCrystal::hz, faults.noisy_crystals);
    }
}

void read_faults(Command& command) {
    Faults& faults = command.options.faults;
    std::string_view a;
    std::string_view b;
    for (const auto& text : command.corrupt) {
        constexpr const char* expected = "FIELD:PROBABILITY";
        double p = 0;
        if (!cut(text, ':', a, b) || !read_whole(b, p)) refuse("--corrupt", text, expected);
        faults.corrupt[static_cast<std::size_t>(field_from_name(std::string(a)))] = p;
    }
    for (const auto& text : command.jumps) {
        constexpr const char* expected = "SOURCE@SECONDS:TICKS[:DATAGRAMS]";
        ClockJump jump;
        std::string_view rest;
        std::string_view ticks;
        if (!cut(text, '@', a, rest) || !read_whole(a, jump.source) || !cut(rest, ':', a, ticks) ||
            !read_whole(a, jump.at_s)) {
            refuse("--clock-jump", text, expected);
        }
        if (cut(ticks, ':', a, b)) {
            std::uint64_t datagrams = 0;
            if (!read_whole(b, datagrams)) refuse("--clock-jump", text, expected);
            jump.datagrams = datagrams;
            ticks = a;
        }
        if (!read_whole(ticks, jump.ticks)) refuse("--clock-jump", text, expected);
        faults.jumps.push_back(jump);
    }
    for (const auto& text : command.resets) {
        BoardReset reset;
        if (!cut(text, '@', a, b) || !read_whole(a, reset.source) || !read_whole(b, reset.at_s)) {
            refuse("--reset", text, "SOURCE@SECONDS");
        }
        faults.resets.push_back(reset);
    }
    for (const auto& text : command.silences) {
        Silence silence;
        std::string_view times;
        if (!cut(text, '@', a, times) || !read_whole(a, silence.source) || !cut(times, '-', a, b) ||
            !read_whole(a, silence.from_s) || !read_whole(b, silence.to_s)) {
            refuse("--silent", text, "SOURCE@FROM-TO");
        }
        faults.silences.push_back(silence);
    }
    read_detector_faults(command);
}

}  // namespace

void interpret(Command& command) {
    if (command.scanner_file.empty()) throw std::invalid_argument("--scanner is required");
    if (command.calibration_file.empty() && command.detector_file.empty())
        throw std::invalid_argument("--calibration or --detector is required");
    if (command.destinations.empty() && !command.dry_run && command.write_file.empty()) {
        throw std::invalid_argument("--to HOST:PORT is required (or --write FILE, or --dry-run)");
    }
    read_activity(command);
    read_object(command);
    read_faults(command);
    read_cycle(command);
    read_tags(command);
    if (command.fast) command.pace = 0;
    command.options.physics.paralysable = command.dead_time_model == "paralysable";
    command.options.crystals.model = config::from_name<CrystalModel>(command.crystals);
    command.options.wire.end_of_stream = !command.no_end_of_stream;
    command.options.wire.framing = config::from_name<net::Framing>(command.framing);
}

TransmitOptions transmit_options(const Command& command, double tick_ps) {
    TransmitOptions out;
    out.pace = command.pace;
    out.tick_ps = tick_ps;
    out.burst_us = command.burst_us;
    for (const auto& text : command.destinations) {
        std::string_view host;
        std::string_view port;
        net::SenderOptions sender;
        // [ADDRESS]:PORT of IPv6
        const bool good = text.starts_with('[') ? cut(std::string_view(text).substr(1), ']', host, port) &&
                                                      port.starts_with(':')
                                                : cut(text, ':', host, port);
        if (good && text.starts_with('[')) port.remove_prefix(1);
        if (!good || host.empty() || !read_whole(port, sender.port) || sender.port == 0) {
            refuse("--to", text, "HOST:PORT");
        }
        sender.address = host == "localhost" ? "127.0.0.1" : std::string(host);
        sender.gso = !command.no_gso;
        sender.send_buffer_bytes = command.send_buffer_bytes;
        out.destinations.push_back(sender);
    }
    return out;
}

std::vector<net::Endpoint> capture_destinations(const Command& command) {
    constexpr std::uint32_t loopback = 0x7F000001;
    constexpr std::uint16_t usual_port = 9601;
    if (command.destinations.empty()) return {{loopback, usual_port}};
    std::vector<net::Endpoint> to;
    for (const net::SenderOptions& o : transmit_options(command, 1).destinations) {
        sockaddr_storage address{};
        if (!net::is_address(o.address, address)) refuse("--to", o.address, "an IPv4 or IPv6 address");
        net::set_port(address, o.port);
        to.push_back(net::endpoint_of(address));
    }
    return to;
}

SendCaptureOptions send_capture_options(const Command& command) {
    if (command.destinations.size() != 1) {
        throw std::invalid_argument("--send needs exactly one --to HOST:PORT, found " +
                                    std::to_string(command.destinations.size()));
    }
    SendCaptureOptions out;
    out.file = command.send_file;
    out.destination = transmit_options(command, 1).destinations.front();
    out.speed = command.fast ? 0 : command.speed;
    out.burst_us = command.burst_us;
    return out;
}

}  // namespace petacq::sim
