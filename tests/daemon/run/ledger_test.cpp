#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "daemon/run/ledger.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace petacq::daemon;
using nlohmann::json;

namespace {

const std::vector<std::string> sections{"datagrams",     "frames", "singles", "pairs",
                                        "saved_singles", "gammas", "triples", "tags"};

/// Every identity closes, and every field has a different value.
Ledger closed_ledger(std::uint64_t k) {
    Ledger l;
    auto& d = l.datagrams;
    d.accepted = 1000 * k;
    d.duplicate = 2 * k;
    d.repeated = 15 * k;
    d.malformed = 3 * k;
    d.unknown_source = 4 * k;
    d.too_many_sources = 5 * k;
    d.dropped_no_buffer = 6 * k;
    d.in_flight_at_start = 0;
    d.in_flight_at_end = 25 * k;
    d.received = 1060 * k;
    d.frames = 590 * k + 90 * k;  // hits and tags
    d.frames_in_flight_at_start = 0;
    d.frames_in_flight_at_end = 4 * k;
    d.lost = 70 * k;
    d.dropped_kernel = 8 * k;
    d.discarded_backlog = 14 * k;
    d.reordered = 9 * k;
    d.stray = 11 * k;
    d.restarted = 12 * k;
    d.end_of_stream = 13 * k;
    d.recovered = 16 * k;
    auto& f = l.frames;
    f.bad_marker = 1 * k;
    f.bad_address = 2 * k;
    f.outside_crystal = 3 * k;
    f.below_window = 4 * k;
    f.above_window = 5 * k;
    f.bad_time = 6 * k;
    f.time_jump = 7 * k;
    f.late = 8 * k;
    f.accepted = 550 * k;
    f.received = 586 * k;
    auto& s = l.singles;
    s.pending_at_start = 0;
    s.pending_at_end = 40 * k;
    s.decided = 460 * k;
    s.prompts = 100 * k;
    s.delayeds = 15 * k;
    s.unpaired = 145 * k;
    s.same_crystal = 20 * k;
    s.geometry = 30 * k;
    s.in_dropped_multiples = 40 * k;
    s.in_oversize_multiples = 16 * k;
    s.unused_in_multiples = 14 * k;
    s.unsearched = 5 * k;
    s.reused = 10 * k;
    s.delayed_dropped = 17 * k;
    s.delayed_oversize = 18 * k;
    l.pairs = {100 * k, 15 * k, 112 * k, 3 * k};
    l.saved_singles = {460 * k, 450 * k, 10 * k};
    auto& g = l.gammas;
    g.used = 30 * k;
    g.unused = 20 * k;
    g.reused = 5 * k;
    g.triples = 35 * k;
    g.delayed = 7 * k;
    l.triples = {42 * k, 40 * k, 2 * k};
    auto& t = l.tags;
    t.time_jump = 21 * k;
    t.late = 22 * k;
    t.accepted = 47 * k;
    t.received = 90 * k;
    t.ordered = 31 * k;
    t.pending_at_end = 16 * k;
    t.found = 31 * k;
    t.written = 27 * k;
    t.write_failed = 4 * k;
    return l;
}

std::string name_of(const LedgerCounter& counter) {
    return std::string(counter.section) + "." + counter.name;
}

}  // namespace

TEST_CASE("a ledger in which everything adds up is closed", "[ledger]") {
    CHECK(Ledger{}.open_identities().empty());
    CHECK(closed_ledger(1).open_identities().empty());
    const json document = to_json(closed_ledger(3));
    CHECK(document["closed"] == true);
    CHECK(document["open"] == json::array());
    CHECK(document["datagrams"]["received"] == 3180);
    CHECK(document["singles"]["pending_at_end"] == 120);
    CHECK(document["singles"]["in_oversize_multiples"] == 48);
}

TEST_CASE("one count more or less in any counter of an identity is found", "[ledger]") {
    const std::set<std::string> beside{"datagrams.lost",           "datagrams.unnumbered",
                                       "datagrams.dropped_kernel", "datagrams.reordered",
                                       "datagrams.stray",          "datagrams.restarted",
                                       "datagrams.end_of_stream",  "datagrams.discarded_backlog",
                                       "datagrams.board_lost",     "datagrams.recovered",
                                       "datagrams.stepped_back",   "datagrams.duplicates_suspected",
                                       "singles.delayeds",         "singles.delayed_dropped",
                                       "singles.delayed_oversize", "singles.groups",
                                       "singles.groups_blocked",   "gammas.delayed"};
    const std::set<std::string> two{"frames.received", "frames.accepted", "singles.decided",
                                    "tags.received",   "tags.accepted",   "gammas.used"};  // identities
    CHECK(ledger_counters().size() == 81);
    for (const LedgerCounter& counter : ledger_counters()) {
        const std::string name = name_of(counter);
        CAPTURE(name);
        for (const std::int64_t change : {-1, 1}) {
            Ledger bad = closed_ledger(7);
            if (change < 0 && counter.of(bad) == 0) continue;
            counter.in(bad) += static_cast<std::uint64_t>(change);
            const auto open = bad.open_identities();
            const std::size_t expected = two.contains(name) ? 2 : 1;
            CHECK(open.size() == (beside.contains(name) ? 0 : expected));
            CHECK(to_json(bad)["closed"] == open.empty());
        }
    }
}

TEST_CASE("an open identity is reported with its numbers", "[ledger]") {
    Ledger l = closed_ledger(1);
    l.pairs.written -= 5;
    const auto open = l.open_identities();
    REQUIRE(open.size() == 1);
    CHECK(open[0] ==
          "pairs: prompts_found 100 + delayeds_found 15 is not written 107 + write_failed 3 (off by 5)");
    CHECK(to_json(l)["open"] == json(open));
}

