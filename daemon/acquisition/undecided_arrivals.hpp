// Arrivals of data whose coincidences are not all decided: the latency to disk counts from these.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace petacq::daemon {

/// Bounded: never allocates. No thread-safety.
class UndecidedArrivals {
  public:
    /// Arrivals beyond this many are not followed, nor more than one in `apart_ns`.
    static constexpr std::size_t capacity = 256;
    static constexpr std::int64_t apart_ns = 1'000'000;

    /// A single is decided once the watermark is more than `reach` ticks past its raw time.
    explicit UndecidedArrivals(std::uint64_t reach) : reach_(reach) {}

    /// Data that arrived at `arrival_ns` of the host's clock and holds nothing newer than `newest_time`.
    void add(std::int64_t arrival_ns, std::uint64_t newest_time);
    /// Removes the arrivals whose data the watermark decides, and returns them in no particular order; valid
    /// until the next call.
    std::span<const std::int64_t> take_decided(std::uint64_t watermark);
    void clear() { count_ = 0; }

  private:
    struct NewestArrival {
        std::int64_t ns = 0;
        std::uint64_t newest_time = 0;
    };
    std::uint64_t reach_;
    std::array<NewestArrival, capacity> waiting_;
    std::size_t count_ = 0;
    std::array<std::int64_t, capacity> decided_{};
    std::optional<std::int64_t> latest_ns_;
};

}  // namespace petacq::daemon
