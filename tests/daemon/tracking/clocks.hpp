// Sources with clocks, without a tracker: datagrams as DetectorTime sees them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "daemon/tracking/detector_time.hpp"
#include "daemon/tracking/source_table.hpp"
#include "tests/daemon/tracking/helpers.hpp"

namespace petacq::test {

using Ids = std::vector<std::uint16_t>;

/// Host time at the start of a test.
inline constexpr std::int64_t began = 7'000 * host_ms;

/// A datagram of a source. With bare framing, its id makes the port of the sender.
inline net::Datagram datagram_of(std::uint16_t id, net::Framing framing = net::Framing::sequenced) {
    net::Datagram d;
    d.address = 0x7F000001;
    d.port = static_cast<std::uint16_t>(10'000 + id);
    if (framing == net::Framing::sequenced) d.source = id;
    return d;
}

struct Clocks {
    explicit Clocks(daemon::TrackerOptions o) : options(std::move(o)), table(options), time(options, table) {}

    daemon::Source& source(std::uint16_t id, std::int64_t now = 0) {
        return table[table.take_slot(datagram_of(id, options.framing), now)];
    }
    /// A datagram of 90 frames over 1 ms of detector time.
    daemon::Verdict send(std::uint16_t id, std::uint64_t first, std::int64_t now) {
        daemon::Source& s = source(id, now);
        if (!s.first_seen) s.first_seen = now;
        s.last_seen = now;
        s.bdms.set(id % 10U);
        daemon::Verdict verdict;
        time.decide_if_due(now);
        time.observe(s, {first, daemon::add_or_max(first, ms), 90}, now, verdict);
        return verdict;
    }
    /// The sources send a datagram each per millisecond, from this detector and host time on. Decides at the
    /// end, at the host time that is returned.
    std::int64_t run(const Ids& ids, std::uint64_t from, std::int64_t now, int datagrams) {
        for (int i = 0; i < datagrams; ++i, from = daemon::add_or_max(from, ms), now += host_ms) {
            for (const std::uint16_t id : ids)
                send(id, from, now);
        }
        time.decide(now);
        return now;
    }
    [[nodiscard]] std::size_t members() const {
        std::size_t count = 0;
        for (const daemon::Source& s : table.all())
            count += s.member ? 1 : 0;
        return count;
    }

    const daemon::TrackerOptions options;
    daemon::SourceTable table;
    daemon::DetectorTime time;
};

}  // namespace petacq::test
