// petlm union against a slow reference: hosts that lost different datagrams of one stream.
#include <array>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "tests/tools/petlm/tags.hpp"
#include "tests/tools/petlm/union/support.hpp"

using namespace petacq;
using namespace petacq::test;
using daemon::Intervals;
using daemon::RecordKind;
using gpu::TickRange;
using nlohmann::json;

TEST_CASE("union: the records of a host that lost nothing, whatever the others lost", "[union]") {
    std::mt19937_64 random(37);
    for (int round = 0; round < 8; ++round) {
        const std::size_t hosts = 2 + random() % 2;
        const double loss = std::array{0.0, 0.01, 0.3, 0.5}.at(random() % 4);
        const double lost_by_all = std::array{0.0, 0.0, 0.05}.at(random() % 3);
        const Singles all = some_singles(random);
        // The datagrams of a module hold up to ten hits.
        std::map<std::uint32_t, std::pair<std::size_t, std::set<std::size_t>>> open;
        std::vector<Singles> heard(hosts);
        Singles expected;
        std::vector<std::uint64_t> only(hosts);
        std::uint64_t several = 0;
        for (const gpu::Single& s : all) {
            auto& [left, by] = open[s.crystal % 6];
            if (left == 0) {
                left = 1 + random() % 10;
                by.clear();
                const auto chance = [&](double p) { return std::uniform_real_distribution()(random) < p; };
                for (std::size_t h = 0; h < hosts; ++h)
                    if (!chance(loss)) by.insert(h);
                if (by.empty()) by.insert(random() % hosts);
                if (chance(lost_by_all)) by.clear();
            }
            --left;
            for (const std::size_t h : by)
                heard[h].push_back(s);
            if (!by.empty()) expected.push_back(s);
        }
        // A hit counts as often as the host that has it most often: slowly, by counting.
        const auto key = [](const gpu::Single& s) { return std::tuple(s.time, s.crystal, s.energy); };
        std::map<std::tuple<std::uint64_t, std::uint32_t, float>, std::vector<std::size_t>> counts;
        for (std::size_t h = 0; h < hosts; ++h)
            for (const gpu::Single& s : heard[h]) {
                auto& of_hosts = counts[key(s)];
                of_hosts.resize(hosts);
                ++of_hosts[h];
            }
        Singles united;
        for (const auto& [hit, by] : counts) {
            const std::size_t most = *std::max_element(by.begin(), by.end());
            for (std::size_t i = 0; i < most; ++i) {
                const auto& [time, crystal, energy] = hit;
                united.push_back({time, crystal, energy});
                const auto having = std::count_if(by.begin(), by.end(), [&](std::size_t n) { return n > i; });
                if (having > 1) ++several;
                for (std::size_t h = 0; h < hosts && having == 1; ++h)
                    if (by[h] > i) ++only[h];
            }
        }
        const TickRange times{all.front().time, all.back().time + 1};
        const TemporaryDirectory directory;
        std::vector<std::filesystem::path> runs;
        for (std::size_t h = 0; h < hosts; ++h)
            runs.push_back(write_heard(directory / std::to_string(h), heard[h], times));
        INFO("round " << round << ", " << hosts << " hosts, loss " << loss << " and " << lost_by_all);
        REQUIRE(quietly_unite(options_for(directory / "u", runs)) == petlm::ok);
        CHECK(same_bytes(read_singles(directory / "u" / "singles.plm"), united));
        CHECK(same_bytes(read_coincidences(directory / "u" / "coincidences.plm"),
                         found_at_once(united, rules()).coincidences));
        const json run = run_json_of(directory / "u");
        CHECK(run["state"] == "complete");
        CHECK(run["united"]["hits"]["several"] == several);
        CHECK(run["united"]["hits"]["only"] == only);
        CHECK(run["ledger"]["saved_singles"]["written"] == united.size());
        CHECK(coverage_in(directory / "u", RecordKind::singles).intervals == Intervals(times));
        CHECK(coverage_in(directory / "u", RecordKind::coincidences).intervals == Intervals(times));
        // Two equal hits in two datagrams are one if each host lost another of them.
        CHECK(united.size() <= expected.size());
        CHECK(expected.size() - united.size() <= 10);
        if (lost_by_all == 0 && loss == 0) CHECK(same_bytes(united, all));
    }
}

