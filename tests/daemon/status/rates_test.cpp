// The arithmetic of rates, estimates, disk and stages.
#include <cmath>

#include "daemon/space/disk_space.hpp"
#include "daemon/status/document_detector.hpp"
#include "daemon/status/lasting_reasons.hpp"
#include "daemon/status/status.hpp"
#include "daemon/system/progress.hpp"
#include "tests/daemon/status/helpers.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;
using nlohmann::json;

namespace {

AcquisitionSnapshot busy_snapshot() {
    AcquisitionSnapshot s = snapshot_at(2);
    s.bytes_received = 8'000'000;
    s.busy_s = 0.5;
    s.total.datagrams.received = 9'000;
    s.total.datagrams.lost = 1'000;
    gpu::FrameCounts& f = s.total.frames;
    f.received = 100'000;
    f.bad_marker = 1'000;
    f.bad_address = 2'000;
    f.outside_crystal = 4'000;
    f.accepted = 60'000;
    gpu::SingleCounts& c = s.total.singles;
    c.prompts = 10'000;
    c.delayeds = 2'000;
    c.in_dropped_multiples = 300;
    c.in_oversize_multiples = 100;
    c.unused_in_multiples = 5'000;
    c.decided = 60'000;
    return s;
}

/// The same counts, after another time.
AcquisitionSnapshot snapshot_of_seconds(double seconds) {
    AcquisitionSnapshot s = busy_snapshot();
    s.taken = at(seconds);
    return s;
}

double number(const json& rates, const std::string& key) {
    return rates.at(key).get<double>();
}

}  // namespace

