// SourceTable: which slot belongs to which sender, and what remains of a sender that loses it.
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "daemon/tracking/source_table.hpp"
#include "tests/daemon/tracking/clocks.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;

namespace {

/// Fills the table with proven sources, heard at `now`: their ids are their slots.
void fill(SourceTable& table, std::int64_t now) {
    for (std::size_t id = 0; id < SourceTable::max_sources; ++id) {
        Source& source = table[table.take_slot(datagram_of(static_cast<std::uint16_t>(id)), now)];
        source.believed = true;
        source.last_seen = now;
    }
}

}  // namespace

TEST_CASE("a sequenced source is known by its id, whoever sends it") {
    const TrackerOptions options = usual_options();
    SourceTable table(options);
    net::Datagram d = datagram_of(65'535);
    CHECK(table.slot_of(d) == SourceTable::nobody);
    CHECK(table.take_slot(d, 0) == 0);
    CHECK(table.take_slot(datagram_of(0), 0) == 1);
    d.address = 1;
    d.port = 2;
    CHECK(table.slot_of(d) == 0);
    CHECK(table.all().size() == 2);
    CHECK(table[0].id == 65'535);
}

TEST_CASE("a bare source is known by its address and port") {
    TrackerOptions options = usual_options();
    options.framing = net::Framing::bare;
    SourceTable table(options);
    net::Datagram d = datagram_of(1, options.framing);
    CHECK(table.take_slot(d, 0) == 0);
    ++d.address;
    CHECK(table.slot_of(d) == SourceTable::nobody);
    CHECK(table.take_slot(d, 0) == 1);
    ++d.port;
    CHECK(table.take_slot(d, 0) == 2);
    CHECK(table[2].port == d.port);
    CHECK(table[2].address == d.address);
}

TEST_CASE("expected sources have the first slots in their order, heard or not") {
    TrackerOptions options = usual_options();
    options.framing = GENERATE(net::Framing::sequenced, net::Framing::bare);
    options.expected = {9, 0};
    options.expected_senders = {{0x7F000001, 10'009}, {0x7F000001, 10'000}};
    SourceTable table(options);
    CHECK(table.expected().size() == 2);
    CHECK(table.slot_of(datagram_of(9, options.framing)) == 0);
    CHECK(table.take_slot(datagram_of(5, options.framing), 0) == 2);
    CHECK(table.take_slot(datagram_of(0, options.framing), 0) == 1);
    CHECK(table.expected().size() == 2);
    CHECK_FALSE(table.expected()[0].last_seen);
}

TEST_CASE("a list of expected sources that cannot be kept is refused") {
    TrackerOptions options = usual_options();
    options.expected = {3, 4, 3};
    CHECK_THROWS_WITH(SourceTable(options), "source 3 is listed twice");
    options.expected.assign(SourceTable::max_sources + 1, 0);
    CHECK_THROWS_WITH(SourceTable(options), "at most 4096 sources can be expected, not 4097");
    options.framing = net::Framing::bare;
    options.expected_senders = {{0x7F000001, 80}, {0x7F000001, 80}};
    CHECK_THROWS_WITH(SourceTable(options), "source 127.0.0.1:80 is listed twice");
}

TEST_CASE("a proven source keeps its slot until it has been silent for ten timeouts") {
    const TrackerOptions options = usual_options();
    SourceTable table(options);
    fill(table, 0);
    const net::Datagram another = datagram_of(50'000);
    const std::int64_t silent = 10 * options.source_timeout_ns;
    CHECK(table.take_slot(another, silent - 1) == SourceTable::nobody);
    CHECK(table.totals().too_many_sources == 1);
    CHECK(table.replaced() == 0);
    const std::size_t slot = table.take_slot(another, silent);
    REQUIRE(slot < SourceTable::max_sources);
    CHECK(table.slot_of(another) == slot);
    CHECK(table.slot_of(datagram_of(static_cast<std::uint16_t>(slot))) == SourceTable::nobody);
    CHECK(table.replaced() == 1);
    CHECK(table.totals().too_many_sources == 1);
}

TEST_CASE("a source that was never proven loses its slot at once, and its counts stay") {
    const TrackerOptions options = usual_options();
    SourceTable table(options);
    fill(table, 0);
    Source& unproven = table[3];
    unproven.believed = false;
    unproven.datagrams = 5;
    unproven.end_of_stream = 1;
    unproven.jumped_datagrams = 2;
    unproven.clock_jumps = 3;
    unproven.steps_back = 4;
    for (const std::uint64_t number : {1, 2, 5, 5})
        unproven.sequence.observe(number);
    unproven.watch.observe({5, 90, {}, {}, SequenceVerdict::in_order}, unproven.sequence);
    table[4].datagrams = 7;
    CHECK(table.take_slot(datagram_of(50'000), 0) == 3);
    CHECK(table[3].datagrams == 0);
    const TrackerTotals totals = table.totals();
    CHECK(totals.accepted == 12);
    CHECK(totals.end_of_stream == 1);
    CHECK(totals.jumped_datagrams == 2);
    CHECK(totals.clock_jumps == 3);
    CHECK(totals.stepped_back == 4);
    CHECK(totals.lost == 2);
    CHECK(totals.duplicate == 1);
}

TEST_CASE("an expected source that is never heard keeps its slot") {
    TrackerOptions options = usual_options();
    options.expected.resize(SourceTable::max_sources - 1);
    std::iota(options.expected.begin(), options.expected.end(), std::uint16_t{0});
    SourceTable table(options);
    CHECK(table.take_slot(datagram_of(50'000), 0) == SourceTable::max_sources - 1);
    CHECK(table.take_slot(datagram_of(50'001), 0) == SourceTable::max_sources - 1);
    CHECK(table.take_slot(datagram_of(50'002), 0) == SourceTable::max_sources - 1);
    CHECK(table.slot_of(datagram_of(50'000)) == SourceTable::nobody);
    CHECK(table.slot_of(datagram_of(0)) == 0);
}

TEST_CASE("where all sources are expected, there is no slot for another") {
    TrackerOptions options = usual_options();
    options.expected.resize(SourceTable::max_sources);
    std::iota(options.expected.begin(), options.expected.end(), std::uint16_t{0});
    SourceTable table(options);
    CHECK(table.take_slot(datagram_of(50'000), INT64_MAX) == SourceTable::nobody);
    CHECK(table.totals().too_many_sources == 1);
}
