// The daemon's configuration: one JSON file. config/petacqd.schema.json declares and describes every key,
// with its type, default and range. The members here have the names of the keys. They have no defaults of
// their own: values come from the document after the schema's defaults have been filled in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/choices.hpp"
#include "config/scanner.hpp"

namespace petacq::config {

/// In JSON a text, "" for none, or a list of texts.
struct Texts {
    std::vector<std::string> all;
};

struct Socket {
    std::string address;
    std::uint16_t port;
    std::uint32_t count;
    Texts multicast_group;
    std::string multicast_interface;
    std::vector<std::string> multicast_sources;
    bool free_bind;
    std::vector<int> cpus;
};

struct Receive {
    Framing framing;
    std::filesystem::path layout;  ///< empty: petacqd's own frames
    std::vector<Socket> sockets;
    std::uint64_t receive_buffer_bytes;
    bool gro;
    std::uint64_t batch_bytes;
    std::uint32_t batch_count;
    bool huge_pages;
    bool lock_memory;
    std::uint32_t flush_interval_ms;
};

/// Whether two sockets would receive on one address and port, be it only some of their addresses.
bool share_port(const Socket& a, const Socket& b);

struct Sources {
    std::vector<std::uint16_t> ids;
    std::vector<std::string> addresses;
    bool accept_any;
};

struct FrameMarkers {
    std::uint8_t head_marker;
    std::uint8_t tail_marker;
    std::uint8_t tag_marker;
};

struct Watermark {
    std::uint64_t max_disorder_us;
    std::uint64_t max_lag_ms;
    std::uint64_t max_jump_ms;
    std::uint32_t jump_confirmations;
    std::uint32_t source_timeout_ms;
};

struct Energy {
    bool filter;
    double lower_keV;  // NOLINT(readability-identifier-naming): the unit's own spelling
    double upper_keV;  // NOLINT(readability-identifier-naming)
};

struct Coincidence {
    std::uint32_t window_ticks;
    WindowMode window_mode;
    MultiplesPolicy multiples_policy;
    std::uint32_t max_multiplicity;
    std::optional<std::uint32_t> min_module_difference;
    std::optional<std::uint32_t> max_ring_difference;
    std::optional<std::uint64_t> delay_ticks;
    DelayedRule delayeds;
};

struct Pipeline {
    Backend backend;
    std::optional<std::vector<std::uint32_t>> devices;
    SortEngine sort;
    std::uint32_t threads;
    std::uint32_t slice_frames;
    std::uint32_t slice_interval_ms;
    std::uint64_t max_pending_singles;
};

struct ListMode {
    std::uint32_t block_bytes;
    std::uint32_t sync_interval_ms;
    std::uint32_t queue_blocks;
    std::uint32_t files;
    Compression compression;
    bool write_singles;
    bool write_coincidences;
    std::uint64_t split_bytes;
    double split_s;
    bool write_raw;

    /// 1 or 2: coincidences, singles.
    [[nodiscard]] std::uint32_t record_kinds() const {
        return (write_coincidences ? 1U : 0U) + (write_singles ? 1U : 0U);
    }
};

struct SpectraSettings {
    bool enabled;
};

struct Control {
    std::string socket;
    std::string socket_mode;  ///< octal
    std::string group;
    std::uint32_t max_clients;
    std::uint64_t max_request_bytes;
    std::uint64_t send_buffer_bytes;
};

struct Http {
    std::string listen;
    bool allow_control;
    bool allow_remote_control;
    std::string control_token_file;
    std::vector<std::string> host_names;
    std::uint32_t max_connections;
    std::uint32_t request_timeout_ms;
    std::uint32_t idle_timeout_ms;
    std::uint32_t max_request_bytes;
    std::string chart_library;
};

struct TapSettings {
    std::string socket;  ///< empty: no tap
    std::uint32_t max_clients;
};

struct QuickLookSettings {
    double interval_s;  ///< 0: none
};

struct Health {
    double max_loss_fraction;
    double max_temperature_C;  // NOLINT(readability-identifier-naming): the unit's spelling
    std::uint64_t min_disk_free_bytes;
    std::uint32_t min_disk_time_s;
    std::uint32_t max_latency_ms;
};

struct Alarm {
    std::vector<std::string> command;  ///< program and arguments; empty: none
    std::uint32_t min_interval_s;
};

struct Estimates {
    double scatter_fraction;
    std::optional<double> dead_time_ns;
};

struct Configuration {
    /// All paths are absolute; those in the file are relative to it.
    std::filesystem::path scanner;
    std::filesystem::path calibration;
    std::string clock;
    std::filesystem::path data_dir;
    Receive receive;
    Sources sources;
    FrameMarkers frame;
    Watermark watermark;
    Energy energy;
    Coincidence coincidence;
    Pipeline pipeline;
    ListMode listmode;
    SpectraSettings spectra;
    Control control;
    Http http;
    TapSettings tap;
    QuickLookSettings quick_look;
    Health health;
    Alarm alarm;
    Estimates estimates;
    std::filesystem::path detector_reference;  ///< empty: none
    PlacementRule placement;
    LogLevel log_level;

    /// The document with defaults filled in and paths absolute, as run.json records it.
    std::shared_ptr<const nlohmann::json> document;
};

/// Reads a file, checks it against the schema and fills in the defaults. Throws config::Error.
Configuration load_configuration(const std::filesystem::path& file);
/// The same for a parsed document. Relative paths are taken relative to `directory`.
Configuration configuration_from_json(const nlohmann::json& document, const std::filesystem::path& directory);
/// Checks that need the scanner, too: no pair of crystals has a module difference above half the ring; it is
/// known who may send. Throws config::Error.
void check_against_scanner(const Configuration& configuration, const Scanner& scanner);
/// The sources that may send, each known by its id or by its address and port: those of the scanner that
/// sources.ids does not leave out; without any in the scanner, those of sources.ids, with no modules given.
/// Empty: senders are not known one by one. The two have passed check_against_scanner().
std::vector<Source> listed_sources(const Configuration& configuration, const Scanner& scanner);
/// Every key with the value of its member: equal to `document`.
nlohmann::json to_json(const Configuration& configuration);
/// The sections "coincidence" and "energy" of a document, and back. The latter throw config::Error if keys
/// are missing or have wrong types.
nlohmann::json to_json(const Coincidence& coincidence);
nlohmann::json to_json(const Energy& energy);
Coincidence coincidence_from_json(const nlohmann::json& section);
Energy energy_from_json(const nlohmann::json& section);
/// The schema compiled into the program (config/petacqd.schema.json).
const nlohmann::json& configuration_schema();

}  // namespace petacq::config
