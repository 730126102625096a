// The beginnings of a few datagrams as they arrived, whatever becomes of them, for the operator.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "net/endpoint.hpp"
#include "net/mutex.hpp"

namespace petacq::net {

struct DatagramSample {
    static constexpr std::size_t most = 64;  ///< a header and three frames

    Endpoint sender;
    std::size_t bytes = 0;  ///< of the whole datagram
    std::array<std::byte, most> head{};
    std::int64_t arrival_ns = 0;  ///< steady clock
};

/// The latest samples of one receiver, a few a second.
class Samples {
  public:
    static constexpr std::size_t most = 8;

    // For one thread, which receives. None of these allocates.
    /// Whether another sample is due.
    [[nodiscard]] bool wanted() const { return wanted_; }
    /// Whether there is one of this sender.
    [[nodiscard]] bool has(const Endpoint& sender) const;
    void add(const DatagramSample& sample);
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

    List taken_;
    bool wanted_ = true;
    bool changed_ = false;
    mutable Mutex mutex_;
    List published_ PETACQ_GUARDED_BY(mutex_);
};

}  // namespace petacq::net
