// The daemon's configuration: one JSON file. config/petacqd.schema.json has every key with its default, unit
// and range; the names here are the names there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/scanner.hpp"

namespace petacq::config {

struct Socket {
    std::string address = "0.0.0.0";
    std::uint16_t port = 0;
    std::uint32_t count = 1;  ///< sockets (and threads) sharing the port by SO_REUSEPORT
    std::string multicast_group;
    std::string multicast_interface;
    std::vector<int> cpus;  ///< core of each of the `count` threads; empty: not pinned
};

struct Receive {
    std::string framing = "sequenced";               ///< or "bare"
    std::vector<Socket> sockets;                     ///< at least one
    std::uint64_t receive_buffer_bytes = 64U << 20;  ///< asked of the kernel for each socket
    bool gro = true;
    std::uint64_t batch_bytes = 2U << 20;
    std::uint32_t batch_count = 64;
    bool huge_pages = false;
    bool lock_memory = true;
    std::uint32_t flush_interval_ms = 5;
};

struct Sources {
    std::vector<std::uint16_t> ids;      ///< sequenced: ids that may send and are expected; empty: any
    std::vector<std::string> addresses;  ///< IPv4 senders that may send; empty: any
};

struct FrameMarkers {
    std::uint8_t head_marker = 0xA;
    std::uint8_t tail_marker = 0x5;
};

struct Watermark {
    std::uint64_t max_disorder_us = 10'000;  ///< detector time
    std::uint64_t max_lag_ms = 1'000;        ///< detector time
    std::uint64_t max_jump_ms = 2'000;       ///< detector time
    std::uint32_t jump_confirmations = 3;    ///< consistent datagrams that make a jump true
    std::uint32_t source_timeout_ms = 500;   ///< host time
};

struct Energy {
    bool filter = true;
    double lower_keV = 350;  // NOLINT(readability-identifier-naming): the unit's own spelling
    double upper_keV = 650;  // NOLINT(readability-identifier-naming)
};

struct Coincidence {
    std::uint32_t window_ticks = 0;      ///< tau, inclusive; required
    std::string window_mode = "single";  ///< or "every"
    std::string multiples_policy = "RemoveMultiples";
    std::uint32_t max_multiplicity = 64;
    std::optional<std::uint32_t> min_module_difference;
    std::optional<std::uint32_t> max_ring_difference;
    std::optional<std::uint64_t> delay_ticks;  ///< larger than window_ticks; absent: no delayeds
};

struct Pipeline {
    std::string backend = "auto";  ///< auto | cuda | cpu
    std::string sort = "auto";     ///< CUDA back-end: a word of gpu/sort/engine.hpp
    std::uint32_t threads = 0;     ///< CPU back-end; 0: one per core
    std::uint32_t slice_frames = 262'144;
    std::uint32_t slice_interval_ms = 20;  ///< a slice that is not full is processed after this long
    std::uint64_t max_pending_singles = 16U << 20;
};

struct ListMode {
    std::uint32_t block_bytes = 1U << 20;    ///< a multiple of 64
    std::uint32_t sync_interval_ms = 1'000;  ///< a block that is not full is written, and the file synced
    std::uint32_t queue_blocks = 64;         ///< blocks that may wait for the disk
    bool write_singles = false;
    std::uint64_t split_bytes = 0;  ///< a file does not grow above; 0: there is one
    double split_s = 0;             ///< nor hold more detector time; 0: there is one
    bool write_raw = false;         ///< every datagram as received, to raw.pcap
};

struct Control {
    std::string socket = "/run/petacqd/control.sock";
    std::string socket_mode = "0660";  ///< octal; who may connect, and so look
    std::string group = "petacq";      ///< who may start and stop; the socket's group
    std::uint32_t max_clients = 128;
    std::uint64_t max_request_bytes = 1U << 20;
    std::uint64_t send_buffer_bytes = 4U << 20;  ///< a client that lets more pile up is disconnected
};

struct Http {
    std::string listen = "127.0.0.1:9680";  ///< ADDRESS:PORT, IPv6 in brackets; empty: no HTTP
    bool allow_control = false;             ///< POST /control/start and /control/stop
    std::vector<std::string> host_names;    ///< names in a Host header beside localhost
    std::uint32_t max_connections = 64;
    std::uint32_t request_timeout_ms = 10'000;  ///< to send a request, and to take its answer
    std::uint32_t idle_timeout_ms = 30'000;     ///< between requests
    std::uint32_t max_request_bytes = 65'536;   ///< of a body
    std::string chart_library = "/usr/share/javascript/chart.js/chart.min.js";
};

/// From where on the daemon calls itself degraded.
struct Health {
    double max_loss_fraction = 1e-4;  ///< of the datagrams of about a second
    double max_temperature_C = 50;    // NOLINT(readability-identifier-naming): the unit's spelling
    std::uint64_t min_disk_free_bytes = 1U << 30;
    std::uint32_t min_disk_time_s = 600;   ///< until the disk is full, while a run is written
    std::uint32_t max_latency_ms = 5'000;  ///< p99, from arrival to write
};

/// What the figures called estimates assume.
struct Estimates {
    double scatter_fraction = 0.15;      ///< of trues and scatters together
    std::optional<double> dead_time_ns;  ///< of a detector unit; absent: no estimate of dead time
};

struct Configuration {
    std::filesystem::path scanner;  ///< paths are absolute here; in the file, relative to it
    std::filesystem::path calibration;
    std::filesystem::path data_dir;
    Receive receive;
    Sources sources;
    FrameMarkers frame;
    Watermark watermark;
    Energy energy;
    Coincidence coincidence;
    Pipeline pipeline;
    ListMode listmode;
    Control control;
    Http http;
    Health health;
    Estimates estimates;
    std::string log_level = "info";  ///< trace | debug | info | warning | error

    /// The whole configuration with defaults filled in and paths absolute, as it is recorded in run.json.
    nlohmann::json document;
};

/// Reads, checks against the schema and fills in defaults. Throws config::Error.
Configuration load_configuration(const std::filesystem::path& file);
/// The same from a parsed document; relative paths are taken relative to `directory`.
Configuration configuration_from_json(const nlohmann::json& document, const std::filesystem::path& directory);
/// What only the two together can tell, such as a module difference that no pair of crystals can have. Throws
/// config::Error.
void check_against_scanner(const Configuration& configuration, const Scanner& scanner);
/// The schema, as compiled into the program (text of config/petacqd.schema.json).
const nlohmann::json& configuration_schema();

}  // namespace petacq::config