TEST_CASE("union: what a host that was killed does not cover comes from the other", "[union]") {
    std::mt19937_64 random(38);
    const TemporaryDirectory directory;
    const Singles all = some_singles(random);
    const TickRange times{all.front().time, all.back().time + 1};
    const std::uint64_t killed = all[1000].time;
    const std::uint64_t back = all[2000].time;
    const auto whole = write_heard(directory / "b", all, times);
    const json running = {{"state", "running"}, {"stop_ticks", nullptr}};

    SECTION("within a block, as a file without index") {
        const auto cut = write_heard(directory / "a", all, times, running);
        const auto file = cut / "singles.plm";
        std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
        REQUIRE(quietly_unite(options_for(directory / "u", {cut, whole})) == petlm::ok);
        CHECK(same_bytes(read_singles(directory / "u" / "singles.plm"), all));
        const json run = run_json_of(directory / "u");
        CHECK(run["state"] == "complete");
        CHECK(run["united"]["runs"][0]["state"] == "interrupted");

        // Alone, it ends with its last whole block.
        const auto again = write_heard(directory / "c", between(all, 0, killed), {{times.start, killed}});
        REQUIRE(quietly_unite(options_for(directory / "v", {cut, again})) == petlm::ok);
        const json cut_off = run_json_of(directory / "v");
        CHECK(cut_off["state"] == "interrupted");
        const Singles left = read_singles(directory / "v" / "singles.plm");
        CHECK(left.size() > 1000);
        CHECK(same_bytes(left, Singles(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(left.size()))));
        CHECK(cut_off["stop_ticks"] == left.back().time + 1);
    }
    SECTION("before its first block") {
        const auto empty = write_heard(directory / "a", {}, times, running);
        const std::string file = (empty / "singles.plm").string();
        for (const bool without_file : {false, true}) {
            if (without_file) std::filesystem::remove(file);
            auto options = options_for(directory / "u", {empty, whole});
            options.force = true;
            REQUIRE(quietly_unite(options) == petlm::ok);
            CHECK(same_bytes(read_singles(directory / "u" / "singles.plm"), all));
        }
        const auto other = write_heard(directory / "c", {}, times, running);
        std::filesystem::remove(other / "singles.plm");
        CHECK_THROWS_WITH(quietly_unite(options_for(directory / "v", {empty, other})),
                          contains("none of the runs has singles"));
        CHECK_FALSE(std::filesystem::exists(directory / "v"));
    }
    SECTION("a block that the disk has spoilt") {
        const auto spoilt = write_heard(directory / "a", all, times);
        std::string bytes = read_file(spoilt / "singles.plm");
        bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
        write_file(spoilt / "singles.plm", bytes);
        REQUIRE(quietly_unite(options_for(directory / "u", {spoilt, whole})) == petlm::ok);
        CHECK(same_bytes(read_singles(directory / "u" / "singles.plm"), all));
        CHECK(run_json_of(directory / "u")["united"]["runs"][0]["damage"] ==
              "1 blocks of its singles cannot be read");
        // A failure after the warning does not hide it: there is no place for the captures.
        for (const auto& run : {spoilt, whole})
            write_file(run / "raw.pcap", "no capture");
        std::filesystem::create_directories(directory / "v" / "raw.pcap.partial" / "taken");
        std::ostringstream printed;
        std::streambuf* const err = std::cerr.rdbuf(printed.rdbuf());
        CHECK_THROWS(petlm::unite(options_for(directory / "v", {spoilt, whole})));
        std::cerr.rdbuf(err);
        CHECK_THAT(printed.str(), contains("petlm: " + spoilt.string() + ": 1 blocks of its singles"));
    }
    SECTION("and it returned with a run of another name") {
        const auto first = write_heard(directory / "a", between(all, 0, killed), {{times.start, killed}});
        const auto second = write_heard(directory / "a", between(all, back, UINT64_MAX), {{back, times.end}},
                                        json::object(), "r-2");
        auto options = options_for(directory / "u", {first, whole, second});
        CHECK_THROWS_WITH(quietly_unite(options), contains("--any-name"));
        options.any_name = true;
        REQUIRE(quietly_unite(options) == petlm::ok);
        CHECK(same_bytes(read_singles(directory / "u" / "singles.plm"), all));
        const json run = run_json_of(directory / "u");
        CHECK(run["run_id"] == "r");
        CHECK(run["united"]["hits"]["only"][1] == between(all, killed, back).size());

        // Without the other host, nobody knows what happened in between.
        options = options_for(directory / "v", {first, second});
        options.any_name = true;
        REQUIRE(quietly_unite(options) == petlm::ok);
        const json gap = run_json_of(directory / "v");
        CHECK(gap["state"] == "partial");
        CHECK(gap["resorted"]["missing"][0]["from_ticks"] == killed);
        CHECK(gap["resorted"]["missing"][0]["to_ticks"] == back);
        CHECK(daemon::coverage_of_run(gap).intervals ==
              Intervals(TickRange{times.start, killed}).unite(TickRange{back, times.end}));
    }
}

