// petlm resort divides the singles of any number of hosts into shards; what it finds does not depend on that.
#include <array>

#include "tests/tools/petlm/resort/support.hpp"
#include "tools/petlm/base/status.hpp"

using namespace petacq;
using namespace petacq::test;

TEST_CASE("resort: the same coincidences for any hosts, shards and workers", "[resort]") {
    std::mt19937_64 random(11);
    gpu::CoincidenceRules rules;
    rules.window = 40;
    rules.delay = 700;
    rules.max_multiplicity = 9;
    std::size_t found = 0;
    for (const std::string kind : {"sparse", "dense", "chained", "on the edge", "bursts"}) {
        for (unsigned way = 0; way < 36; ++way) {
            rules.mode = static_cast<gpu::WindowMode>(way / 12);
            rules.delayeds = static_cast<gpu::DelayedRule>(way / 6 % 2);
            rules.policy = static_cast<gpu::MultiplesPolicy>(way % 6);
            const nlohmann::json coincidence = coincidence_of(rules);
            const Singles all = difficult(kind, rules.window, random, 1500);
            const gpu::SliceResult expected = found_at_once(all, rules);
            found += expected.coincidences.size();

            const std::uint64_t hosts = std::array{1, 2, 3, 7}.at(random() % 4);
            petlm::ResortOptions options;
            options.backend = "cpu";
            options.threads = 1 + random() % 4;
            options.shard_singles = std::array{20, 250, 700, 100'000}.at(random() % 4);
            INFO(kind << ", " << coincidence.dump() << ", " << hosts << " hosts, " << *options.threads
                      << " workers, shards of " << *options.shard_singles);
            const TemporaryDirectory directory;
            options.input.runs = write_host_runs(directory.path(), all, hosts, coincidence);
            options.output = directory / "out.plm";
            REQUIRE(quietly_resort(options) == petlm::ok);
            CHECK(same_bytes(read_coincidences(options.output), expected.coincidences));
        }
    }
    CHECK(found > 10'000);
}

TEST_CASE("resort: the interval is that of a run that starts and stops there", "[resort]") {
    std::mt19937_64 random(12);
    gpu::CoincidenceRules rules;
    rules.window = 40;
    const nlohmann::json coincidence = {{"window_ticks", 40}};
    const TemporaryDirectory directory;
    const Singles all = difficult("dense", 40, random, 5000);
    write_singles_run(directory / "run", all, coincidence, 0, all.back().time + 1);
    const std::uint64_t from = all[1000].time + 1;
    const std::uint64_t to = all[4000].time;
    petlm::ResortOptions options;
    options.input = {{directory / "run"}, from, to, {}};
    options.output = directory / "new";
    options.backend = "cpu";
    options.shard_singles = 600;
    REQUIRE(quietly_resort(options) == petlm::ok);
    CHECK(same_bytes(read_coincidences(directory / "new" / "coincidences.plm"),
                     found_at_once(between(all, from, to), rules).coincidences));
    const auto run = nlohmann::json::parse(read_file(directory / "new" / "run.json"));
    CHECK(run["start_ticks"] == from);
    CHECK(run["stop_ticks"] == to);
    CHECK(run["resorted"]["missing"].empty());

    options.input.to = from;
    options.force = true;
    CHECK_THROWS_WITH(quietly_resort(options), contains("--from-ticks"));
}

TEST_CASE("resort: nothing outside the interval forms a coincidence, wherever it stops", "[resort]") {
    std::mt19937_64 random(14);
    gpu::CoincidenceRules rules;
    rules.window = 40;
    rules.delay = 700;
    rules.policy = gpu::MultiplesPolicy::take_all_goods;
    const nlohmann::json coincidence = {
        {"window_ticks", 40}, {"multiples_policy", "TakeAllGoods"}, {"delay_ticks", 700}};
    for (const std::string kind : {"sparse", "dense", "chained", "bursts"}) {
        const TemporaryDirectory directory;
        const Singles all = difficult(kind, 40, random, 600);
        write_singles_run(directory / "run", all, coincidence, 0, all.back().time + 1);
        for (int i = 0; i < 10; ++i) {
            const std::uint64_t from = all[random() % 200].time + random() % 2;
            const std::uint64_t to = all[300 + random() % 290].time + random() % 2;
            INFO(kind << ", " << from << " to " << to);
            petlm::ResortOptions options;
            options.input = {{directory / "run"}, from, to, {}};
            options.output = directory / "out.plm";
            options.force = true;
            options.backend = "cpu";
            options.threads = 2;
            options.shard_singles = 250;
            REQUIRE(quietly_resort(options) == petlm::ok);
            CHECK(same_bytes(read_coincidences(options.output),
                             found_at_once(between(all, from, to), rules).coincidences));
        }
    }
}

TEST_CASE("resort: hosts with different times share what they have in common", "[resort]") {
    std::mt19937_64 random(13);
    gpu::CoincidenceRules rules;
    rules.window = 40;
    const nlohmann::json coincidence = {{"window_ticks", 40}};
    const TemporaryDirectory directory;
    const Singles all = difficult("dense", 40, random, 5000);
    const std::uint64_t late = all[700].time;    // the second host starts
    const std::uint64_t early = all[4200].time;  // the first one stops
    std::vector<Singles> parts(2);
    Singles common;
    Singles any;
    for (const gpu::Single& s : all) {
        const std::size_t host = s.crystal % 2;
        const bool missing = host == 0 ? s.time >= early : s.time < late;
        if (missing) continue;
        parts[host].push_back(s);
        any.push_back(s);
        if (s.time >= late && s.time < early) common.push_back(s);
    }
    write_singles_run(directory / "a", parts[0], coincidence, 0, early);
    write_singles_run(directory / "b", parts[1], coincidence, late, all.back().time + 1);
    petlm::ResortOptions options;
    options.input.runs = {directory / "a", directory / "b"};
    options.output = directory / "common";
    options.backend = "cpu";
    REQUIRE(quietly_resort(options) == petlm::ok);
    CHECK(same_bytes(read_coincidences(options.output / "coincidences.plm"),
                     found_at_once(common, rules).coincidences));
    auto run = nlohmann::json::parse(read_file(options.output / "run.json"));
    CHECK(run["state"] == "complete");
    CHECK(run["start_ticks"] == late);
    CHECK(run["stop_ticks"] == early);

    options.input.partial = true;
    options.output = directory / "partial";
    REQUIRE(quietly_resort(options) == petlm::ok);
    CHECK(same_bytes(read_coincidences(options.output / "coincidences.plm"),
                     found_at_once(any, rules).coincidences));
    run = nlohmann::json::parse(read_file(options.output / "run.json"));
    CHECK(run["state"] == "partial");
    REQUIRE(run["resorted"]["missing"].size() == 2);
    CHECK(run["resorted"]["missing"][0]["run"] == (directory / "a").string());
    CHECK(run["resorted"]["missing"][0]["from_ticks"] == early);
    CHECK(run["resorted"]["missing"][1]["to_ticks"] == late);
}

TEST_CASE("resort: runs that do not belong together are refused, with the reason", "[resort]") {
    const nlohmann::json coincidence = {{"window_ticks", 40}};
    const TemporaryDirectory directory;
    const Singles some = {{100, 1, 511}, {120, 700, 511}};
    write_singles_run(directory / "a", some, coincidence, 0, 1000);
    struct Way {
        std::string name;
        nlohmann::json changes;
        std::string reason;
    };
    const std::vector<Way> ways{
        {"tick", {{"scanner", {{"tick_ps", 20}}}}, "tick_ps"},
        {"scanner", {{"scanner", {{"geometry", {{"bdm_count", 12}}}}}}, "bdm_count"},
        {"calibration", {{"calibration_sha256", "other"}}, "calibration differs"},
        {"clock", {{"configuration", {{"clock", "lab 2"}}}}, "clock differs"},
        {"energy",
         {{"configuration", {{"energy", {{"filter", true}, {"lower_keV", 400}, {"upper_keV", 600}}}}}},
         "energy window differs"},
        {"gammas",
         {{"configuration", {{"gammas", {{"lower_keV", 900}, {"upper_keV", 1300}, {"before_ticks", 5}}}}}},
         "energy window of gammas differs"},
        {"time", {{"start_ticks", 5000}, {"stop_ticks", 6000}}, "no time in common"}};
    petlm::ResortOptions options;
    options.output = directory / "out";
    options.backend = "cpu";
    for (const Way& way : ways) {
        INFO(way.name);
        const Singles later = {{5500, 1, 511}};
        write_singles_run(directory / way.name, way.name == "time" ? later : some, coincidence, 0, 1000,
                          way.changes);
        options.input.runs = {directory / "a", directory / way.name};
        CHECK_THROWS_WITH(quietly_resort(options), contains(way.reason));
    }
    options.input.runs = {directory / "a", directory / "a"};
    CHECK_THROWS_WITH(quietly_resort(options), contains("named twice"));
    const auto takes = [](std::vector<int> ids) -> nlohmann::json {
        return {{"configuration", {{"sources", {{"ids", std::move(ids)}, {"accept_any", false}}}}}};
    };
    write_singles_run(directory / "left", some, coincidence, 0, 1000, takes({3, 4}));
    write_singles_run(directory / "right", some, coincidence, 0, 1000, takes({4, 5}));
    options.input.runs = {directory / "left", directory / "right"};
    CHECK_THROWS_WITH(quietly_resort(options), contains("both list the source 4"));
    CHECK_FALSE(std::filesystem::exists(options.output));

    // A block that cannot be read.
    write_singles_run(directory / "broken", some, coincidence, 0, 1000);
    std::string bytes = read_file(directory / "broken" / "singles.plm");
    bytes[4096 + 70] ^= 1;
    write_file(directory / "broken" / "singles.plm", bytes);
    options.input.runs = {directory / "a", directory / "broken"};
    CHECK_THROWS_WITH(quietly_resort(options), contains("wrong CRC"));
    CHECK_FALSE(std::filesystem::exists(options.output / "run.json"));
}
