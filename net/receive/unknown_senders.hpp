// The senders that may not send and were heard last, for the operator.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "net/base/mutex.hpp"
#include "net/endpoint.hpp"
#include "net/wire.hpp"

namespace petacq::net {

struct ReceiverOptions;

/// One sender: with the id in the header of its datagrams if they are well-formed and sequenced, else known
/// by address and port.
struct UnknownSender {
    Endpoint sender;  ///< of the latest datagram
    std::optional<std::uint16_t> id;
    std::uint64_t datagrams = 0;
    std::uint64_t frames = 0;   ///< in well-formed datagrams
    Modules bdms;               ///< seen in one frame of each datagram, always another
    std::int64_t first_ns = 0;  ///< arrival, steady clock
    std::int64_t latest_ns = 0;

    [[nodiscard]] bool is_same(const UnknownSender& other) const {
        return id == other.id && sender.address == other.sender.address &&
               (id || sender.port == other.sender.port);
    }
    /// Adds what another receiver has heard from the same sender.
    void add(const UnknownSender& other);
};

/// The unknown senders heard last, a fixed number: another one takes the place of the one not heard for
/// longest.
class UnknownSenders {
  public:
    static constexpr std::size_t most = 16;

    explicit UnknownSenders(const ReceiverOptions& options);

    // For one thread, which receives. None of these allocates; heard() takes a constant time.
    void heard(Endpoint sender, const std::byte* data, std::size_t size, std::int64_t now_ns);
    /// The same for a datagram of a foreign format. `header`: nullptr if it is malformed.
    void heard(Endpoint sender, const DatagramHeader* header, std::size_t frames, std::int64_t now_ns);
    /// Lets other threads see what has been heard so far. To be called a few times a second.
    void publish();

    /// Any thread: those heard up to the latest publish(), in no particular order.
    [[nodiscard]] std::vector<UnknownSender> published() const;

  private:
    struct List {
        std::array<UnknownSender, most> all{};
        std::size_t count = 0;
    };

    UnknownSender& note(Endpoint sender, const DatagramHeader* header, std::size_t frames,
                        std::int64_t now_ns);
    UnknownSender& place_of(const UnknownSender& who, std::int64_t now_ns);

    const Framing framing_;
    const FrameCheck frames_;
    List heard_;
    bool changed_ = false;
    mutable Mutex mutex_;
    List published_ PETACQ_GUARDED_BY(mutex_);
};

}  // namespace petacq::net
