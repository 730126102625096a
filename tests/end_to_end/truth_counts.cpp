#include "tests/end_to_end/truth_counts.hpp"

#include "tests/support/catch.hpp"
#include "tools/petsim/simulation/base/options.hpp"
#include "tools/petsim/simulation/base/truth.hpp"

namespace petacq::test {

TruthCounts count_truth(const std::filesystem::path& file, double lower_keV) {
    TruthCounts counts;
    for (const sim::TruthRecord& frame : sim::read_truth(file)) {
        if ((frame.flags & (sim::truth_lost | sim::truth_tag)) != 0) continue;
        bool wild = (frame.flags & sim::truth_clock_jump) != 0;
        if ((frame.flags & sim::truth_corrupted) != 0) {
            const int field = ((frame.flags & sim::truth_field_mask) >> sim::truth_field_shift) - 1;
            if (sim::breaks_datagram(static_cast<sim::Field>(field))) continue;
            wild = wild || static_cast<sim::Field>(field) == sim::Field::time;
        }
        ++counts.received;
        if (frame.crystal == sim::no_crystal) {
            ++counts.unreadable;
        } else if ((frame.flags & sim::truth_reset) != 0) {
            ++counts.after_reset;
        } else if (wild) {
            ++counts.time_jump;
        } else if (frame.energy < lower_keV) {
            ++counts.below_window;
        } else if (frame.energy > 650) {
            ++counts.above_window;
        } else {
            ++counts.accepted;
        }
    }
    return counts;
}

void check_ledger(const nlohmann::json& ledger, const nlohmann::json& summary, const TruthCounts& truth) {
    INFO(ledger.dump(1));
    const auto& expected = summary.at("total").at("expected");
    INFO(expected.dump(1));
    CHECK(ledger.at("closed") == true);
    CHECK(ledger.at("open").empty());

    const auto& datagrams = ledger.at("datagrams");
    const auto arrived = expected.at("datagrams_received").get<std::uint64_t>();
    const auto malformed = expected.at("datagrams_malformed").get<std::uint64_t>();
    const auto duplicate = expected.at("datagrams_duplicate").get<std::uint64_t>();
    CHECK(datagrams.at("received") == arrived);
    CHECK(datagrams.at("malformed") == malformed);
    CHECK(datagrams.at("duplicate") == duplicate);
    CHECK(datagrams.at("accepted") == arrived - malformed - duplicate);
    CHECK(datagrams.at("lost") == expected.at("datagrams_lost"));
    CHECK(datagrams.at("reordered") == expected.at("datagrams_reordered"));
    for (const char* none :
         {"unknown_source", "too_many_sources", "dropped_no_buffer", "dropped_kernel", "discarded_backlog",
          "in_flight_at_start", "in_flight_at_end", "stray", "restarted", "repeated", "recovered"}) {
        INFO(none);
        CHECK(datagrams.at(none) == 0);
    }

    const auto& frames = ledger.at("frames");
    CHECK(frames.at("received") == expected.at("frames_received"));
    CHECK(frames.at("received") == truth.received);
    CHECK(frames.at("bad_marker") == expected.at("frames_bad_marker"));
    CHECK(frames.at("bad_address") == expected.at("frames_bad_address"));
    CHECK(frames.at("outside_crystal") == expected.at("frames_outside_crystal"));
    CHECK(frames.at("bad_time") == expected.at("frames_bad_time"));
    CHECK(frames.at("time_jump") == truth.time_jump);
    CHECK(frames.at("late") == 0);
    CHECK(frames.at("below_window") == truth.below_window);
    CHECK(frames.at("above_window") == truth.above_window);
    CHECK(frames.at("accepted") == truth.accepted);

    const auto& singles = ledger.at("singles");
    CHECK(singles.at("pending_at_start") == 0);
    CHECK(singles.at("pending_at_end") == 0);
    CHECK(singles.at("decided") == truth.accepted);
    CHECK(ledger.at("pairs").at("in_queue") == 0);
    CHECK(ledger.at("pairs").at("write_failed") == 0);
}

}  // namespace petacq::test
