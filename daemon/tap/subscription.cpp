#include "daemon/tap/subscription.hpp"

#include <algorithm>
#include <cstring>

namespace petacq::daemon {

TapSubscription::TapSubscription(RecordKind kind, std::uint64_t prescale)
    : kind_(kind), prescale_(prescale), record_bytes_(record_bytes_of(kind)) {
    // The pages come here, and not while the acquisition fills them.
    const std::vector<Unit> some(1024);
    while (data_.push(some.data(), some.size()) == some.size()) {
    }
    data_.consume_all([](const Unit&) {});
}

std::uint64_t TapSubscription::offer(const std::shared_ptr<const TapRun>& run, std::uint64_t first,
                                     std::span<const std::byte> records) {
    const std::uint64_t count = records.size() / record_bytes_;
    const std::uint64_t position = (prescale_ - first % prescale_) % prescale_;  // of the first chosen record
    if (position >= count) return 0;
    const std::uint64_t chosen = (count - position - 1) / prescale_ + 1;
    const std::uint64_t room =
        pieces_.write_available() == 0 ? 0 : data_.write_available() * sizeof(Unit) / record_bytes_;
    const std::uint64_t taken = std::min(chosen, room);
    if (taken != 0) {
        push(records, position, taken);
        pieces_.push({run, first + position, taken, dropped_.value()});
    }
    dropped_.add(chosen - taken);
    return chosen - taken;
}

/// REQUIRES: there is room.
void TapSubscription::push(std::span<const std::byte> records, std::uint64_t position, std::uint64_t count) {
    if (prescale_ == 1) {
        const std::byte* const from = records.data() + position * record_bytes_;
        data_.push(reinterpret_cast<const Unit*>(from), count * record_bytes_ / sizeof(Unit));
        return;
    }
    std::array<Unit, 256> some{};
    const std::uint64_t most = sizeof some / record_bytes_;
    while (count != 0) {
        const std::uint64_t now = std::min(count, most);
        auto* to = reinterpret_cast<std::byte*>(some.data());
        for (std::uint64_t i = 0; i < now; ++i, position += prescale_, to += record_bytes_)
            std::memcpy(to, records.data() + position * record_bytes_, record_bytes_);
        data_.push(some.data(), now * record_bytes_ / sizeof(Unit));
        count -= now;
    }
}

TapPiece TapSubscription::take(std::vector<std::byte>& into) {
    TapPiece taken;
    for (std::size_t room = piece_bytes / record_bytes_; room != 0;) {
        if (next_.records == 0 && !pieces_.pop(next_)) break;
        // Pieces that follow each other go together.
        const std::uint64_t expected = taken.first_record + taken.records * prescale_;
        if (taken.records != 0 && (next_.run != taken.run || next_.first_record != expected)) break;
        if (taken.records == 0) {
            taken = next_;
            taken.records = 0;
        }
        const std::uint64_t now = std::min<std::uint64_t>(next_.records, room);
        auto* const to = reinterpret_cast<Unit*>(into.data() + taken.records * record_bytes_);
        data_.pop(to, now * record_bytes_ / sizeof(Unit));
        taken.records += now;
        next_.first_record += now * prescale_;
        next_.records -= now;
        room -= now;
    }
    return taken;
}

}  // namespace petacq::daemon
