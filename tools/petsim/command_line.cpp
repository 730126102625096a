#include "tools/petsim/command_line.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "config/json_file.hpp"
#include "config/json_schema.hpp"

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
            activity = activity_from_json(document);
        } catch (const std::invalid_argument& e) {
            throw std::invalid_argument("--source: " + command.source_file + ": " + e.what());
        }
    }
    const auto add = [&](ActivitySource a) {
        a.half_life_s = command.half_life_s;
        activity.push_back(a);
    };
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
        add({Shape::cylinder, {v[0], v[1], v[2]}, {}, v[3], v[4], v[5], 0});
    }
    if (activity.empty() && command.source_file.empty()) add({Shape::point, {}, {}, 0, 0, 1, 0});
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
}

void add_physics(CLI::App& app, Command& c) {
    Physics& p = c.options.physics;
    const auto option = [&](const char* name, auto& value, const char* help) {
        app.add_option(name, value, help)->group("Detector")->capture_default_str();
    };
    option("--efficiency", p.efficiency, "Chance that a photon entering a crystal is detected");
    option("--scatter", p.scatter, "Share of annihilations with a Compton-scattered photon");
    option("--positron-range-mm", p.positron_range_mm, "FWHM along each axis");
    option("--noncollinearity-deg", p.noncollinearity_deg, "FWHM");
    option("--energy-resolution", p.energy_resolution, "FWHM / energy at 511 keV");
    option("--time-resolution-ps", p.time_resolution_ps, "FWHM of one photon");
    option("--dead-time-ticks", p.dead_time_ticks, "Dead time of a detector unit after each hit");
    option("--intrinsic-hz", p.intrinsic_hz, "Lu-176 decays per second and crystal");
    option("--dark-hz", p.dark_hz, "Dark counts per second and detector unit");
    option("--dark-mean-kev", p.dark_mean_keV, "Mean of their exponential spectrum");
    option("--temperature-c", p.temperature_c, "Mean temperature");
}

void add_wire(CLI::App& app, Command& c) {
    Wire& w = c.options.wire;
    const auto option = [&](const char* name, auto& value, const char* help) {
        return app.add_option(name, value, help)->group("Wire")->capture_default_str();
    };
    option("--framing", c.framing, "sequenced or bare")->check(CLI::IsMember({"sequenced", "bare"}));
    option("--sources", w.sources,
           "Sources that share the modules; 0: those of the scanner description, else one per module");
    option("--payload", w.payload, "Largest datagram, bytes (up to 65507)");
    option("--flush-us", w.flush_us, "A partly filled datagram is sent after this detector time");
    option("--heartbeat-ms", w.heartbeat_ms, "Empty datagram after this quiet detector time; 0: none");
    option("--skew-us", w.skew_us, "Sources are late by up to this much");
    app.add_flag("--no-end-of-stream", c.no_end_of_stream, "Stop abruptly")->group("Wire");
}

void add_faults(CLI::App& app, Command& c) {
    Faults& f = c.options.faults;
    const auto option = [&](const char* name, auto& value, const char* help) {
        return app.add_option(name, value, help)->group("Faults (probabilities are per datagram)");
    };
    option("--loss", f.loss, "Chance that a datagram is not sent")->capture_default_str();
    option("--duplicate", f.duplicate, "Chance that a datagram is sent twice")->capture_default_str();
    option("--reorder", f.reorder, "Chance that a datagram is held back")->capture_default_str();
    option("--reorder-span", f.reorder_span, "Held back by at most this many datagrams of its source")
        ->capture_default_str();
    option("--corrupt", c.corrupt,
           "FIELD:P; marker, bdm, du, x, time, energy, magic, version or length; repeatable");
    option("--clock-jump", c.jumps, "SOURCE@SECONDS:TICKS[:DATAGRAMS]; repeatable");
    option("--reset", c.resets, "SOURCE@SECONDS: time and sequence restart; repeatable");
    option("--silent", c.silences, "SOURCE@FROM-TO, seconds; repeatable");
}

