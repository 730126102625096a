#include "daemon/acquisition/account.hpp"

#include <utility>

#include "net/receiver_totals.hpp"

namespace petacq::daemon {

Account::Account(std::vector<const net::ReceiverCounters*> receivers, net::Framing framing)
    : receivers_(std::move(receivers)) {
    counted_.loss_known = framing == net::Framing::sequenced;
}

void Account::add(const gpu::SliceResult& result) {
    counted_.frames += result.frames;
    static_cast<gpu::SingleCounts&>(counted_.singles) += result.counts;
    counted_.pairs.prompts_found += result.counts.prompts;
    counted_.pairs.delayeds_found += result.counts.delayeds;
    counted_.saved_singles.found += result.singles.size();
}

Ledger Account::total(Reading reading, const TrackerTotals& sources, std::uint64_t frames_under_way,
                      std::uint64_t pending) const {
    Ledger ledger = counted_;
    DatagramLedger& d = ledger.datagrams;
    d.accepted = sources.accepted;
    d.duplicate = sources.duplicate;
    d.too_many_sources = sources.too_many_sources;
    d.lost = sources.lost;
    d.reordered = sources.reordered;
    d.stray = sources.stray;
    d.restarted = sources.restarted;
    d.end_of_stream = sources.end_of_stream;
    std::uint64_t delivered = 0;
    for (const net::ReceiverCounters* receiver : receivers_) {
        const net::ReceiverTotals r = reading == Reading::one_moment
                                          ? net::read_totals_at_one_moment(*receiver)
                                          : net::read_totals(*receiver);
        d.received += r.datagrams_received;
        d.malformed += r.datagrams_malformed;
        d.unknown_source += r.datagrams_unknown_source;
        d.dropped_no_buffer += r.datagrams_dropped_no_buffer;
        d.dropped_kernel += r.datagrams_dropped_kernel;
        d.discarded_backlog += r.datagrams_discarded_backlog;
        delivered += r.datagrams_delivered;
    }
    d.in_flight_at_end = delivered - datagrams_;
    d.frames = frames_;
    d.frames_in_flight_at_end = frames_under_way;
    ledger.singles.pending_at_end = pending;
    return ledger;
}

std::uint64_t Account::bytes_received() const {
    std::uint64_t bytes = 0;
    for (const net::ReceiverCounters* receiver : receivers_)
        bytes += receiver->bytes_received.value();
    return bytes;
}

}  // namespace petacq::daemon
