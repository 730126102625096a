#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "daemon/ledger.hpp"
#include "tests/catch.hpp"

using namespace petacq::daemon;
using nlohmann::json;

namespace {

const std::vector<std::string> sections{"datagrams", "frames", "singles", "pairs", "saved_singles"};

/// Every identity closes, every field has a value of its own.
Ledger closed_ledger(std::uint64_t k) {
    Ledger l;
    auto& d = l.datagrams;
    d.accepted = 1000 * k;
    d.duplicate = 2 * k;
    d.malformed = 3 * k;
    d.unknown_source = 4 * k;
    d.too_many_sources = 5 * k;
    d.dropped_no_buffer = 6 * k;
    d.in_flight_at_start = 0;
    d.in_flight_at_end = 25 * k;
    d.received = 1045 * k;
    d.frames = 540 * k;
    d.frames_in_flight_at_start = 0;
    d.frames_in_flight_at_end = 4 * k;
    d.lost = 70 * k;
    d.dropped_kernel = 8 * k;
    d.discarded_backlog = 14 * k;
    d.reordered = 9 * k;
    d.stray = 11 * k;
    d.restarted = 12 * k;
    d.end_of_stream = 13 * k;
    auto& f = l.frames;
    f.bad_marker = 1 * k;
    f.bad_address = 2 * k;
    f.outside_crystal = 3 * k;
    f.below_window = 4 * k;
    f.above_window = 5 * k;
    f.bad_time = 6 * k;
    f.time_jump = 7 * k;
    f.late = 8 * k;
    f.accepted = 500 * k;
    f.received = 536 * k;
    auto& s = l.singles;
    s.pending_at_start = 0;
    s.pending_at_end = 40 * k;
    s.decided = 460 * k;
    s.prompts = 100 * k;
    s.delayeds = 15 * k;
    s.unpaired = 150 * k;
    s.same_crystal = 20 * k;
    s.geometry = 30 * k;
    s.in_dropped_multiples = 40 * k;
    s.in_oversize_multiples = 16 * k;
    s.unused_in_multiples = 14 * k;
    s.reused = 10 * k;
    l.pairs = {100 * k, 15 * k, 112 * k, 3 * k};
    l.saved_singles = {460 * k, 450 * k, 10 * k};
    return l;
}

/// What ledger_from_json says against a document; empty when it takes it.
std::string complaint(const json& document) {
    try {
        ledger_from_json(document);
    } catch (const std::runtime_error& e) {
        return e.what();
    }
    return {};
}

}  // namespace

TEST_CASE("a ledger in which everything adds up is closed", "[ledger]") {
    CHECK(Ledger{}.open_identities().empty());
    CHECK(closed_ledger(1).open_identities().empty());
    const json document = to_json(closed_ledger(3));
    CHECK(document["closed"] == true);
    CHECK(document["open"] == json::array());
    CHECK(document["datagrams"]["received"] == 3135);
    CHECK(document["singles"]["pending_at_end"] == 120);
    CHECK(document["singles"]["in_oversize_multiples"] == 48);
}

TEST_CASE("one count more or less in any field of an identity is found", "[ledger]") {
    // Fields that stand beside the identities.
    const std::set<std::string> beside{
        "datagrams/lost",      "datagrams/dropped_kernel", "datagrams/reordered",         "datagrams/stray",
        "datagrams/restarted", "datagrams/end_of_stream",  "datagrams/discarded_backlog", "singles/delayeds"};
    const json good = to_json(closed_ledger(7));
    std::size_t fields = 0;
    const std::set<std::string> two{"frames/received", "frames/accepted", "singles/decided"};  // identities
    for (const auto& section : sections) {
        for (const auto& [name, value] : good[section].items()) {
            const std::string path = section + "/" + name;
            CAPTURE(path);
            ++fields;
            for (const std::int64_t change : {-1, 1}) {
                if (change < 0 && value == 0) continue;
                json bad = good;
                bad[section][name] = static_cast<std::uint64_t>(value.get<std::int64_t>() + change);
                const auto open = ledger_from_json(bad).open_identities();
                const std::size_t expected = two.count(path) != 0 ? 2 : 1;
                CHECK(open.size() == (beside.count(path) != 0 ? 0 : expected));
                CHECK(to_json(ledger_from_json(bad))["closed"] == open.empty());
            }
        }
    }
    CHECK(fields == 50);
}