TEST_CASE("union: tags of one stream count once, and those that one host lost are there", "[union]") {
    std::mt19937_64 random(39);
    const TemporaryDirectory directory;
    const Singles all = some_singles(random);
    const TickRange times{all.front().time, all.back().time + 1};
    std::vector<gpu::Tag> tags;
    std::array<std::vector<gpu::Tag>, 2> heard;
    for (std::uint64_t t = times.start; t < times.end; t += 50) {
        tags.push_back(tag(t, 1 + static_cast<unsigned>(random() % 3), gpu::TagKind::trigger,
                           static_cast<std::uint32_t>(t)));
        if (random() % 10 == 0) tags.push_back(tags.back());  // sent twice
        const auto by = random() % 3;
        for (std::size_t h = 0; h < 2; ++h)
            if (by != h)
                heard.at(h).insert(heard.at(h).end(), std::find(tags.begin(), tags.end(), tags.back()),
                                   tags.end());
    }
    std::vector<std::filesystem::path> runs;
    for (std::size_t h = 0; h < 2; ++h) {
        runs.push_back(write_heard(directory / std::to_string(h), all, times));
        write_covered(runs.back() / "tags.plm", RecordKind::tags, heard.at(h),
                      covered_by_run(runs.back(), times, resort_scanner().tick_ps));
    }
    REQUIRE(quietly_unite(options_for(directory / "u", runs)) == petlm::ok);
    daemon::ListModeReader reader(directory / "u" / "tags.plm");
    std::vector<gpu::Tag> found;
    while (reader.next())
        found.insert(found.end(), reader.tags().begin(), reader.tags().end());
    const auto order = [](const gpu::Tag& t) { return std::tie(t.time, t.channel, t.kind, t.value); };
    REQUIRE(found.size() == tags.size());
    CHECK(std::equal(found.begin(), found.end(), tags.begin(),
                     [&](const gpu::Tag& a, const gpu::Tag& b) { return order(a) == order(b); }));
}

