// Parses the command line of petsim. petsim(1) lists every option.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/petsim/capture_file.hpp"
#include "tools/petsim/detector/make_detector.hpp"
#include "tools/petsim/simulation/base/options.hpp"
#include "tools/petsim/transmit.hpp"

namespace petacq::sim {

/// The options of `petsim` without a subcommand.
struct Command {
    std::string scanner_file;
    std::string calibration_file;
    std::string detector_file;
    std::string source_file;
    std::vector<std::string> points;
    std::vector<std::string> lines;
    std::vector<std::string> cylinders;
    std::vector<std::string> cold;
    std::string object;
    double half_life_s = 0;
    std::string activity_curve_file;
    double photon_kev = 0;
    std::string cycle;
    std::string motion;
    std::string bed_steps;
    std::string rotation_steps;
    std::vector<std::string> gates;
    std::string dead_time_tags;
    std::string clock_tags;
    double rate = 0;  ///< frames/s; 0: activities are not scaled
    std::string dead_time_model = "non-paralysable";
    std::string crystals = "depth";
    std::string framing = "sequenced";
    bool no_end_of_stream = false;
    std::vector<std::string> corrupt;
    std::vector<std::string> jumps;
    std::vector<std::string> resets;
    std::vector<std::string> silences;
    std::vector<std::string> silent_units;
    std::vector<std::string> gain_steps;
    std::vector<std::string> temperature_steps;
    std::vector<std::string> noisy_crystals;
    std::vector<std::string> destinations;
    double pace = 1;
    bool fast = false;
    double burst_us = 500;
    bool no_gso = false;
    std::uint64_t send_buffer_bytes = 4U << 20;
    bool prepare = false;
    bool dry_run = false;
    bool quiet = false;
    std::string write_file;
    std::string truth_file;
    std::string summary_file;
    std::string send_file;  ///< sent instead of a simulation
    double speed = 1;
    Options options;
};

/// The options of `petsim compare`.
struct CompareCommand {
    bool given = false;
    std::string truth_file;
    std::string run_directory;
    bool json = false;
};

/// The options of `petsim make-detector`.
struct MakeDetectorCommand {
    bool given = false;
    std::string scanner_file;
    std::string output_file;
    std::string calibration_file;  ///< written, too, unless empty
    DetectorModel model;
};

/// The commands of petsim.
struct CommandLine {
    Command simulate;
    CompareCommand compare;
    MakeDetectorCommand make_detector;
};

/// Parses the arguments. If it returns a value, the process exits with that status: help was shown, or the
/// arguments are invalid.
std::optional<int> parse(int argc, char** argv, CommandLine& commands);
/// Fills in command.options from the texts of the command. Throws std::invalid_argument with the option and
/// what was expected.
void interpret(Command& command);
/// Throws std::invalid_argument.
TransmitOptions transmit_options(const Command& command, double tick_ps);
/// The destinations as addresses, for a capture; without --to the default port of the daemon on loopback.
std::vector<net::Endpoint> capture_destinations(const Command& command);
/// Throws std::invalid_argument.
SendCaptureOptions send_capture_options(const Command& command);

}  // namespace petacq::sim
