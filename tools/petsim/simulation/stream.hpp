// One source on the wire: from hits to datagrams, including the faults of the board and of the network.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "net/wire.hpp"
#include "tools/petsim/detector/detector.hpp"
#include "tools/petsim/detector/temperature.hpp"
#include "tools/petsim/random/random.hpp"
#include "tools/petsim/simulation/events.hpp"
#include "tools/petsim/simulation/inverse_calibration.hpp"
#include "tools/petsim/simulation/options.hpp"
#include "tools/petsim/simulation/statistics.hpp"
#include "tools/petsim/simulation/truth.hpp"

namespace petacq::sim {

/// A finished datagram that is waiting to be sent.
struct Packet {
    std::uint64_t key = 0;    ///< ticks at which it is sent
    std::uint64_t order = 0;  ///< within its source; never contradicts the key
    std::uint64_t sequence = 0;
    std::uint16_t source = 0;  ///< its number
    std::uint16_t epoch = 0;   ///< board resets before it
    std::uint32_t frames = 0;  ///< of hits
    std::uint32_t tags = 0;
    std::uint32_t copies = 1;
    bool malformed = false;
    std::array<std::uint16_t, 5> by_status{};  ///< frames that cannot be converted, by Conversion::Status
    std::vector<std::byte> bytes;
};

/// The output of the streams.
struct StreamOutput {
    std::vector<Packet> packets;  ///< in order within each source, with keys that never fall
    std::vector<TruthRecord> truth;
    bool want_truth = false;
    std::vector<std::vector<std::byte>> spare;  ///< buffers for reuse

    std::vector<std::byte> take_buffer();
};

class SourceStream {
  public:
    /// `number`: position among the sources; `id`: in the headers. The arguments passed by reference or
    /// pointer must outlive the stream. `detector`: the true one, if it made the hits. `tags`: those to send
    /// besides the tags of dead time, in order of time.
    SourceStream(std::uint16_t number, const config::Source& source, const config::Scanner& scanner,
                 const InverseCalibration& calibration, const Detector* detector, const Options& options,
                 std::uint64_t begin_ticks, std::vector<net::TagFrame> tags, StreamOutput& output);

    /// Takes hits in order of raw time. Those before `limit` become final; the others wait. No hit may come
    /// later that would pile up on one of these.
    void take(std::span<const Hit> hits, std::uint64_t limit);
    /// Ends the stream at raw time `end`.
    void finish(std::uint64_t end);
    [[nodiscard]] SourceStatistics& statistics() { return statistics_; }

  private:
    static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();
    enum class Fate : std::uint8_t { sent, lost, held };
    struct Held {
        Packet packet;
        std::uint32_t remaining;
    };
    struct Jump {
        std::uint64_t at;
        std::uint64_t ticks;  // modulo 2^64
        std::uint64_t datagrams;
    };
    struct Interval {
        std::uint64_t from;
        std::uint64_t to;
    };

    void process(std::span<const Hit> hits, std::uint64_t limit);
    [[nodiscard]] bool takes(const Hit& hit);
    void extend_dead_time(const Hit& hit);
    void append_pile(std::span<const Hit> hits, std::size_t first);
    [[nodiscard]] std::int64_t true_offset(std::uint32_t crystal) const;
    [[nodiscard]] bool silent(const Hit& hit) const;
    void append(const Hit& hit, std::uint16_t hits);
    void append_tag(const net::TagFrame& tag);
    void send_tags(std::uint64_t time);
    void send_dead_time(std::uint64_t time);
    void note_truth(TruthRecord record);
    std::byte* next_frame(std::uint64_t time);
    void count_frame(std::uint64_t time);
    void advance(std::uint64_t time);
    void handle_event();
    void schedule();
    void begin_datagram(std::uint64_t time);
    Packet seal(std::uint64_t at, bool end_of_stream);
    void complete(std::uint64_t at, bool end_of_stream);
    Fate apply_faults(Packet& packet, bool spared);
    void corrupt(Packet& packet, Field field, std::uint16_t& flags);
    void corrupt_frame(Packet& packet, Field field);
    std::uint32_t other(std::uint32_t value, std::uint32_t valid, std::uint32_t representable);
    void push(Packet packet);
    void release_held();
    void leave_truth(unsigned flags);
    void update_temperatures(std::uint64_t time);

    const InverseCalibration& calibration_;
    const Detector* detector_;
    const Options& options_;
    StreamOutput& output_;
    std::uint16_t number_;
    std::uint16_t id_;
    Random random_;
    SourceStatistics statistics_;

    // In ticks.
    double tick_ps_;
    std::uint64_t flush_;
    std::uint64_t heartbeat_;
    std::uint64_t skew_;
    double jitter_;
    std::uint64_t temperature_step_;
    std::uint64_t pile_up_;  // hits of a unit within this time of one are added to it
    /// Frames may convert to another crystal than that of their hit, or to none.
    bool convert_all_;

    std::size_t header_;
    std::uint32_t capacity_;  // frames of a datagram
    std::vector<std::byte> buffer_;
    std::uint32_t count_ = 0;           // of the datagram being filled
    std::uint32_t tag_count_ = 0;       // of these
    std::vector<TruthRecord> records_;  // records of the datagram being filled
    std::array<std::uint16_t, 5> by_status_{};
    std::uint64_t shift_ = 0;  // added to raw times, modulo 2^64
    std::uint64_t sequence_ = 0;
    std::uint16_t shift_flags_ = 0;
    std::uint16_t epoch_ = 0;
    bool epoch_begins_ = true;
    std::uint64_t base_ = 0;  // raw time of the last reset
    std::uint64_t last_key_ = 0;
    std::uint64_t order_ = 0;
    std::vector<Held> held_;
    std::vector<Hit> carry_;
    std::vector<Hit> merged_;
    std::vector<std::uint8_t> piled_;  // [hit] whether an earlier one has taken it

    std::uint64_t next_event_ = 0;
    std::uint64_t flush_at_ = never;
    std::uint64_t heartbeat_at_ = never;
    std::uint64_t temperature_at_ = 0;
    std::uint64_t silent_until_ = 0;
    std::uint64_t tag_at_ = never;
    std::uint64_t dead_time_tag_at_ = never;
    std::uint64_t dead_time_step_ = 0;
    std::uint64_t blind_ = 0;  // ticks of all units, also those to come
    std::uint64_t blind_reported_ = 0;
    std::vector<net::TagFrame> tags_;
    std::size_t tags_done_ = 0;
    std::vector<std::uint32_t> units_;  // of the source
    std::vector<Jump> jumps_;
    std::vector<std::uint64_t> resets_;  // to come, the next one last
    std::vector<Interval> silences_;     // to come, the next one last
    std::vector<std::pair<std::uint32_t, Interval>> silent_units_;
    std::vector<std::uint64_t> ready_;       // [unit] end of its dead time
    std::vector<std::int16_t> temperature_;  // [unit]
    Temperatures temperatures_;
};

}  // namespace petacq::sim
