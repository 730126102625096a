// DetectorTime: the rules in its header.
#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/tracking/detector_time.hpp"
#include "tests/daemon/tracking/clocks.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;

namespace {

using Back = DetectorTime::Back;

constexpr std::uint64_t far = 10'000 * ms;  ///< further than max_lag and max_jump

TrackerOptions expecting(Ids ids) {
    TrackerOptions options = usual_options();
    options.expected = std::move(ids);
    return options;
}

}  // namespace

TEST_CASE("rule 1: time begins when the progress of two proven sources differs by max_lag at most") {
    const std::uint64_t apart = 1'000 * ms + GENERATE(0U, 1U);
    Clocks c(usual_options());
    std::int64_t now = began;
    for (std::uint64_t t = start; t < start + 3 * ms; t += ms, now += host_ms) {
        CHECK_FALSE(c.time.established());
        const Verdict verdict = c.send(1, t, now);
        CHECK(verdict.believes(0));
        CHECK(verdict.believes(UINT64_MAX));
        c.send(2, t + apart, now);
    }
    c.time.decide(now);
    CHECK(c.time.established() == (apart == 1'000 * ms));
    CHECK(c.time.first_proven_ns() == began + 2 * host_ms);
    // Of two, the one behind lags.
    if (c.time.established()) CHECK(c.time.reference() == start + 2 * ms + apart);
}

TEST_CASE("rule 1: a source that is proven alone waits for company, unless none is expected") {
    const auto [ids, timeouts] = GENERATE(std::pair<Ids, int>{{}, 1}, std::pair<Ids, int>{{1, 2}, 10});
    Clocks c(expecting(ids));
    c.run({1}, start, began, 3);
    const std::int64_t due = *c.time.first_proven_ns() + timeouts * c.options.source_timeout_ns;
    c.time.decide(due - 1);
    CHECK_FALSE(c.time.established());
    c.run({2}, start + far, due - 10 * host_ms, 5);  // no company
    c.time.decide(due);
    CHECK(c.time.reference() == start + 2 * ms);
    Clocks only(expecting({1}));
    only.run({1}, start, began, 3);
    CHECK(only.time.established());
}

TEST_CASE("rule 1: time can begin before two sources agree, but not before one is proven") {
    Clocks c(expecting({1, 2, 3}));  // 3 is never heard
    const std::int64_t now = c.run({1, 2}, start, began, 2);
    c.time.establish(now, true);
    CHECK_FALSE(c.time.established());
    c.run({1}, start + far, now, 4);
    c.run({2}, start, now, 4);
    c.time.establish(now, false);
    CHECK_FALSE(c.time.established());
    c.time.establish(now, true);
    CHECK(c.time.reference() == start + 3 * ms);  // the lower one
    CHECK(c.members() == 1);
}

TEST_CASE("rule 2: the reference is the median of the members in place") {
    Clocks c(usual_options());
    std::int64_t now = c.run({1, 2, 3}, start, began, 5);
    for (int i = 0; i < 3; ++i, now += host_ms) {
        c.send(1, start + 10 * ms, now);
        c.send(2, start + 20 * ms, now);
        c.send(3, start + 900 * ms, now);
    }
    c.time.decide(now);
    CHECK(c.time.reference() == start + 20 * ms);
    CHECK(c.time.median(now) == start + 20 * ms);
    CHECK(c.time.median(now + c.options.source_timeout_ns) == std::nullopt);
}

TEST_CASE("rule 2: beside silent members, one member does not move the reference faster than the host") {
    Clocks c(usual_options());
    std::int64_t now = c.run({1, 2, 3}, start, began, 5);
    const std::uint64_t before = *c.time.reference();
    now += 600 * host_ms;
    c.send(1, before + 900 * ms, now);
    c.time.decide(now);
    CHECK(c.time.reference() == c.time.present(now));
    CHECK(c.time.present(now) < before + 610 * ms);
    CHECK(c.time.median(now) == before + 900 * ms);
    // Nor back.
    const std::uint64_t ahead = *c.time.reference();
    for (int i = 0; i < 3; ++i)
        c.send(1, ahead - 400 * ms, now);
    c.time.decide(now);
    CHECK(c.source(1).steps_back == 1);
    CHECK(c.time.median(now) == ahead - 399 * ms);
    CHECK(c.time.reference() == ahead);
    // With all of them, it does.
    for (int i = 0; i < 3; ++i) {
        c.send(2, ahead - 400 * ms, now);
        c.send(3, ahead - 400 * ms, now);
    }
    c.time.decide(now);
    CHECK(c.time.reference() == ahead - 400 * ms);
}

TEST_CASE("rule 2: what the reference would be with some of the voters only") {
    Clocks c(usual_options());
    const std::int64_t now = c.run({1, 2, 3}, start, began, 5);
    c.send(3, start + 900 * ms, now);
    const Source& slow = c.source(1);
    const Source& fast = c.source(3);
    const std::vector<const Source*> all{&slow, &c.source(2), &fast};
    CHECK(c.time.reference_of(all, now) == start + 4 * ms);
    const std::vector<const Source*> one{&fast};
    CHECK(c.time.reference_of(one, now) == c.time.present(now));
}

TEST_CASE("rule 3: a proven source in place becomes a member, and stays one while it is silent") {
    Clocks c(usual_options());
    std::int64_t now = c.run({1, 2}, start, began, 5);
    c.run({3}, start, now, 2);
    CHECK_FALSE(c.source(3).member);
    now = c.run({3}, start + 2 * ms, now, 1);
    CHECK(c.source(3).member);
    now += 20 * c.options.source_timeout_ns;
    c.time.decide(now);
    CHECK(c.members() == 3);
    CHECK_FALSE(c.time.votes(c.source(3), now));
    c.time.restart(now);
    CHECK(c.members() == 0);
    CHECK_FALSE(c.time.established());
    CHECK_FALSE(c.source(1).time.proven());
    CHECK_FALSE(c.time.active(c.source(1), now - 20 * c.options.source_timeout_ns));
    CHECK_FALSE(c.time.first_proven_ns());
}

TEST_CASE("rule 3: a bare board that comes back with another port takes the place of one silent member") {
    TrackerOptions options = usual_options();
    options.framing = net::Framing::bare;
    Clocks c(options);
    std::int64_t now = c.run({0, 1, 2, 3}, start, began, 5) + options.source_timeout_ns;
    SECTION("of one that has carried its modules") {
        c.run({10}, 0, now, 5);  // elsewhere in time; the module of port 0
        CHECK(c.members() == 4);
        CHECK(c.source(10).member);
        CHECK(c.source(10).successor);
        CHECK_FALSE(c.source(0).member);
        CHECK(c.source(0).succeeded);
    }
    SECTION("of none that has carried others") {
        c.run({14}, 0, now, 5);
        CHECK_FALSE(c.source(14).member);
    }
    SECTION("of none at another address") {
        c.source(10, now).address = 0x7F000002;
        c.run({10}, 0, now, 20);
        CHECK_FALSE(c.source(10).member);
    }
    SECTION("of none that was heard after it appeared") {
        c.send(10, 0, now);
        c.send(0, start + 100 * ms, ++now);
        now += options.source_timeout_ns;
        c.run({10}, ms, now, 5);
        CHECK_FALSE(c.source(10).member);
    }
    SECTION("of one at most") {
        for (const std::uint16_t id : Ids{0, 1, 2, 3})
            c.source(id).bdms = net::Modules::below(256);
        c.run({10}, 0, now, 20);
        CHECK(c.members() == 4);
        CHECK(c.source(10).member);
        std::size_t succeeded = 0;
        for (const Source& s : c.table.all())
            succeeded += s.succeeded ? 1 : 0;
        CHECK(succeeded == 1);
    }
}

TEST_CASE("rule 4: exactly half of the members move nothing, more than half take the reference along") {
    Clocks c(usual_options());
    std::int64_t now = c.run({1, 2, 3, 4}, start, began, 5);
    const bool others_send = GENERATE(true, false);
    if (!others_send) now += c.options.source_timeout_ns;
    const std::uint64_t before = *c.time.reference();
    const std::uint64_t ahead = start + far;
    for (int i = 0; i < 10; ++i, now += host_ms) {
        const auto t = static_cast<std::uint64_t>(i) * ms;
        if (others_send) c.send(1, before + t, now);
        if (others_send) c.send(2, before + t, now);
        c.send(3, ahead + t, now);
        const Verdict verdict = c.send(4, ahead + t, now);
        CHECK_FALSE(verdict.believes(ahead + t));  // leading
    }
    c.time.decide(now);
    CHECK(*c.time.reference() < before + 20 * ms);
    CHECK(c.time.deserted(now) == !others_send);
    c.run({2}, ahead, now, 3);
    CHECK(c.time.reference() == ahead + 9 * ms);
    CHECK(c.time.newest() == ahead + 10 * ms);
    CHECK(c.members() == 4);
    CHECK(c.time.went_back() == Back::no);
}

TEST_CASE("rule 4: members that have moved but do not agree move nothing") {
    Clocks c(usual_options());
    std::int64_t now = c.run({1, 2, 3, 4}, start, began, 5);
    now = c.run({1, 2}, start + far, now, 5);
    now = c.run({3}, start + 2 * far, now, 5);
    CHECK(*c.time.reference() < start + 100 * ms);
    c.run({3}, 0, now, 5);
    CHECK(*c.time.reference() < start + 100 * ms);
    CHECK(c.time.went_back() == Back::no);
}

TEST_CASE("rule 4: more than half of the members that go back are a common reset") {
    Clocks c(usual_options());
    std::int64_t now = c.run({1, 2, 3, 4}, start, began, 5);
    SECTION("exactly half of them are not") {
        now += c.options.source_timeout_ns;
        now = c.run({1, 2}, 0, now, 20) + c.options.source_timeout_ns;
        c.run({1, 2}, 20 * ms, now, 5);
        CHECK(c.time.went_back() == Back::no);
        CHECK(*c.time.reference() > start);
    }
    SECTION("at once if no member in place is active") {
        now += c.options.source_timeout_ns;
        now = c.run({1, 2, 3}, 0, now, 5);
        CHECK(c.time.went_back() == Back::common_reset);
        CHECK(*c.time.reference() > start);
        c.time.follow_reset(now);
        CHECK(c.time.went_back() == Back::no);
        CHECK(c.time.reference() == 4 * ms);
        CHECK(c.members() == 3);
        CHECK(c.time.earliest() == 0);
        CHECK(c.time.newest() == 5 * ms);
    }
    SECTION("after source_timeout if one is") {
        std::uint64_t t = 0;
        std::optional<std::int64_t> since;
        for (; c.time.went_back() == Back::no && t < 2'000 * ms; t += ms, now += host_ms) {
            for (const std::uint16_t id : Ids{1, 2, 3})
                c.send(id, t, now);
            c.send(4, start + 5 * ms + t, now);
            c.time.decide(now);
            if (!since && c.source(3).moved) since = now;
        }
        CHECK(c.time.went_back() == Back::common_reset);
        REQUIRE(since);
        CHECK(now - host_ms == *since + c.options.source_timeout_ns);
    }
}

TEST_CASE("rule 4: members whose slots others have taken still count") {
    Clocks c(usual_options());
    std::int64_t now = c.run({0, 1, 2, 3}, start, began, 5);
    const std::int64_t silence = 10 * c.options.source_timeout_ns;
    c.run({0, 1, 2}, start + 5'000 * ms, now + silence, 5);
    now += silence + 5 * host_ms;
    for (std::uint16_t id = 4; id <= SourceTable::max_sources; ++id)
        c.source(id, now);
    REQUIRE(c.table.replaced() == 1);
    CHECK(c.members() == 3);
    now += c.options.source_timeout_ns;
    now = c.run({0, 1}, 0, now, 20);
    CHECK(c.time.went_back() == Back::no);  // two of four
    c.run({2}, 20 * ms, now, 5);
    CHECK(c.time.went_back() == Back::common_reset);
}

TEST_CASE("rule 5: two other sources that agree elsewhere replace a single member") {
    Clocks c(usual_options());
    std::int64_t now = c.run({1}, start, began, 5);
    c.time.establish(now, true);
    REQUIRE(c.members() == 1);
    SECTION("ahead, at once") {
        now = c.run({1, 2}, start + far, now, 5);
        // The time of a single member goes wherever it goes.
        CHECK(c.time.reference() == start + far + 4 * ms);
        CHECK(c.members() == 2);
    }
    SECTION("ahead of it, while it stays") {
        c.run({2}, start + far, now, 5);
        CHECK(c.time.reference() == start + 4 * ms);
        c.run({3}, start + far, now, 5);
        CHECK(c.time.reference() == start + far + 4 * ms);
        CHECK(c.members() == 2);
        CHECK_FALSE(c.source(1).member);
    }
    SECTION("before it, when the caller follows") {
        now = c.run({2, 3}, 0, now, 5);
        CHECK(c.time.went_back() == Back::replaced);
        CHECK(c.source(1).member);
        c.time.follow_reset(now);
        CHECK(c.time.reference() == 4 * ms);
        CHECK_FALSE(c.source(1).member);
    }
    SECTION("not if they disagree with each other") {
        c.run({2}, 0, now, 5);
        c.run({3}, start + far, now, 5);
        CHECK(c.time.went_back() == Back::no);
        CHECK(c.time.reference() == start + 4 * ms);
    }
    SECTION("and a single member that goes back is a common reset") {
        c.run({1}, 0, now, 5);
        CHECK(c.time.went_back() == Back::common_reset);
    }
}

TEST_CASE("rule 6: which frames are believed of whom") {
    Clocks c(usual_options());
    const std::int64_t now = c.run({1, 2, 3}, start, began, 5);
    const std::uint64_t reference = *c.time.reference();
    const std::uint64_t high = c.time.present(now) + 2'000 * ms;
    CHECK(c.time.believed_times().time_low == reference - 2'000 * ms);
    CHECK(c.time.believed_times().time_high == high);
    SECTION("a member in place") {
        const Verdict verdict = c.send(1, reference, now);
        CHECK(verdict.time_low == reference - 3'000 * ms);
        CHECK(verdict.time_high == high);
    }
    SECTION("a source that lags") {
        c.run({4}, reference - 1'500 * ms, now, 4);
        const Verdict verdict = c.send(4, reference - 1'500 * ms + 4 * ms, now);
        CHECK(verdict.time_low == reference - 1'500 * ms + 4 * ms - 2'000 * ms);
        CHECK(c.source(4).jumped_datagrams == 0);
        CHECK_FALSE(c.source(4).member);
    }
    SECTION("a source that leads") {
        c.run({4}, reference + 1'500 * ms, now, 2);
        CHECK(c.source(4).jumped_datagrams == 0);  // not proven: near enough
        CHECK_FALSE(c.send(4, reference + 1'502 * ms, now).believes(reference + 1'502 * ms));
        CHECK(c.source(4).jumped_datagrams == 1);
    }
    SECTION("a jump") {
        const Verdict jump = c.send(1, high + 1, now);
        CHECK(jump.refuses_all());
        CHECK(jump.open);
        CHECK(c.source(1).jumped_datagrams == 0);
        CHECK(c.send(1, reference + ms, now).believes(reference + ms));
        CHECK(c.time.newest() == reference + 2 * ms);
    }
    SECTION("none past the end of the memory") {
        c.time.believe_until(reference + ms);
        CHECK(c.send(1, reference, now).time_high == reference + ms);
        CHECK_FALSE(c.send(1, reference + ms, now).believes(reference + 2 * ms));
        CHECK(c.time.newest() == reference + ms);
        c.time.decide(now);
        CHECK(c.time.believed_times().time_high == reference + ms);
        c.time.believe_until(UINT64_MAX);
        c.time.decide(now);
        CHECK(c.time.believed_times().time_high == high);
    }
}

TEST_CASE("times next to 0 and to 2^64 are times like others") {
    Clocks low(usual_options());
    std::int64_t now = low.run({1, 2}, 0, began, 5);
    CHECK(low.time.reference() == 4 * ms);
    CHECK(low.time.believed_times().time_low == 0);
    CHECK(low.time.earliest() == 0);
    const Verdict first = low.send(1, 0, now);
    CHECK(first.believes(0));
    CHECK(first.time_low == 0);

    Clocks high(usual_options());
    now = high.run({1, 2}, UINT64_MAX - 4 * ms, began, 10);
    CHECK(high.time.reference() == UINT64_MAX);
    CHECK(high.time.newest() == UINT64_MAX);
    CHECK(high.time.present(now + host_ms) == UINT64_MAX);
    CHECK(high.send(2, UINT64_MAX, now).believes(UINT64_MAX));
    CHECK(high.source(2).member);
}

TEST_CASE("before time begins, a source supports the times near its own datagrams") {
    Clocks c(usual_options());
    c.source(1);
    CHECK(c.time.own_times(0).believes(UINT64_MAX));  // nothing has been heard
    c.send(1, start, began);
    c.send(1, start + ms, began);
    CHECK(c.time.own_times(0).time_low == start - 2'000 * ms);
    CHECK(c.time.own_times(0).time_high == start + 2'002 * ms);
    CHECK_FALSE(c.time.own_times(0, false).believes(start));
    c.send(2, start, began);
    c.send(2, start + far, began);  // contradicts the one before
    CHECK_FALSE(c.time.own_times(1).believes(start + far));
    c.send(1, start + 2 * ms, began);
    CHECK(c.time.own_times(0, false).time_high == start + 2'003 * ms);
}

TEST_CASE("a member's frames that waited for time to begin are believed, however long they waited") {
    Clocks c(expecting({1, 2}));
    std::int64_t now = began;
    std::uint64_t t = start;
    for (; t < start + 3'500 * ms; t += ms, now += host_ms)
        c.send(1, t, now);
    c.run({2}, t - 3 * ms, now, 3);
    REQUIRE(c.time.established());
    REQUIRE(c.source(1).member);
    CHECK(c.time.believed_times().time_low > start);
    CHECK(c.time.held_times(0).time_low == start - 2'000 * ms);
    CHECK(c.time.first_of_members() == start);
}

TEST_CASE("with three members, a single one that is first by more than max_disorder begins no data") {
    const std::uint64_t before = 10 * ms + GENERATE(0U, 1U);
    Clocks c(usual_options());
    c.send(1, start - before, began);
    c.run({1, 2, 3}, start, began, 5);
    REQUIRE(c.members() == 3);
    CHECK(c.time.earliest() == (before == 10 * ms ? start - before : start));
    CHECK(c.time.first_of_members() == start - before);
    Clocks two(usual_options());
    two.send(1, start - before, began);
    two.run({1, 2}, start, began, 5);
    CHECK(two.time.earliest() == start - before);
}

TEST_CASE("an earlier frame inside a datagram counts if it is not late") {
    Clocks c(usual_options());
    c.run({1, 2}, start, began, 5);
    c.time.note_earlier(0, start - 10 * ms - 1);
    CHECK(c.time.first_of_members() == start);
    c.time.note_earlier(0, start - 10 * ms);
    CHECK(c.time.first_of_members() == start - 10 * ms);
}

TEST_CASE("who supports the present time") {
    Clocks c(expecting(GENERATE(Ids{}, Ids{1, 2})));
    const bool listed = !c.options.expected.empty();
    std::int64_t now = c.run({1}, start, began, 5);
    CHECK_FALSE(c.time.supported(now));
    c.time.establish(now, true);
    CHECK(c.time.supported(now) == !listed);  // the other is expected, and has never been heard
    CHECK_FALSE(c.time.deserted(now));
    now = c.run({2}, start + 5 * ms, now, 5);
    CHECK(c.time.supported(now));
    now += c.options.source_timeout_ns;
    CHECK_FALSE(c.time.supported(now));
    CHECK_FALSE(c.time.deserted(now));  // nobody sends
    c.run({3}, 0, now, 5);
    CHECK(c.time.deserted(now));
}

TEST_CASE("a source that has ended is active while numbers are missing") {
    Clocks c(usual_options());
    const std::int64_t now = c.run({1, 2}, start, began, 5);
    Source& source = c.source(1);
    source.sequence.observe(1);
    source.sequence.observe(3, 1, true);
    CHECK(c.time.active(source, now));
    source.sequence.observe(2);
    CHECK_FALSE(c.time.active(source, now));
    CHECK(c.time.active(c.source(2), now));
}