TEST_CASE("rates are growth over time") {
    // A second of which the interval holds four times the singles.
    SecondsTotal measured;
    measured.length_s = 1;
    measured.singles = 15'000;
    measured.randoms = 500;
    measured.delayeds = 500;
    measured.weighted_delayeds = 510;
    const json r = make_rates(busy_snapshot(), snapshot_at(0), {true, 0.25, ""}, measured);
    CHECK(r["interval_s"] == Approx(2));
    CHECK(r["bytes_per_s"] == Approx(4'000'000));
    CHECK(r["datagrams_per_s"] == Approx(4'500));
    CHECK(r["lost_fraction"] == Approx(0.1));
    CHECK(r["frames_per_s"] == Approx(50'000));
    CHECK(r["singles_raw_per_s"] == Approx(46'500));
    CHECK(r["singles_per_s"] == Approx(30'000));
    CHECK(r["multiples_per_s"] == Approx(200));
    CHECK(r["prompts_per_s"] == Approx(5'000));
    CHECK(r["delayeds_per_s"] == Approx(1'000));
    CHECK(r["net_trues_per_s"] == Approx(4'000));
    CHECK(r["randoms_fraction"] == Approx(0.2));
    // Trues 3,000, scattered 1,000, randoms 1,000: T^2 / (T + S + R) and T^2 / (T + S + 2 R).
    CHECK(r["necr_per_s"] == Approx(3'000.0 * 3'000 / (3'000 + 1'000 + 1'000)));
    CHECK(r["necr_subtracted_per_s"] == Approx(3'000.0 * 3'000 / (3'000 + 1'000 + 2 * 1'000)));
    CHECK(r["necr_scatter_fraction"] == Approx(0.25));
    CHECK(r["expected_randoms_per_s"] == Approx(1'000));
    CHECK(r["expected_randoms_uncertain"] == false);
    measured.uncertain_s = 0.5;
    CHECK(make_rates(busy_snapshot(), snapshot_at(0), {true, 0.25, ""},
                     measured)["expected_randoms_uncertain"] == true);
    CHECK(r["randoms_from_delayeds_per_s"] == Approx(1'020));
    CHECK(r["triples_per_s"].is_null());  // without a search for gammas

    AcquisitionSnapshot with_gammas = busy_snapshot();
    with_gammas.total.gammas.triples = 300;
    with_gammas.total.gammas.delayed = 50;
    const json g = make_rates(with_gammas, snapshot_at(0), {true, 0.25, "", true}, measured);
    CHECK(g["triples_per_s"] == Approx(150));
    CHECK(g["delayed_triples_per_s"] == Approx(25));
    CHECK(r["busy_fraction"] == Approx(0.25));
}

TEST_CASE("randoms are null until a second has been measured") {
    const json r = make_rates(busy_snapshot(), snapshot_at(0), {true, 0.25, ""}, {});
    CHECK(r["net_trues_per_s"].is_null());
    CHECK(r["randoms_fraction"].is_null());
    CHECK(r["necr_per_s"].is_null());
    CHECK(r["expected_randoms_per_s"].is_null());
    CHECK(r["expected_randoms_uncertain"].is_null());
    CHECK(r["prompts_per_s"] == Approx(5'000));
}

TEST_CASE("without a measured scatter fraction the NECR is unknown, and the rates say what to do") {
    SecondsTotal measured;
    measured.length_s = 1;
    measured.singles = 30'000;
    measured.randoms = 1'000;
    const json unknown = make_rates(busy_snapshot(), snapshot_at(0), {true, {}, "not used"}, measured);
    CHECK(number(unknown, "net_trues_per_s") > 0);
    for (const char* key : {"necr_per_s", "necr_subtracted_per_s", "necr_scatter_fraction"})
        CHECK(unknown[key].is_null());
    CHECK_THAT(unknown["necr_scatter_fraction_from"].get<std::string>(),
               contains("set estimates.scatter_fraction"));
    const auto from = [&](const char* text) {
        return make_rates(busy_snapshot(), snapshot_at(0), {true, 0.0, text}, measured);
    };
    CHECK(number(from(""), "necr_per_s") > 0);
    CHECK(from("")["necr_scatter_fraction_from"] == "estimates.scatter_fraction");
    CHECK(from("rat phantom, May")["necr_scatter_fraction_from"] == "rat phantom, May");
}

TEST_CASE("an unknown loss is null") {
    AcquisitionSnapshot bare = busy_snapshot();
    bare.total.numbered = false;
    CHECK(make_rates(bare, snapshot_at(0), {}, {})["lost_fraction"].is_null());
    CHECK(make_rates(snapshot_at(1), snapshot_at(0), {}, {})["lost_fraction"].is_null());
}

TEST_CASE("rates are 0 if no time passed or a counter decreased") {
    AcquisitionSnapshot before = busy_snapshot();
    const json still = make_rates(before, before, {true, 0.2, ""}, {});
    CHECK(still["interval_s"] == 0);
    for (const auto& [key, value] : still.items()) {
        INFO(key);
        if (!key.starts_with("necr_scatter_fraction")) CHECK((value.is_null() || value == 0));
    }
    before.taken = at(0);
    AcquisitionSnapshot now = snapshot_at(1);
    const json back = make_rates(now, before, {true, 0.2, ""}, {});
    for (const char* key : {"bytes_per_s", "datagrams_per_s", "frames_per_s", "prompts_per_s"})
        CHECK(back[key] == 0);
    CHECK(rate(10, 20, 1) == 0);
    CHECK(rate(20, 10, 0) == 0);
    CHECK(rate(20, 10, -1) == 0);
    CHECK(rate(20, 10, 4) == Approx(2.5));
}

TEST_CASE("all rates are over the same interval") {
    // However long the interval takes, and whatever was measured: a second of detector time, or half of one.
    for (const double length_s : {1.0, 0.5}) {
        SecondsTotal measured;
        measured.length_s = length_s;
        measured.singles = 20'000;
        measured.randoms = 700;
        measured.delayeds = 500;
        measured.weighted_delayeds = 550;
        const json one = make_rates(snapshot_of_seconds(1), snapshot_at(0), {true, 0.25, "", true}, measured);
        for (const double seconds : {0.5, 1.0, 3.0, 40.0}) {
            INFO(length_s << " s in " << seconds << " s");
            const json r =
                make_rates(snapshot_of_seconds(seconds), snapshot_at(0), {true, 0.25, "", true}, measured);
            CHECK(number(r, "prompts_per_s") - number(r, "expected_randoms_per_s") ==
                  Approx(number(r, "net_trues_per_s")));
            CHECK(number(r, "randoms_fraction") * number(r, "prompts_per_s") ==
                  Approx(number(r, "expected_randoms_per_s")));
            CHECK(number(r, "randoms_from_delayeds_per_s") == Approx(1.1 * number(r, "delayeds_per_s")));
            for (const auto& [key, value] : r.items()) {
                INFO(key);
                if (key.ends_with("_per_s"))
                    CHECK(number(r, key) * seconds == Approx(number(one, key)));
                else if (key.ends_with("_fraction") && key != "busy_fraction")
                    CHECK(value == Approx(number(one, key)));
            }
        }
        // The data have ended.
        AcquisitionSnapshot later = busy_snapshot();
        later.taken = at(3);
        const json quiet = make_rates(later, busy_snapshot(), {true, 0.25, ""}, measured);
        for (const char* key : {"prompts_per_s", "expected_randoms_per_s", "randoms_from_delayeds_per_s",
                                "net_trues_per_s", "necr_per_s", "necr_subtracted_per_s"})
            CHECK(quiet[key] == 0);
        CHECK(quiet["randoms_fraction"].is_null());
    }
}

TEST_CASE("a quiet second says nothing about the randoms of data that begin") {
    SecondsTotal quiet;
    quiet.length_s = 1;
    const json r = make_rates(busy_snapshot(), snapshot_at(0), {true, 0.25, ""}, quiet);
    for (const char* key : {"expected_randoms_per_s", "randoms_from_delayeds_per_s", "net_trues_per_s"})
        CHECK(r[key].is_null());
}

TEST_CASE("more randoms than prompts leave no trues") {
    SecondsTotal measured;
    measured.length_s = 1;
    measured.singles = 30'000;
    measured.randoms = 6'000;
    const json r = make_rates(busy_snapshot(), snapshot_at(0), {true, 0.2, ""}, measured);
    CHECK(r["net_trues_per_s"] == Approx(-1'000));
    CHECK(r["necr_per_s"] == 0);
}

TEST_CASE("dead time of a non-paralysable detector") {
    // 100,000 true hits a second, blind for 1 us after each: 1 / 1.1 of them are counted.
    const double measured = 1e5 / 1.1;
    CHECK(dead_time_fraction({measured}, 1e-6) == Approx(1 - 1 / 1.1));
    CHECK(dead_time_fraction({measured, measured}, 1e-6) == Approx(1 - 1 / 1.1));
    // A unit without hits changes nothing; an uneven load loses more than an even one.
    CHECK(dead_time_fraction({measured, 0}, 1e-6) == Approx(1 - 1 / 1.1));
    CHECK(dead_time_fraction({2e5, 0}, 1e-6) > dead_time_fraction({1e5, 1e5}, 1e-6));
    CHECK(dead_time_fraction({1e6}, 1e-6) == 1);
    CHECK(dead_time_fraction({0, 0}, 1e-6) == 0);
    CHECK(dead_time_fraction({}, 1e-6) == 0);
    CHECK(dead_time_fraction({1e5}, 0) == 0);
}

TEST_CASE("sources and modules of the document") {
    const config::Scanner scanner = small_scanner();
    RunSetting setting;
    setting.configuration = std::make_shared<const config::Configuration>(
        configuration_with(json{{"estimates", {{"dead_time_ns", 1000}}}}));
    setting.scanner = &scanner;
    auto before = std::make_shared<AcquisitionSnapshot>(snapshot_at(0));
    auto now = std::make_shared<AcquisitionSnapshot>(snapshot_at(2));
    SourceStatus source;
    source.id = 7;
    source.state = SourceState::active;
    source.datagrams = 100;
    source.frames = 1'000;
    source.lost = 0;
    before->sources.sources = {source};
    source.datagrams = 300;
    source.frames = 3'000;
    source.lost = 40;
    now->sources.sources = {source, source};  // the second one is new
    now->sources.sources[1].id = 8;
    now->sources.sources[1].lost = 0;
    now->histograms_before = histograms(scanner.geometry, 3, 0, 0);
    now->histograms_before_taken = at(0);
    now->histograms = histograms(scanner.geometry, 3, 20'000, 25.5);
    Reading reading_now;
    reading_now.taken = at(2);
    reading_now.acquisition = now;
    Reading reading_before;
    reading_before.taken = at(0);
    reading_before.acquisition = before;
    LastingReasons health;
    health.observe({{"source_silent", 1, "source 8 is silent", "look"}, {"temperature_high", 3, "hot", ""}},
                   at(2));
    const RunState run;
    Observation seen{&setting, &run, &reading_now, &reading_before, before.get(), &health};

    const json sources = make_sources(seen);
    REQUIRE(sources.size() == 2);
    CHECK(sources[0]["datagrams_per_s"] == Approx(100));
    CHECK(sources[0]["frames_per_s"] == Approx(1'000));
    CHECK(sources[0]["lost_per_s"] == Approx(20));
    CHECK(sources[0]["lost_fraction"] == Approx(40.0 / 240));
    CHECK(sources[1]["lost_fraction"] == 0);
    CHECK(sources[0]["health"] == "degraded");
    CHECK(sources[0]["reason"] == "16.7 % of its datagrams are lost");
    CHECK(sources[1]["datagrams_per_s"] == Approx(150));
    CHECK(sources[1]["health"] == "degraded");
    CHECK(sources[1]["reason"] == "source 8 is silent: look");

    // Sorted by id, not by arrival.
    now->sources.sources[0].id = 9;
    CHECK(make_sources(seen)[0]["id"] == 8);
    CHECK(make_sources(seen)[0]["reason"] == "source 8 is silent: look");
    CHECK(make_sources(seen)[1]["id"] == 9);

    for (const char* code : {"source_silent", "source_lagging", "source_leading", "source_jumping",
                             "source_clock", "source_stepped_back", "source_restarted"}) {
        INFO(code);
        LastingReasons other;
        other.observe({{code, 1, "source 8 is not well", "look"}}, at(2));
        seen.health = &other;
        CHECK(make_sources(seen)[0]["health"] == "degraded");
        CHECK(make_sources(seen)[0]["reason"] == "source 8 is not well: look");
    }
    seen.health = &health;

    const json modules = make_modules(seen);
    REQUIRE(modules.size() == scanner.geometry.bdm_count);
    CHECK(modules[3]["health"] == "degraded");
    CHECK(modules[3]["singles_per_s"] == Approx(10'000 * scanner.geometry.du_count));
    CHECK(modules[3]["peak_keV"] == Approx(510));
    CHECK(modules[3]["temperature_C"] == Approx(25.5));
    CHECK(modules[3]["dead_time_fraction"] == Approx(1e4 * 1e-6));
    CHECK(modules[4]["health"] == "ok");
    CHECK(modules[4]["singles_per_s"] == 0);
    CHECK(modules[4]["peak_keV"].is_null());
    CHECK(modules[4]["temperature_C"].is_null());
    CHECK(make_dead_time(seen)["fraction"] == Approx(1e4 * 1e-6));
    CHECK(make_dead_time(seen)["model"] == "non-paralysable");

    // The status shows the dead time that a board reports rather than the estimate.
    auto second = std::make_shared<Second>(Second::none(scanner.geometry));
    second->range = {5000, 6000};
    second->length_s = 1;
    second->dead_time[4] = 250;
    now->second = second;
    CHECK(make_modules(seen)[4]["dead_time_fraction"] == Approx(0.25));
    // The interval of two seconds holds three times the singles of that second, and of its random pairs.
    second->sums.counts.decided = 1'000;
    second->randoms.per_crystal.assign(scanner.geometry.crystal_count(), 0);
    second->randoms.per_crystal[scanner.geometry.crystal(3, 0, 0)] = 8;
    CHECK(make_modules(seen)[3]["expected_randoms_per_s"] == 0);  // no singles in the energy window
    auto counted = std::make_shared<gpu::SinglesHistograms>(*now->histograms);
    counted->per_crystal[0] = 3'000;
    counted->energy_bin_keV = 8;
    now->histograms = counted;
    CHECK(make_modules(seen)[3]["expected_randoms_per_s"] == Approx(12));
    CHECK(make_modules(seen)[3]["peak_keV"] == Approx(1020));
    CHECK(make_modules(seen)[3]["mean_keV"] == Approx(1020));
    second->sums.counts.decided = 0;
    CHECK(make_modules(seen)[3]["expected_randoms_per_s"].is_null());
    CHECK(make_modules(seen)[3]["dead_time_fraction"] == Approx(1e4 * 1e-6));
    now->second = nullptr;

    // Unknown: no interval, no histograms, not configured.
    seen.before = &reading_now;
    CHECK(make_sources(seen)[0]["lost_fraction"].is_null());
    // Modules always show the latest histograms.
    CHECK(make_modules(seen)[3]["singles_per_s"] == Approx(10'000 * scanner.geometry.du_count));
    now->histograms_before = nullptr;
    CHECK(make_modules(seen)[3]["singles_per_s"].is_null());
    CHECK(make_modules(seen)[3]["dead_time_fraction"].is_null());
    CHECK(make_dead_time(seen)["fraction"].is_null());
    now->histograms = nullptr;
    CHECK(make_modules(seen).empty());
    setting.configuration = std::make_shared<const config::Configuration>(configuration_with());
    CHECK(make_dead_time(seen).is_null());
}

TEST_CASE("the time left on the disk follows from the rate of the last ten seconds") {
    WriteRate written;
    CHECK(written.per_second() == 0);
    written.observe(0, at(0));
    CHECK(written.per_second() == 0);
    written.observe(1'000, at(1));
    CHECK(written.per_second() == Approx(1'000));
    for (int i = 2; i <= 30; ++i)
        written.observe(1'000 + static_cast<std::uint64_t>(i - 1) * 500, at(i));
    CHECK(written.per_second() == Approx(500));  // the fast second is over
    written.observe(10, at(31));                 // the next run
    CHECK(written.per_second() == 0);
    written.observe(10, at(31));
    CHECK(written.per_second() == 0);

    DiskStatus disk{DiskSpace{10'000, 20'000}, 500};
    CHECK(*disk.time_left_s() == Approx(20));
    disk.write_bytes_per_s = 0;
    CHECK_FALSE(disk.time_left_s());
    disk = {std::nullopt, 500};
    CHECK_FALSE(disk.time_left_s());
}

TEST_CASE("space of a file system") {
    const auto here = disk_space(std::filesystem::temp_directory_path());
    REQUIRE(here);
    CHECK(here->total_bytes > 0);
    CHECK(here->free_bytes <= here->total_bytes);
    CHECK(here->total_bytes == std::filesystem::space(std::filesystem::temp_directory_path()).capacity);
    CHECK_FALSE(disk_space("/nowhere/at/all"));
}

namespace {

StageProgress stage(const char* name, std::uint64_t work, bool waiting, double busy_s, double read_at) {
    return {name, work, waiting, busy_s, at(read_at)};
}

}  // namespace

TEST_CASE("a stage is stalled when something waits and nothing moves") {
    ProgressWatch watch;
    CHECK(watch.states().empty());
    for (int i = 0; i <= 10; ++i) {
        const auto moving = static_cast<std::uint64_t>(i);
        watch.observe({stage("moves", moving, true, 0.25 * i, i), stage("stands", 7, true, 0, i),
                       stage("nothing to do", 7, false, 0, i)},
                      at(i));
        REQUIRE(watch.states().size() == 3);
        INFO(i);
        CHECK(watch.states()[0].name == "moves");
        CHECK(watch.states()[0].activity == (i == 0 ? Activity::idle : Activity::busy));
        CHECK(watch.states()[0].utilisation == Approx(i == 0 ? 0 : 0.25));
        CHECK(watch.states()[1].activity == (i < 5 ? Activity::idle : Activity::stalled));
        CHECK(watch.states()[1].stands_s == Approx(i));
        CHECK(watch.states()[2].activity == Activity::idle);
    }
    // It moves again, then stalls.
    watch.observe({stage("stands", 8, true, 0, 11)}, at(11));
    REQUIRE(watch.states().size() == 1);
    CHECK(watch.states()[0].activity == Activity::idle);
    CHECK(watch.states()[0].stands_s == 0);
    // A stage that was idle is not stalled as soon as work arrives.
    watch.observe({stage("stands", 8, false, 0, 30)}, at(30));
    watch.observe({stage("stands", 8, true, 0, 40)}, at(40));
    CHECK(watch.states()[0].activity == Activity::idle);
    watch.observe({stage("stands", 8, true, 0, 45)}, at(45));
    CHECK(watch.states()[0].activity == Activity::stalled);
}

TEST_CASE("utilisation is a share of the time between the readings") {
    ProgressWatch watch;
    watch.observe({stage("a", 0, true, 1, 0)}, at(0));
    // The stage read its clock half a second ago, and again now.
    watch.observe({stage("a", 1, true, 1.5, 2)}, at(1));
    CHECK(watch.states()[0].utilisation == Approx(0.25));
    watch.observe({stage("a", 2, true, 9, 3)}, at(2));
    CHECK(watch.states()[0].utilisation == 1);
    watch.observe({stage("a", 3, true, 9, 3)}, at(3));
    CHECK(watch.states()[0].utilisation == 0);
    watch.observe({stage("a", 4, true, 9.005, 4)}, at(4));
    CHECK(watch.states()[0].activity == Activity::idle);
    CHECK(std::string(name_of(Activity::stalled)) == "stalled");
}