TEST_CASE("union: the run of a host that was killed begins with its first tag, before its first hit",
          "[union]") {
    std::mt19937_64 random(41);
    const TemporaryDirectory directory;
    const Singles earlier = some_singles(random);
    const Singles all = between(earlier, earlier[100].time, UINT64_MAX);
    const TickRange times{earlier.front().time, all.back().time + 1};
    REQUIRE(times.start < all.front().time);
    std::vector<gpu::Tag> tags;
    for (std::uint64_t t = times.start; t < times.end; t += 50)
        tags.push_back(tag(t, 1, gpu::TagKind::clock, static_cast<std::uint32_t>(tags.size())));
    const auto tags_between = [&](std::uint64_t from, std::uint64_t to) {
        std::vector<gpu::Tag> some;
        std::copy_if(tags.begin(), tags.end(), std::back_inserter(some),
                     [&](const gpu::Tag& t) { return from <= t.time && t.time < to; });
        return some;
    };
    const std::uint64_t joined = all[500].time;
    const std::uint64_t killed = all[1000].time;

    // Its files were begun before its data, and were not closed.
    const auto cut = write_heard(
        directory / "a", between(all, 0, killed), times,
        {{"state", "running"}, {"start_ticks", nullptr}, {"stop_ticks", nullptr}, {"coverage", nullptr}});
    daemon::Coverage unknown = covered_by_run(cut, times, resort_scanner().tick_ps);
    unknown.anchor.reset();
    unknown.intervals.reset();
    write_covered(cut / "singles.plm", RecordKind::singles, between(all, 0, killed), unknown);
    write_covered(cut / "tags.plm", RecordKind::tags, tags_between(0, killed), unknown);
    for (const char* file : {"singles.plm", "tags.plm"})
        std::filesystem::resize_file(cut / file, std::filesystem::file_size(cut / file) - 1);
    const TickRange heard{joined, times.end};
    const auto other = write_heard(directory / "b", between(all, joined, UINT64_MAX), heard);
    write_covered(other / "tags.plm", RecordKind::tags, tags_between(joined, UINT64_MAX),
                  covered_by_run(other, heard, resort_scanner().tick_ps));

    REQUIRE(quietly_unite(options_for(directory / "u", {cut, other})) == petlm::ok);
    CHECK(same_bytes(read_singles(directory / "u" / "singles.plm"), all));
    daemon::ListModeReader reader(directory / "u" / "tags.plm");
    std::vector<gpu::Tag> found;
    while (reader.next())
        found.insert(found.end(), reader.tags().begin(), reader.tags().end());
    CHECK(found.size() == tags.size());
    CHECK((found == tags));
    const json run = run_json_of(directory / "u");
    CHECK(run["start_ticks"] == times.start);
    CHECK(daemon::coverage_of_run(run).intervals == Intervals(times));
    CHECK(coverage_in(directory / "u", RecordKind::tags).intervals == Intervals(times));
}

TEST_CASE("union: runs that are not of one stream are refused, with the reason", "[union]") {
    std::mt19937_64 random(40);
    const TemporaryDirectory directory;
    const Singles all = some_singles(random, 200);
    const TickRange times{all.front().time, all.back().time + 1};
    const auto one = write_heard(directory / "a", all, times);
    int other = 0;
    const auto refused = [&](const json& changes, const std::string& why) {
        INFO(why);
        const auto run = write_heard(directory / std::to_string(++other), all, times, changes);
        CHECK_THROWS_WITH(quietly_unite(options_for(directory / "u", {one, run})), contains(why));
        CHECK_FALSE(std::filesystem::exists(directory / "u"));
    };
    refused({{"scanner", {{"name", "other"}}}}, "their scanner differs");
    refused({{"calibration_sha256", "abd"}}, "their calibration differs");
    refused({{"configuration", {{"clock", "hall 4"}}}}, "their clock differs");
    refused({{"configuration", {{"energy", {{"lower_keV", 10}}}}}}, "their energy window differs");
    refused({{"configuration", {{"coincidence", {{"window_ticks", 41}}}}}},
            "their coincidence rules differs");
    refused({{"configuration", {{"sources", {{"ids", {1, 2}}}}}}}, "their list of sources differs");
    refused({{"configuration", {{"receive", {{"framing", "bare"}}}}}}, "their framing differs");
    refused({{"run_id", "s"}}, "have different names, r and s; expected one run, or --any-name");
    const auto refuse_runs = [&](std::vector<std::filesystem::path> runs, const std::string& why) {
        CHECK_THROWS_WITH(quietly_unite(options_for(directory / "u", std::move(runs))), contains(why));
    };
    refuse_runs({one}, "expected the runs of two hosts or more");
    refuse_runs({one, one / ""}, "named twice");
    std::filesystem::create_symlink(one, directory / "link");
    refuse_runs({one, directory / "link"}, "named twice");
    refuse_runs({one, directory / "nothing"}, "expected the directory of a run");
    std::filesystem::create_directory(directory / "empty");
    write_file(directory / "empty" / "run.json", "{}");
    refuse_runs({one, directory / "empty"}, "its run.json has no scanner");
    CHECK_THROWS_WITH(quietly_unite(options_for(one, {one, write_heard(directory / "b", all, times)})),
                      contains("is one of the runs"));
}
