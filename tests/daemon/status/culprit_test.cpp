// One bad clock among 76 boards, followed by the real tracker: health names that board and no other.
#include <algorithm>
#include <functional>
#include <set>
#include <tuple>

#include "daemon/status/reason_order.hpp"
#include "tests/daemon/status/patient.hpp"
#include "tests/daemon/tracking/helpers.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;

namespace {

constexpr std::uint16_t boards = 76;
constexpr std::uint16_t culprit = 12;

/// What the clock of the culprit shows when the others show `time`.
using Clock = std::function<std::uint64_t(std::uint64_t time)>;

using Sends = std::function<bool(std::uint16_t id, std::uint64_t time)>;

struct Blame {
    std::set<std::string> culprit;
    std::set<std::string> others;
};

/// The codes of the reasons about sources over 20 s of detector time.
Blame blame(const Clock& clock, const Sends& sends, bool listed) {
    TrackerOptions options = usual_options();
    for (std::uint16_t id = 0; listed && id < boards; ++id)
        options.expected.push_back(id);
    Detector detector(options);
    Patient patient;
    Blame blame;
    for (std::uint64_t t = start; t < start + 20'000 * ms; t += 10 * ms) {
        const auto now = host(t + ms);
        for (std::uint16_t id = 0; id < boards; ++id) {
            const std::uint64_t shown = id == culprit ? clock(t) : t;
            if (sends(id, t)) detector.send(id, shown, shown + ms, 90, now);
        }
        detector.tracker.watermark(now, 0);
        if ((t - start) % (200 * ms) != 0) continue;
        patient.second([&](Patient& p) {
            p.now.sources = detector.tracker.status(now);
            // A tick of the tracker is a nanosecond.
            for (SourceStatus& s : p.now.sources.sources) {
                if (s.skew)
                    s.skew =
                        static_cast<std::int64_t>(static_cast<double>(*s.skew) * 1e3 / p.scanner.tick_ps);
                if (s.last_seen) s.last_seen = ns_at(p.time);
            }
        });
        for (const HealthReason& reason : patient.health.reasons()) {
            const std::string code = reason.problem.code;
            if (!code.starts_with("source_")) continue;
            const auto id = patient.now.sources.sources[reason.problem.subject].id;
            (id == culprit ? blame.culprit : blame.others).insert(code);
        }
    }
    return blame;
}

bool always(std::uint16_t /*id*/, std::uint64_t /*time*/) {
    return true;
}

}  // namespace

TEST_CASE("one bad clock does not blame the other 75 boards") {
    const bool listed = GENERATE(true, false);
    const std::uint64_t off = GENERATE(1500 * ms, 5000 * ms);
    const std::uint64_t later = start + 5000 * ms;
    CAPTURE(listed, off / ms);
    for (const auto& [name, clock, code] :
         {std::tuple<const char*, Clock, const char*>{"leads", [&](std::uint64_t t) { return t + off; },
                                                      "source_leading"},
          {"lags", [&](std::uint64_t t) { return t - off; }, "source_lagging"},
          {"steps ahead", [&](std::uint64_t t) { return t < later ? t : t + off; }, "source_leading"},
          {"drifts ahead", [&](std::uint64_t t) { return t + (t - start) / 4; }, "source_leading"}}) {
        INFO(name);
        const Blame found = blame(clock, always, listed);
        CHECK(found.culprit.contains(code));
        CHECK(found.others.empty());
    }
}

TEST_CASE("a leading clock that was alone at first, and so made detector time, is named for it") {
    const bool listed = GENERATE(true, false);
    CAPTURE(listed);
    const Sends alone_first = [](std::uint16_t id, std::uint64_t t) {
        return id == culprit || t > start + 8000 * ms;
    };
    const Blame found = blame([](std::uint64_t t) { return t + 5000 * ms; }, alone_first, listed);
    CHECK(found.culprit == std::set<std::string>{"source_leading"});
    CHECK_FALSE(found.others.contains("source_lagging"));
}

TEST_CASE("many reasons of one kind are one, with the worst") {
    Patient patient(json{{"health", {{"max_temperature_C", 50}}}});
    patient.second([](Patient& p) {
        auto h = std::make_shared<gpu::SinglesHistograms>(*histograms(p.scanner.geometry, 0, 10, 55));
        for (const std::uint32_t bdm : {2U, 6U, 7U, 8U, 20U})
            *h += *histograms(p.scanner.geometry, bdm, 10, bdm == 6 ? 61 : 55);
        p.now.histograms = h;
        p.now.sources.sources[0].state = SourceState::lagging;
        p.now.sources.sources[0].skew = -static_cast<std::int64_t>(2e12 / p.scanner.tick_ps);
        p.now.total.frames.late += 100'000;
    });
    const auto reasons = ranked(patient.health.reasons());
    REQUIRE(reasons.size() == 3);
    CHECK(std::string(reasons[0].code) == "source_lagging");
    CHECK(reasons[1].count == 6);
    CHECK(reasons[1].message ==
          "6 BDMs above 50 C: 0, 2, 6-8, 20; the worst: BDM 6 is at 61.0 C, above 50 C: check the "
          "cooling");
    CHECK(std::string(reasons[2].code) == "late_frames");
    CHECK(reasons[2].follows_from == "source_lagging");

    // Those that cool down are not above the threshold any more.
    patient.second([](Patient& p) {
        auto h = std::make_shared<gpu::SinglesHistograms>(*histograms(p.scanner.geometry, 6, 10, 61));
        *h += *histograms(p.scanner.geometry, 2, 10, 49);
        p.now.histograms = h;
    });
    CHECK(ranked(patient.health.reasons())[1].message.starts_with(
        "6 BDMs above 50 C, or not yet below 48 C: 0, 2, 6-8, 20; the worst: BDM 6"));
}

TEST_CASE("the units of a silent board do not count because it is silent") {
    LastingReasons health;
    health.observe({{"detector_unit_silent", 3, "BDM 3: 4 DUs do not count", "look"},
                    {"source_silent", 3, "source 3 is silent", "look"}},
                   at(0));
    const auto reasons = ranked(health.reasons());
    REQUIRE(reasons.size() == 2);
    CHECK(std::string(reasons[0].code) == "source_silent");
    CHECK(reasons[1].follows_from == "source_silent");
}
