// The daemon's configuration: one JSON file. config/petacqd.schema.json declares and describes every key,
// with its type, default and range. The lists here give each key its type in the program: X(type, key). The
// members, which have the names of the keys, and their JSON derive from the lists. Members have no defaults
// of their own: values come from the document after the schema's defaults have been filled in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/choices.hpp"
#include "config/scanner/scanner.hpp"

namespace petacq::config {

/// The member that a key is in the struct of its section.
#define PETACQ_KEY_MEMBER(type, key) type key;

/// In JSON a text, "" for none, or a list of texts.
struct Texts {
    std::vector<std::string> all;
};

#define PETACQ_SOCKET_KEYS(X)                      \
    X(std::string, address)                        \
    X(std::uint16_t, port)                         \
    X(std::uint32_t, count)                        \
    X(Texts, multicast_group)                      \
    X(std::string, multicast_interface)            \
    X(std::vector<std::string>, multicast_sources) \
    X(bool, free_bind)                             \
    X(std::vector<int>, cpus)
struct Socket {
    PETACQ_SOCKET_KEYS(PETACQ_KEY_MEMBER)
};

#define PETACQ_RECEIVE_KEYS(X)                                         \
    X(Framing, framing)                                                \
    X(std::filesystem::path, layout) /* empty: petacqd's own frames */ \
    X(std::vector<Socket>, sockets)                                    \
    X(std::uint64_t, receive_buffer_bytes)                             \
    X(bool, gro)                                                       \
    X(std::uint64_t, batch_bytes)                                      \
    X(std::uint32_t, batch_count)                                      \
    X(bool, huge_pages)                                                \
    X(bool, lock_memory)                                               \
    X(std::uint32_t, flush_interval_ms)
struct Receive {
    PETACQ_RECEIVE_KEYS(PETACQ_KEY_MEMBER)
};

/// Whether two sockets would receive on one address and port, be it only some of their addresses.
bool share_port(const Socket& a, const Socket& b);

#define PETACQ_SOURCES_KEYS(X)             \
    X(std::vector<std::uint16_t>, ids)     \
    X(std::vector<std::string>, addresses) \
    X(bool, accept_any)
struct Sources {
    PETACQ_SOURCES_KEYS(PETACQ_KEY_MEMBER)
};

#define PETACQ_FRAME_MARKER_KEYS(X) \
    X(std::uint8_t, head_marker)    \
    X(std::uint8_t, tail_marker)    \
    X(std::uint8_t, tag_marker)
struct FrameMarkers {
    PETACQ_FRAME_MARKER_KEYS(PETACQ_KEY_MEMBER)
};

#define PETACQ_WATERMARK_KEYS(X)         \
    X(std::uint64_t, max_disorder_us)    \
    X(std::uint64_t, max_lag_ms)         \
    X(std::uint64_t, max_jump_ms)        \
    X(std::uint32_t, jump_confirmations) \
    X(std::uint32_t, source_timeout_ms)
struct Watermark {
    PETACQ_WATERMARK_KEYS(PETACQ_KEY_MEMBER)
};

#define PETACQ_ENERGY_KEYS(X) \
    X(bool, filter)           \
    X(double, lower_keV)      \
    X(double, upper_keV)
struct Energy {
    PETACQ_ENERGY_KEYS(PETACQ_KEY_MEMBER)
};

#define PETACQ_COINCIDENCE_KEYS(X)                         \
    X(std::uint32_t, window_ticks)                         \
    X(WindowMode, window_mode)                             \
    X(MultiplesPolicy, multiples_policy)                   \
    X(std::uint32_t, max_multiplicity)                     \
    X(std::optional<std::uint32_t>, min_module_difference) \
    X(std::optional<std::uint32_t>, max_ring_difference)   \
    X(std::optional<std::uint64_t>, delay_ticks)           \
    X(DelayedRule, delayeds)
struct Coincidence {
    PETACQ_COINCIDENCE_KEYS(PETACQ_KEY_MEMBER)
};

/// The keys of the section "gammas" where it is not null.
#define PETACQ_GAMMAS_KEYS(X)      \
    X(double, lower_keV)           \
    X(double, upper_keV)           \
    X(std::uint32_t, before_ticks) \
    X(std::uint32_t, after_ticks)  \
    X(GammaPolicy, policy)         \
    X(std::optional<std::uint64_t>, delay_ticks)
struct Gammas {
    PETACQ_GAMMAS_KEYS(PETACQ_KEY_MEMBER)
};

#define PETACQ_PIPELINE_KEYS(X)                           \
    X(Backend, backend)                                   \
    X(std::optional<std::vector<std::uint32_t>>, devices) \
    X(SortEngine, sort)                                   \
    X(std::uint32_t, threads)                             \
    X(std::uint32_t, slice_frames)                        \
    X(std::uint32_t, slice_interval_ms)                   \
    X(std::uint64_t, max_pending_singles)
struct Pipeline {
    PETACQ_PIPELINE_KEYS(PETACQ_KEY_MEMBER)
};

#define PETACQ_LISTMODE_KEYS(X)        \
    X(std::uint32_t, block_bytes)      \
    X(std::uint32_t, sync_interval_ms) \
    X(std::uint32_t, queue_blocks)     \
    X(std::uint32_t, files)            \
    X(Compression, compression)        \
    X(bool, write_singles)             \
    X(bool, write_coincidences)        \
    X(std::uint64_t, split_bytes)      \
    X(double, split_s)                 \
    X(bool, write_raw)
struct ListMode {
    PETACQ_LISTMODE_KEYS(PETACQ_KEY_MEMBER)
};

#define PETACQ_SPECTRA_KEYS(X) X(bool, enabled)
struct SpectraSettings {
    PETACQ_SPECTRA_KEYS(PETACQ_KEY_MEMBER)
};

#define PETACQ_CONTROL_KEYS(X)              \
    X(std::string, socket)                  \
    X(std::string, socket_mode) /* octal */ \
    X(std::string, group)                   \
    X(std::uint32_t, max_clients)           \
    X(std::uint64_t, max_request_bytes)     \
    X(std::uint64_t, send_buffer_bytes)
struct Control {
    PETACQ_CONTROL_KEYS(PETACQ_KEY_MEMBER)
};

#define PETACQ_HTTP_KEYS(X)                 \
    X(std::string, listen)                  \
    X(bool, allow_control)                  \
    X(bool, allow_remote_control)           \
    X(std::string, control_token_file)      \
    X(std::vector<std::string>, host_names) \
    X(std::uint32_t, max_connections)       \
    X(std::uint32_t, request_timeout_ms)    \
    X(std::uint32_t, idle_timeout_ms)       \
    X(std::uint32_t, max_request_bytes)     \
    X(std::string, chart_library)
struct Http {
    PETACQ_HTTP_KEYS(PETACQ_KEY_MEMBER)
};

#define PETACQ_PEER_KEYS(X) X(std::string, url) /* empty: no peer */
struct PeerSettings {
    PETACQ_PEER_KEYS(PETACQ_KEY_MEMBER)
};

#define PETACQ_TAP_KEYS(X)                     \
    X(std::string, socket) /* empty: no tap */ \
    X(std::uint32_t, max_clients)
struct TapSettings {
    PETACQ_TAP_KEYS(PETACQ_KEY_MEMBER)
};

#define PETACQ_QUICK_LOOK_KEYS(X) X(double, interval_s) /* 0: none */
struct QuickLookSettings {
    PETACQ_QUICK_LOOK_KEYS(PETACQ_KEY_MEMBER)
};

#define PETACQ_HEALTH_KEYS(X)             \
    X(double, max_loss_fraction)          \
    X(double, max_temperature_C)          \
    X(std::uint64_t, min_disk_free_bytes) \
    X(std::uint32_t, min_disk_time_s)     \
    X(std::uint32_t, max_latency_ms)
struct Health {
    PETACQ_HEALTH_KEYS(PETACQ_KEY_MEMBER)
};

#define PETACQ_ALARM_KEYS(X)                                                      \
    X(std::vector<std::string>, command) /* program and arguments; empty: none */ \
    X(std::uint32_t, min_interval_s)
struct Alarm {
    PETACQ_ALARM_KEYS(PETACQ_KEY_MEMBER)
};

#define PETACQ_ESTIMATE_KEYS(X)                \
    X(std::optional<double>, scatter_fraction) \
    X(std::string, scatter_fraction_from)      \
    X(std::optional<double>, dead_time_ns)
struct Estimates {
    PETACQ_ESTIMATE_KEYS(PETACQ_KEY_MEMBER)
};

/// All paths are absolute; those in the file are relative to it.
#define PETACQ_CONFIGURATION_KEYS(X)                               \
    X(std::filesystem::path, scanner)                              \
    X(std::filesystem::path, calibration)                          \
    X(std::string, clock)                                          \
    X(std::filesystem::path, data_dir)                             \
    X(Receive, receive)                                            \
    X(Sources, sources)                                            \
    X(FrameMarkers, frame)                                         \
    X(Watermark, watermark)                                        \
    X(Energy, energy)                                              \
    X(Coincidence, coincidence)                                    \
    X(std::optional<Gammas>, gammas) /* absent: none */            \
    X(Pipeline, pipeline)                                          \
    X(ListMode, listmode)                                          \
    X(SpectraSettings, spectra)                                    \
    X(Control, control)                                            \
    X(Http, http)                                                  \
    X(PeerSettings, peer)                                          \
    X(TapSettings, tap)                                            \
    X(QuickLookSettings, quick_look)                               \
    X(Health, health)                                              \
    X(Alarm, alarm)                                                \
    X(Estimates, estimates)                                        \
    X(std::filesystem::path, detector_reference) /* empty: none */ \
    X(PlacementRule, placement)                                    \
    X(LogLevel, log_level)
struct Configuration {
    PETACQ_CONFIGURATION_KEYS(PETACQ_KEY_MEMBER)

    /// Whether triples are found: where only singles are written, gammas are among them.
    [[nodiscard]] bool finds_triples() const { return gammas && listmode.write_coincidences; }
    /// 1 to 3: coincidences, singles, triples.
    [[nodiscard]] std::uint32_t record_kinds() const {
        return (listmode.write_coincidences ? 1U : 0U) + (listmode.write_singles ? 1U : 0U) +
               (finds_triples() ? 1U : 0U);
    }

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
/// The sections "coincidence", "energy" and "gammas" of a document, and back. In reading, a key that is
/// missing has its default, and one that is not known is ignored: another version may have written the
/// section. Throws config::Error for a missing key without default, and for a wrong type.
nlohmann::json to_json(const Coincidence& coincidence);
nlohmann::json to_json(const Energy& energy);
nlohmann::json to_json(const Gammas& gammas);
Coincidence coincidence_from_json(const nlohmann::json& section);
Energy energy_from_json(const nlohmann::json& section);
Gammas gammas_from_json(const nlohmann::json& section);
/// The schema compiled into the program (config/petacqd.schema.json).
const nlohmann::json& configuration_schema();

}  // namespace petacq::config
