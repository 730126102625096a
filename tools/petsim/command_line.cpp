#include "tools/petsim/command_line.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <thread>

#include "config/choices.hpp"
#include "config/command_line/command_line.hpp"

namespace petacq::sim {

namespace {

void add_physics(CLI::App& app, Command& c) {
    Physics& p = c.options.physics;
    const auto option = [&](const char* name, auto& value, const char* help) {
        return app.add_option(name, value, help)->group("Detector")->capture_default_str();
    };
    option("--efficiency", p.efficiency, "Chance that a photon entering a crystal is detected");
    option("--scatter", p.scatter, "Share of annihilations with a Compton-scattered photon");
    option("--positron-range-mm", p.positron_range_mm, "FWHM along each axis");
    option("--noncollinearity-deg", p.noncollinearity_deg, "FWHM");
    option("--energy-resolution", p.energy_resolution, "FWHM / energy at 511 keV");
    option("--time-resolution-ps", p.time_resolution_ps, "FWHM of one photon");
    option("--dead-time-ticks", p.dead_time_ticks, "Dead time of a detector unit after each hit");
    option("--dead-time-model", c.dead_time_model, "Paralysable: hits in the dead time begin it again")
        ->check(CLI::IsMember({"non-paralysable", "paralysable"}));
    option("--block-pile-up-ns", p.block_pile_up_ns,
           "Hits of a detector unit within this time of one give one frame; 0: never");
    Crystals& crystals = c.options.crystals;
    option("--crystals", c.crystals,
           "Photons are absorbed at a depth or at the surface, or scatter between crystals")
        ->check(CLI::IsMember(config::words<CrystalModel>.names));
    app.add_option("--crystal-attenuation-per-cm", crystals.attenuation_per_cm,
                   "Of depth and scatter: attenuation at 511 keV; default: that of the scanner")
        ->group("Detector");
    app.add_option("--photo-share", crystals.photo_share,
                   "Of scatter: photoelectric share of it; default: that of the scanner's material")
        ->group("Detector");
    option("--intrinsic-hz", p.intrinsic_hz, "Lu-176 decays per second and crystal that contains lutetium");
    app.add_flag("--intrinsic-cascade", crystals.cascade, "Follow the gammas of Lu-176, too")
        ->group("Detector");
    option("--dark-hz", p.dark_hz, "Dark counts per second and detector unit");
    option("--dark-mean-kev", p.dark_mean_keV, "Mean of their exponential spectrum");
    option("--temperature-c", p.temperature_c, "Mean temperature");
    option("--clock-drift-ps-per-c", p.clock_drift_ps_per_c,
           "Raw times are later, for each degree above 25 C");
    option("--gain-drift-percent-per-c", p.gain_drift_percent_per_c,
           "Gains are higher, for each degree above 25 C");
}

void add_movement(CLI::App& app, Command& c) {
    const auto option = [&](const char* name, auto& value, const char* help) {
        app.add_option(name, value, help)->group("Movement");
    };
    option("--cycle", c.cycle,
           "SECONDS[,SPREAD]: a breath or heart beat; SPREAD: sigma of the periods / mean");
    option("--motion", c.motion,
           "AXIS,MM[,SHAPE]: sources on the command line move with the cycle; sine, triangle or breath");
    option("--bed-steps", c.bed_steps, "MM,SECONDS: the bed moves along z by MM every SECONDS");
    option("--rotation", c.options.turning.turns_per_minute,
           "TURNS: the scanner turns evenly, so often per minute");
    option("--rotation-steps", c.rotation_steps,
           "DEGREES,SECONDS: the scanner turns by DEGREES every SECONDS");
}

void add_tags(CLI::App& app, Command& c) {
    Tags& t = c.options.tags;
    const auto option = [&](const char* name, auto& value, const char* help) {
        app.add_option(name, value, help)->group("Tags");
    };
    option("--tag-trigger", t.trigger, "CHANNEL: at the start of each cycle");
    option("--tag-gate", c.gates,
           "CHANNEL:FROM-TO: open between these phases of the cycle, 0 to 1; repeatable");
    option("--tag-position", t.position, "CHANNEL: position of the bed");
    option("--tag-dead-time", c.dead_time_tags, "CHANNEL:SECONDS: of each source, at this interval");
    option("--tag-clock", c.clock_tags, "CHANNEL:SECONDS: milliseconds since the start, at this interval");
    option("--tag-source", t.source, "Source that sends the tags, except those of dead time; default: 0");
}

void add_wire(CLI::App& app, Command& c) {
    Wire& w = c.options.wire;
    const auto option = [&](const char* name, auto& value, const char* help) {
        return app.add_option(name, value, help)->group("Wire")->capture_default_str();
    };
    option("--framing", c.framing, "sequenced or bare")
        ->check(CLI::IsMember(config::words<config::Framing>.names));
    option("--sources", w.sources,
           "Sources that share the BDMs; 0: those of the scanner description, else one per BDM");
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
    option("--silent-unit", c.silent_units, "BDM.DU@FROM-TO, seconds; repeatable");
    option("--gain-step", c.gain_steps, "BDM@SECONDS:PERCENT; repeatable");
    option("--temperature-step", c.temperature_steps, "BDM@SECONDS:DEGREES; repeatable");
    option("--noisy-crystal", c.noisy_crystals, "CRYSTAL@SECONDS:HZ, energies up to 1022 keV; repeatable");
}

void add_options(CLI::App& app, Command& c) {
    Options& o = c.options;
    o.threads = std::max(1U, std::thread::hardware_concurrency());
    app.add_option("--scanner", c.scanner_file, "Scanner description (JSON)")->group("Input");
    app.add_option("--calibration", c.calibration_file, "Calibration of the daemon (HDF5)")->group("Input");
    app.add_option("--detector", c.detector_file, "True detector (HDF5), if it differs from the calibration")
        ->group("Input");
    const auto activity = [&](const char* name, auto& value, const char* help) {
        return app.add_option(name, value, help)
            ->group("Activity (mm, MBq; a 1 MBq point when none is given)");
    };
    activity("--source", c.source_file, "Source description (JSON)");
    activity("--point", c.points, "x,y,z,MBq; repeatable");
    activity("--line", c.lines, "x1,y1,z1,x2,y2,z2,MBq; repeatable");
    activity("--cylinder", c.cylinders, "x,y,z,radius,length,MBq; axis along z; repeatable");
    activity("--cold", c.cold, "x,y,z,radius,length: without activity, in these cylinders; repeatable");
    activity("--object", c.object, "x,y,z,radius,length[,1/cm]: photons scatter in it; water by default");
    activity("--half-life-s", c.half_life_s, "Half-life of these sources; 0: no decay")
        ->capture_default_str();
    activity("--activity-curve", c.activity_curve_file,
             "CSV file: time in s, and the activity of these sources then, relative to that given");
    activity("--photon-kev", c.photon_kev,
             "These sources emit single photons of this energy, as Cs-137 (661.7); 0: positrons")
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
    add_movement(app, c);
    add_physics(app, c);
    add_tags(app, c);
    add_wire(app, c);
    add_faults(app, c);
    const auto output = [&](const char* name, auto& value, const char* help) {
        return app.add_option(name, value, help)->group("Output");
    };
    output("--to", c.destinations, "HOST:PORT or [IPV6]:PORT; repeatable: sources are spread over them");
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

CLI::App* add_compare(CLI::App& app, CompareCommand& c) {
    CLI::App* const compare = app.add_subcommand("compare", "Compare the list-mode of a run with the truth");
    compare->add_option("--truth", c.truth_file, "Truth file")->required();
    compare->add_option("--run", c.run_directory, "Directory of the run")->required();
    compare->add_flag("--json", c.json, "Print JSON");
    return compare;
}

CLI::App* add_make_detector(CLI::App& app, MakeDetectorCommand& c) {
    CLI::App* const make = app.add_subcommand("make-detector", "Draw a true detector");
    make->add_option("--scanner", c.scanner_file, "Scanner description (JSON)")->required();
    make->add_option("-o,--output", c.output_file, "Detector file to write (HDF5)")->required();
    make->add_option("--calibration", c.calibration_file, "Write the calibration that fits it, too (HDF5)");
    const auto option = [&](const char* name, auto& value, const char* help) {
        return make->add_option(name, value, help)->capture_default_str();
    };
    DetectorModel& m = c.model;
    option("--seed", m.seed, "The same seed gives the same detector");
    option("--spot-sigma", m.spot_sigma, "Blur of a spot / distance of the spots");
    option("--spot-jitter", m.spot_jitter, "Displacement of a spot / distance of the spots");
    option("--crosstalk", m.crosstalk, "Chance that a neighbour gets up to half of the light");
    option("--gain", m.gain, "Mean ADC counts per keV at 511 keV");
    option("--gain-spread", m.gain_spread, "Relative spread of the crystals' gains");
    option("--nonlinearity", m.nonlinearity, "Mean n of ADC = gain E (1 + n) / (1 + n E / 511 keV)");
    option("--time-spread-ps", m.time_spread_ps, "Spread of the crystals' time offsets");
    option("--resolution", m.resolution, "Mean FWHM / energy at 511 keV");
    option("--resolution-spread", m.resolution_spread, "Its relative spread");
    option("--efficiency-spread", m.efficiency_spread, "Relative spread of the crystals' efficiencies");
    option("--dead", m.dead, "Share of dead crystals");
    option("--noisy", m.noisy, "Share of noisy crystals");
    option("--noise-hz", m.noise_hz, "Additional counts per second of each");
    return make;
}

}  // namespace

std::optional<int> parse(int argc, char** argv, CommandLine& commands) {
    CLI::App app{"petsim: a simulated PET scanner that streams detector frames over UDP"};
    app.get_formatter()->column_width(38);
    add_options(app, commands.simulate);
    const CLI::App* const compare = add_compare(app, commands.compare);
    const CLI::App* const make = add_make_detector(app, commands.make_detector);
    const config::CommandLineStyle style{
        "petsim",
        {},
        {"--temperature-c", "--clock-drift-ps-per-c", "--gain-drift-percent-per-c", "--rotation"}};
    if (const auto status = config::parse_command_line(app, style, argc, argv)) return status;
    commands.compare.given = compare->parsed();
    commands.make_detector.given = make->parsed();
    return std::nullopt;
}

}  // namespace petacq::sim
