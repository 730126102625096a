// Decides which datagrams are accepted: well-formed ones of known senders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "net/batch.hpp"
#include "net/endpoint.hpp"
#include "net/wire.hpp"

namespace petacq::net {

struct ReceiverOptions;

/// Safe from any thread. Each decision takes a constant time, however many senders are known.
class Admission {
  public:
    explicit Admission(const ReceiverOptions& options);

    /// Checks a payload from `sender`, and reads its header. Whether a sender is known by its address is
    /// decided first, so that nothing of what unknown senders send is looked at.
    Admitted judge(Endpoint sender, const std::byte* data, std::size_t size, DatagramHeader& header) const {
        return judge(sender, header,
                     [&] { return parse_datagram(framing_, frames_.version, data, size, header); });
    }
    /// The same for another format: `parse` checks a payload and fills in `header`.
    template <class Parse>
    Admitted judge(Endpoint sender, const DatagramHeader& header, Parse parse) const {
        if (!may_send(sender)) return Admitted::unknown_source;
        if (parse() != Malformed::none) return Admitted::malformed;
        if (!address_of_id_.empty()) {
            const std::uint32_t address = address_of_id_[header.source];
            if (address != any_address && address != sender.address) return Admitted::unknown_source;
        }
        return Admitted::yes;
    }
    /// Bytes before the first frame.
    [[nodiscard]] std::size_t header_size() const {
        return framing_ == Framing::sequenced ? header_bytes : 0;
    }
    /// Fills in the record of an accepted datagram of `size` bytes whose first frame is at `first`.
    void describe(const DatagramHeader& header, Endpoint sender, const std::byte* first, std::size_t size,
                  Datagram& out) const {
        const std::size_t frames = (size - header_size()) / frame_bytes;
        out.sequence = framing_ == Framing::sequenced ? header.sequence : fingerprint_of(first, frames);
        out.source = header.source;
        out.flags = header.flags;
        out.frames = static_cast<std::uint32_t>(frames);
        const ValidTimes times = valid_times(frames_, modules_of(header, sender), first, frames);
        out.first_time = times.first;
        out.last_time = times.last;
        out.timed_frames = static_cast<std::uint16_t>(times.frames);
        out.first_bdm = times.first_bdm;
        out.last_bdm = times.last_bdm;
        out.hits = times.hits;
        out.temperature_16ths = times.temperature_16ths;
    }
    /// The modules whose frames the sender of an accepted datagram carries.
    [[nodiscard]] const Modules& modules_of(const DatagramHeader& header, Endpoint sender) const {
        if (modules_.empty()) return every_module_;
        return modules_[framing_ == Framing::bare ? senders_->find(sender) : number_of_id_[header.source]];
    }
    [[nodiscard]] const FrameCheck& frames() const { return frames_; }

  private:
    // Neither is the address of a sender.
    static constexpr std::uint32_t no_address = 0;
    static constexpr std::uint32_t any_address = UINT32_MAX;

    [[nodiscard]] bool may_send(Endpoint sender) const {
        if (addresses_ && addresses_->find({sender.address, 0}) == SenderTable::none) return false;
        return !senders_ || senders_->find(sender) != SenderTable::none;
    }

    Framing framing_;
    FrameCheck frames_;
    std::optional<SenderTable> addresses_;      // absent: all
    std::optional<SenderTable> senders_;        // bare framing, with its number; absent: all
    std::vector<std::uint32_t> address_of_id_;  // sequenced framing: [id]; empty: all ids from any address
    std::vector<std::uint16_t> number_of_id_;   // [id] the number of a source in the list
    std::vector<Modules> modules_;              // [number]; empty: no list
    Modules every_module_;                      // of the scanner
};

}  // namespace petacq::net