TEST_CASE("an open identity is told with its numbers", "[ledger]") {
    Ledger l = closed_ledger(1);
    l.pairs.written -= 5;
    const auto open = l.open_identities();
    REQUIRE(open.size() == 1);
    CHECK(open[0] ==
          "pairs: prompts_found 100 + delayeds_found 15 is not written 107 + write_failed 3 (off by 5)");
    CHECK(to_json(l)["open"] == json(open));
}

TEST_CASE("a ledger reads back from its JSON", "[ledger]") {
    for (const bool loss_known : {true, false}) {
        Ledger l = closed_ledger(5);
        l.loss_known = loss_known;
        if (!loss_known) l.datagrams.lost = 0;
        CHECK(ledger_from_json(to_json(l)) == l);
        CHECK(ledger_from_json(json::parse(to_json(l).dump())) == l);
    }
}

TEST_CASE("loss that cannot be known is null, never zero", "[ledger]") {
    Ledger l = closed_ledger(1);
    l.loss_known = false;
    const json document = to_json(l);
    CHECK(document["datagrams"]["lost"].is_null());
    CHECK(document["loss_known"] == false);
    json claimed = document;
    claimed["datagrams"]["lost"] = 0;
    CHECK(complaint(claimed).find("/datagrams/lost") != std::string::npos);
}

TEST_CASE("what is not a ledger is refused with the name of the field", "[ledger]") {
    const json good = to_json(closed_ledger(1));
    for (const auto& section : sections) {
        json missing = good;
        missing.erase(section);
        CHECK(complaint(missing).find("/" + section) != std::string::npos);
        for (const auto& [name, value] : good[section].items()) {
            for (const json& wrong : {json(-1), json("7"), json(1.5), json(nullptr), json::array()}) {
                json bad = good;
                bad[section][name] = wrong;
                CHECK(complaint(bad).find("/" + section + "/" + name) != std::string::npos);
            }
            json without = good;
            without[section].erase(name);
            CHECK(complaint(without).find("/" + section + "/" + name) != std::string::npos);
        }
    }
    CHECK_THROWS_AS(ledger_from_json(json::array()), std::runtime_error);
    CHECK_THROWS_AS(ledger_from_json(json::object()), std::runtime_error);
}

TEST_CASE("the ledger of a run is the difference of two snapshots, and adds up again", "[ledger]") {
    const Ledger before = closed_ledger(4);
    const Ledger after = closed_ledger(11);
    const Ledger run = after - before;
    CHECK(run.open_identities().empty());
    CHECK(run.datagrams.received == 7 * 1045);
    CHECK(run.datagrams.lost == 7 * 70);
    CHECK(run.singles.pending_at_start == 4 * 40);
    CHECK(run.singles.pending_at_end == 11 * 40);
    CHECK(run.datagrams.in_flight_at_start == 4 * 25);
    CHECK(run.datagrams.in_flight_at_end == 11 * 25);
    CHECK(run.frames.accepted + run.singles.pending_at_start - run.singles.pending_at_end ==
          run.singles.decided);

    Ledger sum = before;
    sum += run;
    CHECK(sum == after);
    CHECK(sum.open_identities().empty());

    const Ledger same = after;
    const Ledger nothing = after - same;
    CHECK(nothing.open_identities().empty());
    CHECK(nothing.singles.pending_at_start == nothing.singles.pending_at_end);
    CHECK(nothing.frames == petacq::gpu::FrameCounts{});
}

TEST_CASE("loss taken back across the beginning of a run does not become a huge number", "[ledger]") {
    Ledger before = closed_ledger(1);
    Ledger after = closed_ledger(2);
    before.datagrams.lost = 3;
    after.datagrams.lost = 1;
    CHECK((after - before).datagrams.lost == 0);
}

TEST_CASE("loss is known over two stretches only when it is in both", "[ledger]") {
    Ledger sum = closed_ledger(1);
    Ledger bare = closed_ledger(1);
    bare.loss_known = false;
    sum += bare;
    CHECK_FALSE(sum.loss_known);
}
