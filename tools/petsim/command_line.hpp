// The command line of petsim: words to numbers. docs/petsim.md lists every option.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/petsim/capture_file.hpp"
#include "tools/petsim/options.hpp"
#include "tools/petsim/transmit.hpp"

namespace petacq::sim {

/// What `petsim` (without a subcommand) was asked to do.
struct Command {
    std::string scanner_file;
    std::string calibration_file;
    std::string source_file;
    std::vector<std::string> points;
    std::vector<std::string> lines;
    std::vector<std::string> cylinders;
    double half_life_s = 0;
    double rate = 0;  ///< frames/s; 0: the activities as they are
    std::string framing = "sequenced";
    bool no_end_of_stream = false;
    std::vector<std::string> corrupt;
    std::vector<std::string> jumps;
    std::vector<std::string> resets;
    std::vector<std::string> silences;
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
    std::string send_file;  ///< nothing is simulated
    double speed = 1;
    Options options;
};

/// What `petsim compare` was asked to do.
struct CompareCommand {
    bool given = false;
    std::string truth_file;
    std::string run_directory;
    bool json = false;
};

/// Reads the words. A value: the process ends with this status (help was shown, or the words are wrong).
std::optional<int> parse(int argc, char** argv, Command& command, CompareCommand& comparison);
/// Fills in command.options from the words. Throws std::invalid_argument with the option and what was
/// expected.
void interpret(Command& command);
/// Throws std::invalid_argument.
TransmitOptions transmit_options(const Command& command, double tick_ps);
/// The same as addresses, for a file; the daemon's usual port on loopback without --to.
std::vector<net::Endpoint> capture_destinations(const Command& command);
/// Throws std::invalid_argument.
SendCaptureOptions send_capture_options(const Command& command);

}  // namespace petacq::sim
