// The beginnings of a few datagrams as they arrived, whatever becomes of them, for the operator.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "net/base/mutex.hpp"
#include "net/endpoint.hpp"
#include "net/wire.hpp"

namespace petacq::net {

struct DatagramSample {
    static constexpr std::size_t most = 144;     ///< a header and eight frames
    static constexpr std::size_t max_next = 32;  ///< a header

    Endpoint sender;
    std::size_t bytes = 0;  ///< of the whole datagram
    std::array<std::byte, most> head{};
    std::int64_t arrival_ns = 0;  ///< steady clock
    /// How the sender's next datagram begins: with both, the step of a sequence number shows.
    std::array<std::byte, max_next> next{};
    std::size_t next_bytes = 0;  ///< 0: it has not come yet
    /// Of a foreign format: what petacqd makes of it, as a sequenced datagram of its own format.
    std::array<std::byte, most> translated{};
    std::size_t translated_bytes = 0;  ///< 0: malformed, or petacqd's own format
};

/// The latest samples of one receiver, a few a second.
class Samples {
  public:
    static constexpr std::size_t most = 8;

    /// `version`: of the frames that foreign ones are translated into.
    explicit Samples(FrameVersion version) : version_(version) {}

    // For one thread, which receives. None of these allocates.
    /// Whether another sample is due.
    [[nodiscard]] bool wanted() const { return wanted_; }
    /// Whether the latest lacks the beginning of the next datagram.
    [[nodiscard]] bool wants_next() const { return wants_next_; }
    /// Whether there is one of this sender.
    [[nodiscard]] bool has(const Endpoint& sender) const;
    void add(const DatagramSample& sample);
    /// Only after add(). The next two add to it.
    [[nodiscard]] const DatagramSample& latest() const;
    void add_next(std::span<const std::byte> beginning);
    void add_translated(const DatagramHeader& header, std::span<const std::byte> frames);
    /// Lets other threads see the samples, and asks for another. To be called a few times a second.
    void publish();

    /// Any thread: in no particular order.
    [[nodiscard]] std::vector<DatagramSample> published() const;

  private:
    struct List {
        std::array<DatagramSample, most> all{};
        std::size_t count = 0;
        std::size_t next = 0;  ///< the place that is replaced next
    };

    [[nodiscard]] std::size_t latest_place() const { return (taken_.next + most - 1) % most; }

    const FrameVersion version_;
    List taken_;
    bool wanted_ = true;
    bool wants_next_ = false;
    bool changed_ = false;
    mutable Mutex mutex_;
    List published_ PETACQ_GUARDED_BY(mutex_);
};

}  // namespace petacq::net
