// Which slot of SourceTracker belongs to which source.
#include <stdexcept>
#include <string>

#include "daemon/tracking/source_tracker.hpp"

namespace petacq::daemon {

namespace {

/// A sender without a slot looks at this many, so that its cost does not grow with the number of sources.
constexpr std::size_t tries = 8;
/// A source that has been silent for this many timeouts may be replaced.
constexpr std::int64_t long_silence = 10;

}  // namespace

/// Gives the expected sources the first slots, in their order.
void SourceTracker::expect() {
    const bool bare = options_.framing == net::Framing::bare;
    if (!bare) index_of_id_.resize(1U << 16);
    expected_ = bare ? options_.expected_senders.size() : options_.expected.size();
    if (expected_ > max_sources) {
        throw std::invalid_argument("at most " + std::to_string(max_sources) +
                                    " sources can be expected, not " + std::to_string(expected_));
    }
    next_slot_ = expected_;
    for (std::size_t i = 0; i < expected_; ++i) {
        net::Datagram d;
        if (bare) {
            d.address = options_.expected_senders[i].address;
            d.port = options_.expected_senders[i].port;
        } else {
            d.source = options_.expected[i];
        }
        if (slot_of(d) != nobody) {
            throw std::invalid_argument(
                "source " + (bare ? net::to_text({d.address, d.port}) : std::to_string(d.source)) +
                " is listed twice");
        }
        sources_.emplace_back(options_);
        enter(i, d);
    }
}

std::size_t SourceTracker::slot_of(const net::Datagram& d) const {
    if (options_.framing == net::Framing::sequenced) {
        const std::uint16_t entry = index_of_id_[d.source];
        return entry == 0 ? nobody : entry - 1U;
    }
    const std::uint16_t number = index_of_sender_.find({d.address, d.port});
    return number == net::SenderTable::none ? nobody : number;
}

/// The slot of the sender of a datagram, which gets one if it has none; nobody if none is free.
std::size_t SourceTracker::find(const net::Datagram& d, std::int64_t now_ns) {
    const std::size_t known = slot_of(d);
    if (known != nobody) return known;
    const std::size_t index = take_slot(now_ns);
    if (index != nobody) enter(index, d);
    return index;
}

/// A fresh slot, or one of the next few that may be used again.
std::size_t SourceTracker::take_slot(std::int64_t now_ns) {
    if (sources_.size() < max_sources) {
        sources_.emplace_back(options_);
        return sources_.size() - 1;
    }
    if (expected_ == max_sources) return nobody;
    for (std::size_t i = 0; i < tries; ++i) {
        const std::size_t index = next_slot_;
        next_slot_ = next_slot_ + 1 < max_sources ? next_slot_ + 1 : expected_;
        if (!may_be_replaced(sources_[index], now_ns)) continue;
        vacate(index);
        return index;
    }
    return nobody;
}

bool SourceTracker::may_be_replaced(const Source& source, std::int64_t now_ns) const {
    if (!source.believed) return true;
    return source.seen_ns && now_ns - *source.seen_ns >= long_silence * options_.source_timeout_ns;
}

void SourceTracker::vacate(std::size_t index) {
    Source& source = sources_[index];
    if (options_.framing == net::Framing::sequenced) {
        index_of_id_[source.id] = 0;
    } else {
        index_of_sender_.erase({source.address, source.port});
    }
    add(source, replaced_);
    ++replacements_;
    source = Source(options_);
}

void SourceTracker::enter(std::size_t index, const net::Datagram& first) {
    Source& source = sources_[index];
    source.id = first.source;
    if (options_.framing == net::Framing::sequenced) {
        index_of_id_[first.source] = static_cast<std::uint16_t>(index + 1);
        return;
    }
    source.address = first.address;
    source.port = first.port;
    index_of_sender_.insert({first.address, first.port}, static_cast<std::uint16_t>(index));
}

}  // namespace petacq::daemon
