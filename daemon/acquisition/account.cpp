#include "daemon/acquisition/account.hpp"

#include <utility>

namespace petacq::daemon {

Account::Account(std::vector<const net::ReceiverCounters*> receivers, net::Framing framing)
    : receivers_(std::move(receivers)) {
    counted_.numbered = framing == net::Framing::sequenced;
}

void Account::add(const gpu::SliceResult& result) {
    counted_.frames += result.frames;
    static_cast<gpu::SingleCounts&>(counted_.singles) += result.counts;
    counted_.pairs.prompts_found += result.counts.prompts;
    counted_.pairs.delayeds_found += result.counts.delayeds;
    counted_.saved_singles.found += result.singles.size();
    counted_.gammas += result.gamma_counts;
    counted_.triples.found += result.triples.size();
    static_cast<gpu::TagCounts&>(counted_.tags) += result.tag_counts;
    counted_.tags.ordered += result.tags.size();
    counted_.tags.found += result.tags.size();
    for (const gpu::Tag& tag : result.tags)
        latest_tags_[tag.channel % tag_channels * tag_kinds + tag.kind] = tag;
}

void Account::count_here(const net::Datagram& datagram) {
    ReceiverTotals& c = counted_here_;
    c.datagrams_received += datagram.datagrams;
    c.bytes_received += std::uint64_t{datagram.bytes} * datagram.datagrams;
    switch (datagram.admitted) {
        case net::Admitted::yes:
            c.datagrams_delivered += datagram.datagrams;
            break;
        case net::Admitted::malformed:
            ++c.datagrams_malformed;
            break;
        case net::Admitted::unknown_source:
            ++c.datagrams_unknown_source;
            break;
    }
}

Ledger Account::total(ReadingMode reading, const TrackerTotals& sources, std::uint64_t frames_under_way,
                      const Waiting& waiting) const {
    Ledger ledger = counted_;
    DatagramLedger& d = ledger.datagrams;
#define PETACQ_ENTER(section, name, ...) d.name = sources.name;
    PETACQ_TRACKER_COUNTERS(PETACQ_ENTER)
#undef PETACQ_ENTER
    d.board_lost = board_lost_;
    d.duplicates_suspected = duplicates_suspected_;
    ReceiverTotals sum = counted_here_;
    for (const net::ReceiverCounters* receiver : receivers_)
        sum += reading == ReadingMode::one_moment ? read_totals_at_one_moment(*receiver)
                                                  : read_totals(*receiver);
#define PETACQ_ENTER(section, name, ...) d.name = sum.datagrams_##name;
    PETACQ_RECEIVER_COUNTERS(PETACQ_ENTER)
#undef PETACQ_ENTER
    d.in_flight_at_end = sum.datagrams_delivered - datagrams_;
    d.frames = frames_;
    d.frames_in_flight_at_end = frames_under_way;
    ledger.count_drops_as_lost();
    ledger.singles.pending_at_end = waiting.singles;
    ledger.tags.pending_at_end = waiting.tags;
    return ledger;
}

std::vector<gpu::Tag> Account::latest_tags() const {
    std::vector<gpu::Tag> latest;
    for (const std::optional<gpu::Tag>& tag : latest_tags_)
        if (tag) latest.push_back(*tag);
    return latest;
}

std::uint64_t Account::bytes_received() const {
    std::uint64_t bytes = counted_here_.bytes_received;
    for (const net::ReceiverCounters* receiver : receivers_)
        bytes += receiver->bytes_received.value();
    return bytes;
}

}  // namespace petacq::daemon
