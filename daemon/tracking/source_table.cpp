#include "daemon/tracking/source_table.hpp"

#include <stdexcept>
#include <string>

namespace petacq::daemon {

namespace {

/// A sender without a slot looks at this many, so that its cost does not grow with the number of sources.
constexpr std::size_t tries = 8;
/// A source that has been silent for this many timeouts may be replaced.
constexpr std::int64_t long_silence = 10;

void add(const Source& source, TrackerTotals& t) {
    const SequenceCounts& c = source.sequence.counts();
    t.accepted += source.datagrams;
    t.lost += source.watch.lost(source.sequence);
    t.unnumbered += source.watch.unnumbered(source.sequence);
    t.duplicate += c.duplicate;
    t.repeated += c.repeated;
    t.recovered += c.recovered;
    t.reordered += c.reordered;
    t.restarted += c.restarted;
    t.stray += c.stray;
    t.end_of_stream += source.end_of_stream;
    t.clock_jumps += source.clock_jumps;
    t.stepped_back += source.steps_back;
    t.jumped_datagrams += source.jumped_datagrams;
}

}  // namespace

SourceTable::SourceTable(const TrackerOptions& options)
    : options_(options), index_of_sender_(options.framing == net::Framing::bare ? max_sources : 0) {
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
        sources_.emplace_back(options_.time_limits());
        enter(i, d);
    }
}

std::size_t SourceTable::take_slot(const net::Datagram& d, std::int64_t now_ns) {
    const std::size_t known = slot_of(d);
    if (known != nobody) return known;
    const std::size_t index = free_slot(now_ns);
    if (index != nobody)
        enter(index, d);
    else
        ++without_slot_.too_many_sources;
    return index;
}

/// A fresh slot, or one of the next few that may be used again.
std::size_t SourceTable::free_slot(std::int64_t now_ns) {
    if (sources_.size() < max_sources) {
        sources_.emplace_back(options_.time_limits());
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

bool SourceTable::may_be_replaced(const Source& source, std::int64_t now_ns) const {
    if (!source.believed) return true;
    return source.last_seen && now_ns - *source.last_seen >= long_silence * options_.source_timeout_ns;
}

void SourceTable::vacate(std::size_t index) {
    Source& source = sources_[index];
    if (options_.framing == net::Framing::sequenced) {
        index_of_id_[source.id] = 0;
    } else {
        index_of_sender_.erase({source.address, source.port});
    }
    add(source, without_slot_);
    ++replaced_;
    source = Source(options_.time_limits());
}

void SourceTable::enter(std::size_t index, const net::Datagram& first) {
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

TrackerTotals SourceTable::totals() const {
    TrackerTotals t = without_slot_;
    for (const Source& source : sources_)
        add(source, t);
    return t;
}

}  // namespace petacq::daemon