TEST_CASE("loss that cannot be known is null, never zero", "[ledger]") {
    Ledger l = closed_ledger(1);
    l.numbered = false;
    const json document = to_json(l);
    CHECK(document["datagrams"]["lost"].is_null());
    CHECK(document["loss_known"] == false);
}

TEST_CASE("every declared counter is in struct, JSON and documentation, once", "[ledger]") {
    const std::string page = petacq::test::read_file(PETACQ_SOURCE_DIR "/docs/reference/ledger.md");
    std::set<std::string> names;
    Ledger ledger;
    std::uint64_t value = 100;
    for (const LedgerCounter& counter : ledger_counters()) {
        const std::string name = name_of(counter);
        CAPTURE(name);
        CHECK(names.insert(name).second);
        counter.in(ledger) = ++value;
        CHECK(counter.of(ledger) == value);
        if (counter.name != std::string_view("lost"))  // unknown: there are datagrams without numbers
            CHECK(to_json(ledger)[counter.section][counter.name] == value);
        const std::string help = counter.help;
        CHECK(help.back() == '.');
        CHECK(page.find(std::string("| `") + counter.name + "` | " + counter.unit + " | " +
                        help.substr(0, help.size() - 1) + " |\n") != std::string::npos);
    }
    // The JSON holds nothing else.
    std::size_t in_json = 0;
    for (const auto& section : sections)
        in_json += to_json(ledger)[section].size();
    CHECK(in_json == names.size());
    CHECK(to_json(ledger).size() == sections.size() + 3);
}

TEST_CASE("a level at the start stands before its level at the end", "[ledger]") {
    const auto counters = ledger_counters();
    for (std::size_t i = 0; i < counters.size(); ++i) {
        if (counters[i].kind != CounterKind::at_start) continue;
        CAPTURE(counters[i].name);
        REQUIRE(i + 1 < counters.size());
        CHECK(counters[i + 1].kind == CounterKind::at_end);
        CHECK(counters[i + 1].section == std::string(counters[i].section));
    }
}

TEST_CASE("the columns of ledger.csv keep their positions", "[ledger]") {
    const std::vector<std::string> expected{"datagrams.accepted",
                                            "datagrams.lost",
                                            "datagrams.dropped_kernel",
                                            "datagrams.dropped_no_buffer",
                                            "datagrams.duplicate",
                                            "datagrams.malformed",
                                            "datagrams.unknown_source",
                                            "datagrams.too_many_sources",
                                            "datagrams.reordered",
                                            "datagrams.stray",
                                            "datagrams.restarted",
                                            "frames.received",
                                            "frames.bad_marker",
                                            "frames.bad_address",
                                            "frames.outside_crystal",
                                            "frames.time_jump",
                                            "frames.bad_time",
                                            "frames.late",
                                            "frames.below_window",
                                            "frames.above_window",
                                            "frames.accepted",
                                            "singles.decided",
                                            "singles.prompts",
                                            "singles.delayeds",
                                            "singles.unpaired",
                                            "singles.same_crystal",
                                            "singles.geometry",
                                            "singles.in_dropped_multiples",
                                            "singles.in_oversize_multiples",
                                            "singles.unused_in_multiples",
                                            "singles.reused",
                                            "datagrams.repeated",
                                            "datagrams.recovered",
                                            "singles.delayed_dropped",
                                            "singles.delayed_oversize",
                                            "singles.groups",
                                            "singles.groups_blocked",
                                            "tags.received",
                                            "tags.time_jump",
                                            "tags.late",
                                            "tags.accepted",
                                            "singles.unsearched"};
    const auto& columns = ledger_columns();
    REQUIRE(columns.size() >= expected.size());  // more may follow them
    for (std::size_t i = 0; i < columns.size(); ++i) {
        CHECK(columns[i]->column == i + 1);
        if (i < expected.size()) CHECK(name_of(*columns[i]) == expected[i]);
    }
}

TEST_CASE("the ledger of a run is the difference of two snapshots", "[ledger]") {
    const Ledger before = closed_ledger(4);
    const Ledger after = closed_ledger(11);
    const Ledger run = after - before;
    CHECK(run.open_identities().empty());
    CHECK(run.datagrams.received == 7 * 1060);
    CHECK(run.datagrams.lost == 7 * (70 + 16));
    CHECK(run.singles.pending_at_start == 4 * 40);
    CHECK(run.singles.pending_at_end == 11 * 40);
    CHECK(run.datagrams.in_flight_at_start == 4 * 25);
    CHECK(run.datagrams.in_flight_at_end == 11 * 25);
    CHECK(run.frames.accepted + run.singles.pending_at_start - run.singles.pending_at_end ==
          run.singles.decided + run.gammas.used + run.gammas.unused);

    const Ledger same = after;
    const Ledger nothing = after - same;
    CHECK(nothing.open_identities().empty());
    CHECK(nothing.singles.pending_at_start == nothing.singles.pending_at_end);
    CHECK(nothing.frames == petacq::gpu::FrameCounts{});
}

TEST_CASE("datagrams that were missing when the run started do not lower its loss", "[ledger]") {
    Ledger before = closed_ledger(1);
    Ledger after = closed_ledger(1);
    before.datagrams.lost = 3;
    after.datagrams.lost = 2;  // two of the three have arrived, and one more is missing
    after.datagrams.recovered = before.datagrams.recovered + 2;
    const Ledger run = after - before;
    CHECK(run.datagrams.lost == 1);
    CHECK(run.datagrams.recovered == 2);
}