void add_options(CLI::App& app, Command& c) {
    Options& o = c.options;
    o.threads = std::max(1U, std::thread::hardware_concurrency());
    app.add_option("--scanner", c.scanner_file, "Scanner description (JSON)")->group("Input");
    app.add_option("--calibration", c.calibration_file, "Calibration (HDF5)")->group("Input");
    const auto activity = [&](const char* name, auto& value, const char* help) {
        return app.add_option(name, value, help)
            ->group("Activity (mm, MBq; a 1 MBq point when none is given)");
    };
    activity("--source", c.source_file, "Source description (JSON)");
    activity("--point", c.points, "x,y,z,MBq; repeatable");
    activity("--line", c.lines, "x1,y1,z1,x2,y2,z2,MBq; repeatable");
    activity("--cylinder", c.cylinders, "x,y,z,radius,length,MBq; axis along z; repeatable");
    activity("--half-life-s", c.half_life_s, "Half-life of these sources; 0: no decay")
        ->capture_default_str();
    activity("--rate", c.rate, "Scale all activity to this many frames/s on average")
        ->check(CLI::Range(0.0, 1e12));
    const auto run = [&](const char* name, auto& value, const char* help) {
        return app.add_option(name, value, help)->group("Simulation")->capture_default_str();
    };
    run("--seed", o.seed, "The same seed gives the same stream");
    run("--start-time-s", o.start_s, "Detector time at the start");
    run("--duration-s", o.duration_s, "Detector time simulated");
    run("--threads", o.threads, "Threads that make events");
    add_physics(app, c);
    add_wire(app, c);
    add_faults(app, c);
    const auto output = [&](const char* name, auto& value, const char* help) {
        return app.add_option(name, value, help)->group("Output");
    };
    output("--to", c.destinations, "HOST:PORT (IPv4); repeatable: sources are spread over them");
    output("--pace", c.pace, "Speed relative to real time; 0: as fast as possible")
        ->check(CLI::Range(0.0, 1e9))
        ->capture_default_str();
    app.add_flag("--fast", c.fast, "As fast as possible")->group("Output");
    output("--burst-us", c.burst_us, "Datagrams due within this time are sent together")
        ->check(CLI::Range(1.0, 1e6))
        ->capture_default_str();
    app.add_flag("--no-gso", c.no_gso, "Do not use UDP segmentation offload")->group("Output");
    output("--send-buffer-bytes", c.send_buffer_bytes, "Send buffer to request from the kernel")
        ->check(CLI::Range(4096.0, 2147483647.0))
        ->capture_default_str();
    app.add_flag("--prepare", c.prepare, "Simulate all of it into memory before sending")->group("Output");
    app.add_flag("--dry-run", c.dry_run, "Simulate and count, send nothing")->group("Output");
    output("--write", c.write_file, "Write the stream to this pcap file instead of sending it");
    output("--send", c.send_file, "Simulate nothing: send the datagrams of this pcap file");
    output("--speed", c.speed, "With --send: speed relative to the capture; 0: as fast as possible")
        ->check(CLI::Range(0.0, 1e9))
        ->needs("--send")
        ->capture_default_str();
    output("--truth", c.truth_file, "File for the truth of every frame");
    output("--summary", c.summary_file, "File for the summary (JSON)");
    app.add_flag("--quiet", c.quiet, "No summary on standard output")->group("Output");
}

}  // namespace

std::optional<int> parse(int argc, char** argv, Command& command, CompareCommand& comparison) {
    constexpr int usage = 64;
    CLI::App app{"petsim: a simulated PET scanner that streams detector frames over UDP"};
    app.get_formatter()->column_width(38);
    add_options(app, command);
    CLI::App* const compare = app.add_subcommand("compare", "Compare the list-mode of a run with the truth");
    compare->add_option("--truth", comparison.truth_file, "Truth file")->required();
    compare->add_option("--run", comparison.run_directory, "Directory of the run")->required();
    compare->add_flag("--json", comparison.json, "Print JSON");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return app.exit(e) == 0 ? 0 : usage;
    }
    comparison.given = compare->parsed();
    return std::nullopt;
}

void interpret(Command& command) {
    if (command.scanner_file.empty()) throw std::invalid_argument("--scanner is required");
    if (command.calibration_file.empty()) throw std::invalid_argument("--calibration is required");
    if (command.destinations.empty() && !command.dry_run && command.write_file.empty()) {
        throw std::invalid_argument("--to HOST:PORT is required (or --write FILE, or --dry-run)");
    }
    read_activity(command);
    read_faults(command);
    if (command.fast) command.pace = 0;
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
        if (!cut(text, ':', host, port) || host.empty() || !read_whole(port, sender.port) ||
            sender.port == 0) {
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
        const auto address = config::parse_ipv4(o.address);
        if (!address) refuse("--to", o.address, "an IPv4 address");
        to.push_back({*address, o.port});
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
