// Decides which datagrams are accepted: well-formed ones of known senders.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "net/batch.hpp"
#include "net/wire.hpp"

namespace petacq::net {

struct ReceiverOptions;

enum class Admitted : std::uint8_t { yes, malformed, unknown_source };

/// Safe from any thread.
class Admission {
  public:
    explicit Admission(const ReceiverOptions& options);

    /// Checks a payload from `address`, and reads its header.
    Admitted judge(std::uint32_t address, const std::byte* data, std::size_t size,
                   DatagramHeader& header) const {
        const bool known = addresses_.empty() || is_listed(address);
        if (parse_datagram(framing_, data, size, header) != Malformed::none) return Admitted::malformed;
        if (!known || (ids_filtered_ && !ids_[header.source])) return Admitted::unknown_source;
        return Admitted::yes;
    }
    /// Bytes before the first frame.
    [[nodiscard]] std::size_t header_size() const {
        return framing_ == Framing::sequenced ? header_bytes : 0;
    }
    /// Fills in the record of an accepted datagram of `size` bytes whose first frame is at `first`.
    void describe(const DatagramHeader& header, const std::byte* first, std::size_t size,
                  Datagram& out) const {
        const std::size_t frames = (size - header_size()) / frame_bytes;
        out.sequence = header.sequence;
        out.source = header.source;
        out.flags = header.flags;
        out.frames = static_cast<std::uint32_t>(frames);
        if (frames == 0) return;
        out.first_time = frame_time(first);
        out.last_time = frame_time(first + (frames - 1) * frame_bytes);
    }

  private:
    [[nodiscard]] bool is_listed(std::uint32_t address) const;

    Framing framing_;
    std::vector<std::uint32_t> addresses_;  // sorted; empty: all
    bool ids_filtered_;
    std::bitset<65536> ids_;
};

}  // namespace petacq::net
