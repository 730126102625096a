// The truth file: for every frame where it came from, what a perfect daemon makes of it, and what became of
// its datagram. docs/petsim.md has the layout.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <span>
#include <thread>
#include <vector>

namespace petacq::sim {

/// Flags of a truth record. The low four bits are a HitKind; none of them set never happens.
enum TruthFlag : std::uint16_t {
    truth_photon = 0x0001,     ///< from an annihilation
    truth_scattered = 0x0002,  ///< and scattered in the object
    truth_intrinsic = 0x0004,
    truth_dark = 0x0008,
    truth_lost = 0x0010,        ///< its datagram was never sent
    truth_duplicated = 0x0020,  ///< its datagram was sent twice
    truth_held_back = 0x0040,   ///< its datagram was sent after later ones
    truth_corrupted = 0x0080,   ///< this frame or its datagram's header, see truth_field
    truth_clock_jump = 0x1000,  ///< its time carries a clock jump
    truth_reset = 0x2000,       ///< its time counts from a board reset
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
};
static_assert(sizeof(TruthRecord) == 40);

/// Writes on a thread of its own; add() waits only when the disk is far behind.
class TruthWriter {
  public:
    /// Throws std::system_error naming the file.
    TruthWriter(const std::filesystem::path& file, const nlohmann::json& description);
    ~TruthWriter();
    TruthWriter(const TruthWriter&) = delete;
    TruthWriter& operator=(const TruthWriter&) = delete;

    void add(std::span<const TruthRecord> records);
    /// Everything is in the file when it returns. Throws std::system_error when writing failed.
    void close();
    [[nodiscard]] std::uint64_t records() const { return records_; }

  private:
    void write_loop();
    void rethrow();

    std::filesystem::path path_;
    std::FILE* file_ = nullptr;
    std::uint64_t records_ = 0;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<TruthRecord> filling_;
    std::vector<TruthRecord> writing_;
    bool busy_ = false;
    bool closing_ = false;
    int error_ = 0;
    std::thread thread_;
};

struct Truth {
    nlohmann::json description;
    std::vector<TruthRecord> records;
};
/// Throws std::runtime_error naming the file and what is wrong with it.
Truth read_truth(const std::filesystem::path& file);

}  // namespace petacq::sim
