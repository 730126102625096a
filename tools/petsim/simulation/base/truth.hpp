// The truth file: for every frame its origin, what the daemon makes of it, and the fate of its datagram.
// docs/reference/petsim.md has the layout.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <thread>
#include <vector>

#include "daemon/system/file.hpp"
#include "net/base/mutex.hpp"

namespace petacq::sim {

/// Flags of a truth record. The low four bits are a HitKind; a tag has none of them.
enum TruthFlag : std::uint16_t {
    truth_photon = 0x0001,     ///< from a source
    truth_scattered = 0x0002,  ///< and scattered in the object
    truth_intrinsic = 0x0004,
    truth_dark = 0x0008,
    truth_lost = 0x0010,        ///< its datagram was never sent
    truth_duplicated = 0x0020,  ///< its datagram was sent twice
    truth_held_back = 0x0040,   ///< its datagram was sent after later ones
    truth_corrupted = 0x0080,   ///< this frame or its datagram's header, see truth_field
    truth_clock_jump = 0x1000,  ///< its time carries a clock jump
    truth_reset = 0x2000,       ///< its time counts from a board reset
    truth_tag = 0x4000,         ///< no hit: see truth_of_tag
    truth_gain_step = 0x8000,   ///< its energy carries a gain step
};
/// Which photon of its annihilation made a hit, where photons are followed.
enum TruthPhoton : std::uint8_t {
    truth_first_photon = 0x1,
    truth_second_photon = 0x2,
    truth_gamma = 0x3,  ///< none of the two, but a gamma of the nuclide
    truth_later = 0x4,  ///< the first energy of its photon, or of the beta of its decay, went elsewhere
};
inline constexpr std::uint16_t truth_field_mask = 0x0F00;  ///< Field + 1 when corrupted, else 0
inline constexpr int truth_field_shift = 8;
inline constexpr std::uint32_t no_crystal = UINT32_MAX;

/// Little-endian as it stands in memory.
struct TruthRecord {
    std::uint64_t annihilation = 0;  ///< 0: none
    std::uint64_t time = 0;          ///< ticks, corrected
    std::uint64_t sequence = 0;
    std::uint32_t crystal = 0;  ///< no_crystal: the frame on the wire cannot be converted
    float energy = 0;           ///< keV
    std::uint16_t source = 0;
    std::uint16_t index = 0;  ///< of the frame in its datagram
    std::uint16_t flags = 0;
    std::uint16_t epoch = 0;  ///< board resets of the source so far

    // The hit itself: only in files of version 2. Zero for tags.
    std::uint64_t true_time = 0;  ///< ticks: raw time plus the true offset, without jumps and resets
    std::uint32_t true_crystal = 0;
    float true_energy = 0;  ///< keV, as measured: with the resolution, without drift and steps of the gain
    std::uint16_t adc = 0;  ///< of the frame, like x and y, before any corruption
    std::uint8_t x = 0;
    std::uint8_t y = 0;
    std::uint16_t hits =
        0;  ///< in the frame; above 1: a pile-up, whose true values are those of the brightest
    std::uint8_t object_scatters = 0;  ///< of its photon, at most 15
    std::uint8_t photon = 0;           ///< TruthPhoton; 0 where photons are not followed
};
static_assert(sizeof(TruthRecord) == 64 && offsetof(TruthRecord, true_time) == 40);
/// Of a record in a file, by the version of the file.
inline constexpr std::size_t truth_bytes_1 = 40;
inline constexpr std::size_t truth_bytes_2 = sizeof(TruthRecord);

/// What the record of a tag holds in place of the number of an annihilation. Its crystal is no_crystal.
constexpr std::uint64_t truth_of_tag(std::uint8_t channel, std::uint8_t kind, std::uint32_t value) {
    return std::uint64_t{kind} << 40U | std::uint64_t{channel} << 32U | value;
}

/// Writes on its own thread; add() waits only if the disk is far behind. One thread calls the functions.
class TruthWriter {
  public:
    /// `with_hits`: writes version 2. Throws std::system_error naming the file.
    TruthWriter(const std::filesystem::path& file, const nlohmann::json& description, bool with_hits = false);
    ~TruthWriter();
    TruthWriter(const TruthWriter&) = delete;
    TruthWriter& operator=(const TruthWriter&) = delete;

    void add(std::span<const TruthRecord> records);
    /// Returns when everything is in the file. Throws std::system_error when writing failed.
    void close();
    [[nodiscard]] std::uint64_t records() const { return records_; }

  private:
    void write_loop();
    void rethrow_failure() PETACQ_REQUIRES(mutex_);

    daemon::File file_;
    bool with_hits_;
    std::uint64_t records_ = 0;
    std::vector<TruthRecord> filling_;
    std::vector<TruthRecord> writing_;  ///< belongs to the thread while busy_
    std::vector<std::byte> packed_;     ///< belongs to the thread
    net::Mutex mutex_;
    std::condition_variable changed_;
    bool busy_ PETACQ_GUARDED_BY(mutex_) = false;
    bool closing_ PETACQ_GUARDED_BY(mutex_) = false;
    std::exception_ptr failure_ PETACQ_GUARDED_BY(mutex_);
    std::thread thread_;
};

/// All records of a truth file, of either version. `description`, if not nullptr, receives what the writer
/// was given. Throws std::runtime_error naming the file and what is wrong with it.
std::vector<TruthRecord> read_truth(const std::filesystem::path& file, nlohmann::json* description = nullptr);

}  // namespace petacq::sim
