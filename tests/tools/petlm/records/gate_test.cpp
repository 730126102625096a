// petlm gate and petlm cut --gate.
#include <algorithm>
#include <cmath>
#include <map>

#include "config/make_calibration.hpp"
#include "tests/daemon/seconds/support.hpp"
#include "tests/support/point_estimate.hpp"
#include "tests/support/read_listmode.hpp"
#include "tests/tools/petlm/tags.hpp"
#include "tools/petsim/simulation/base/movement.hpp"
#include "tools/petsim/simulation/simulation.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

/// One pair of kind prompt, or delayed every fifth, at each of these times.
gpu::RecordVector<gpu::Coincidence> pairs_at(const std::vector<std::uint64_t>& times) {
    gpu::RecordVector<gpu::Coincidence> out;
    for (const std::uint64_t time : times) {
        gpu::Coincidence c;
        c.time = time;
        c.crystal_b = 100;
        c.kind = out.size() % 5 == 4 ? gpu::Kind::delayed : gpu::Kind::prompt;
        out.push_back(c);
    }
    return out;
}

std::filesystem::path phase(const std::filesystem::path& directory, std::size_t number) {
    return directory / ("phase-" + std::to_string(100 + number).substr(1) + ".plm");
}

std::map<std::string, std::vector<double>> table_in(const std::filesystem::path& file) {
    std::istringstream in(read_file(file));
    std::map<std::string, std::vector<double>> table;
    std::vector<std::string> names;
    for (std::string line; std::getline(in, line);) {
        std::istringstream fields(line);
        std::size_t i = 0;
        for (std::string field; std::getline(fields, field, ','); ++i) {
            if (names.size() == i && table.empty()) {
                names.push_back(field);
            } else {
                table[names[i]].push_back(std::stod(field));
            }
        }
        if (table.empty()) table[names[0]] = {};
    }
    return table;
}

}  // namespace

TEST_CASE("petlm gate on a run of a moving point gives its positions", "[petlm][gate]") {
    const config::Scanner scanner = export_scanner();
    config::CalibrationModel model;
    model.time_offset_ticks = 40;
    sim::Options options;
    options.duration_s = 0.6;
    options.physics.scatter = 0;
    options.cycle = {0.1, 0.05};
    options.activity.resize(1);
    options.activity[0].activity_mbq = 4;
    options.activity[0].motion = {2, 8, sim::MotionShape::sine};
    options.tags.trigger = 1;
    std::map<std::uint64_t, std::vector<sim::TruthRecord>> photons;
    std::vector<gpu::Tag> tags;
    sim::Simulation simulation(scanner, config::make_calibration(scanner, model), options);
    simulation.run([](const sim::Datagram&) {},
                   [&](std::span<const sim::TruthRecord> records) {
                       for (const auto& t : records) {
                           if ((t.flags & sim::truth_tag) != 0) {
                               tags.push_back(tag(t.time, t.annihilation >> 32U & 0xFF, gpu::TagKind::trigger,
                                                  static_cast<std::uint32_t>(t.annihilation)));
                           } else if (t.annihilation != 0) {
                               photons[t.annihilation].push_back(t);
                           }
                       }
                   });
    gpu::RecordVector<gpu::Coincidence> records;
    for (const auto& [id, both] : photons) {
        if (both.size() != 2) continue;
        gpu::Coincidence c;
        c.time = std::min(both[0].time, both[1].time);
        c.crystal_a = both[0].crystal;
        c.crystal_b = both[1].crystal;
        c.energy_a = c.energy_b = 511;
        records.push_back(c);
    }
    std::sort(records.begin(), records.end(), [](const auto& a, const auto& b) { return a.time < b.time; });
    REQUIRE(tags.size() >= 5);

    const TemporaryDirectory directory;
    const auto run = directory / "run";
    write_run(run, records, scanner);
    auto document = nlohmann::json::parse(read_file(run / "run.json"));
    document["start_ticks"] = 0;
    write_file(run / "run.json", document.dump());
    write_tags(run / "tags.plm", tags);
    const Outcome outcome = run_petlm("gate" + quoted(run) + "--channel 1");
    CAPTURE(outcome.out);
    REQUIRE(outcome.status == 0);
    const auto table = table_in(run / "gate-1" / "phases.csv");
    REQUIRE(table.at("bin").size() == 8);
    double live_s = 0;
    for (std::size_t bin = 0; bin < 8; ++bin) {
        const auto pairs = read_coincidences(phase(run / "gate-1", bin + 1));
        REQUIRE(pairs.size() > 1000);
        CHECK(table.at("prompts")[bin] == static_cast<double>(pairs.size()));
        CHECK(table.at("prompts_per_s")[bin] ==
              Approx(static_cast<double>(pairs.size()) / table.at("live_s")[bin]).epsilon(1e-5));
        live_s += table.at("live_s")[bin];
        const double expected =
            sim::displacement_mm(options.activity[0].motion, (static_cast<double>(bin) + 0.5) / 8);
        CAPTURE(bin, expected);
        CHECK(std::abs(point_along(scanner, pairs, 2) - expected) < 0.5);
    }
    CHECK(live_s ==
          Approx(static_cast<double>(tags.back().time - tags.front().time) * 15.625e-12).epsilon(1e-6));
    // Without the gate, the point is nowhere.
    CHECK(run_petlm("verify" + quoted(phase(run / "gate-1", 3))).status == 0);
    // A phase knows its run.
    CHECK(exported("castor", phase(run / "gate-1", 3), directory / "castor").status == 0);
    CHECK(run_petlm("gate" + quoted(run) + "--channel 1").status == 64);  // is there already
    CHECK(run_petlm("gate --force" + quoted(run) + "--channel 1 --bins 4").status == 0);
    CHECK(names_in(run / "gate-1") == std::set<std::string>{"phases.csv", "phase-01.plm", "phase-02.plm",
                                                            "phase-03.plm", "phase-04.plm"});
}

TEST_CASE("petlm gate sorts every pair as its definition says", "[petlm][gate]") {
    const TemporaryDirectory directory;
    const auto run = directory / "run";
    std::mt19937_64 random(3);
    // Cycles of any length, down to fewer ticks than bins; number 8 is missing, and number 20 is long.
    std::vector<gpu::Tag> tags;
    std::uint64_t time = run_start;
    for (std::uint32_t i = 1; i <= 40; ++i) {
        time += i % 4 == 0 ? random() % 5 : random() % 300;
        if (i == 20) time += 5000;
        if (i != 8) tags.push_back(tag(time, 3, gpu::TagKind::trigger, i));
        tags.push_back(tag(time + 1, 4, gpu::TagKind::trigger, 7 * i));  // of another channel
    }
    std::vector<std::uint64_t> times;
    for (std::uint64_t t = run_start; t < time + 300; t += random() % 3)
        times.push_back(t);
    const auto records = pairs_at(times);
    write_run(run, records);
    write_tags(run / "tags.plm", tags);
    // The seconds begin after some of the pairs, and end before the last; each has a weight of its own.
    constexpr std::uint64_t seconds = 6;
    constexpr std::uint64_t first_second = run_start + 1000;
    {
        daemon::SecondsFile file(run / "seconds.plm", small_scanner(), {{"tick_ps", 1e9}},
                                 config::Compression::none, std::chrono::seconds(1));
        for (std::uint64_t i = 0; i < seconds; ++i) {
            daemon::Second second = second_number(i);
            second.range = {first_second + 1000 * i, first_second + 1000 * (i + 1)};
            file.append(second);
        }
        file.finish();
    }
    const auto weight_at = [](std::uint64_t at) {
        if (at < first_second) return 1.0;
        return second_number(std::min((at - first_second) / 1000, seconds - 1)).delayeds_weight;
    };
    const unsigned bins = GENERATE(2U, 7U, 64U);
    const double longest_s = 4000 * 15.625e-12;
    const Outcome outcome =
        run_petlm("gate" + quoted(run) + "--channel 3 --bins " + std::to_string(bins) + " --longest-s " +
                  std::to_string(longest_s * 1e9) + "e-9 -o" + quoted(directory / "out"));
    CAPTURE(outcome.out);
    REQUIRE(outcome.status == 0);

    std::vector<gpu::RecordVector<gpu::Coincidence>> expected(bins);
    std::vector<std::uint64_t> live(bins);
    std::vector<gpu::Tag> triggers;
    for (const auto& t : tags) {
        if (t.channel == 3) triggers.push_back(t);
    }
    std::size_t accepted = 0;
    for (std::size_t i = 1; i < triggers.size(); ++i) {
        const std::uint64_t begin = triggers[i - 1].time;
        const std::uint64_t length = triggers[i].time - begin;
        if (length == 0 || length > 4000 || triggers[i].value != triggers[i - 1].value + 1) continue;
        ++accepted;
        for (std::uint64_t t = 0; t < length; ++t)
            ++live[t * bins / length];
        for (const auto& c : records) {
            if (c.time >= begin && c.time < begin + length)
                expected[(c.time - begin) * bins / length].push_back(c);
        }
    }
    CHECK_THAT(outcome.out, contains(": " + std::to_string(accepted) + " cycles of "));
    CHECK_THAT(outcome.out, contains(std::to_string(triggers.size() - 1 - accepted) + " cycles rejected"));
    const auto table = table_in(directory / "out" / "phases.csv");
    for (std::size_t bin = 0; bin < bins; ++bin) {
        CHECK(same(read_coincidences(phase(directory / "out", bin + 1)), expected[bin]));
        CHECK(table.at("live_s")[bin] == Approx(static_cast<double>(live[bin]) * 15.625e-12));
        CHECK(table.at("prompts")[bin] + table.at("delayeds")[bin] ==
              static_cast<double>(expected[bin].size()));
        double randoms = 0;
        for (const auto& c : expected[bin])
            randoms += c.kind == gpu::Kind::delayed ? weight_at(c.time) : 0;
        const double live_s = table.at("live_s")[bin];
        CHECK(table.at("randoms_per_s")[bin] * live_s == Approx(randoms).epsilon(1e-5));
        CHECK((table.at("prompts_per_s")[bin] - table.at("net_per_s")[bin]) * live_s ==
              Approx(randoms).epsilon(1e-3).margin(1e-3));
    }
}

TEST_CASE("petlm cut --gate keeps what lies in open gates", "[petlm][gate]") {
    const TemporaryDirectory directory;
    const auto run = directory / "run";
    std::mt19937_64 random(4);
    std::vector<std::uint64_t> times;
    for (std::uint64_t t = run_start; t < run_start + 20'000; t += random() % 6)
        times.push_back(t);
    const auto records = pairs_at(times);
    write_run(run, records);
    // The first tag closes a gate that was open at the start; then tags that change nothing, too.
    std::vector<gpu::Tag> tags;
    std::vector<bool> open(20'000);
    bool state = true;
    std::uint64_t at = 0;
    for (int i = 0; i < 60; ++i) {
        const std::uint64_t next = std::min<std::uint64_t>(at + random() % 600, 20'000);
        for (; at < next; ++at)
            open[at] = state;
        const bool value = i != 0 && random() % 2 != 0;
        tags.push_back(tag(run_start + at, 5, gpu::TagKind::gate, value ? 1 : 0));
        state = value;
    }
    for (; at < open.size(); ++at)
        open[at] = state;
    write_tags(run / "tags.plm", tags);
    const std::uint64_t from = run_start + GENERATE(0U, 3000U);
    const std::uint64_t to = run_start + GENERATE(9000U, 20'000U);
    const auto out = directory / "cut.plm";
    const std::string interval =
        "--from-ticks " + std::to_string(from) + " --to-ticks " + std::to_string(to) + " ";
    const auto target = GENERATE(false, true) ? run : run / "coincidences.plm";
    REQUIRE(run_petlm("cut" + quoted(target) + "--gate 5 -o" + quoted(out) + interval).status == 0);
    gpu::RecordVector<gpu::Coincidence> expected;
    for (const auto& c : records) {
        if (c.time >= from && c.time < to && open[c.time - run_start]) expected.push_back(c);
    }
    CHECK(same(read_coincidences(out), expected));
    const auto info = nlohmann::json::parse(run_petlm("info --json" + quoted(out)).out);
    CHECK(info["description"]["cut"]["gate"] == 5);
    const auto first = static_cast<std::ptrdiff_t>(from - run_start);
    const auto last = static_cast<std::ptrdiff_t>(to - run_start);
    CHECK(info["description"]["cut"]["open_ticks"] ==
          std::count(open.begin() + first, open.begin() + last, true));
}

TEST_CASE("petlm gate and cut say what is wrong", "[petlm][gate]") {
    const TemporaryDirectory directory;
    const auto run = directory / "run";
    write_run(run, pairs_at({run_start + 1, run_start + 2}));
    const auto refused = [&](const std::string& arguments, int status, const std::string& why) {
        const Outcome outcome = run_petlm(arguments + " 2>&1");
        CAPTURE(arguments, outcome.out);
        CHECK(outcome.status == status);
        CHECK_THAT(outcome.out, contains(why));
    };
    const std::string here = quoted(run);
    const std::string out = "-o" + quoted(directory / "out.plm");
    refused("gate" + here + "--channel 1", 1, "no triggers and no gates of channel 1");
    refused("cut" + here + "--gate 1" + " " + out, 1, "no triggers and no gates of channel 1");
    write_tags(run / "tags.plm", {tag(run_start, 1, gpu::TagKind::trigger, 1)});
    refused("gate" + here + "--channel 1", 1, "no cycle of channel 1");
    refused("cut" + here + "--gate 1" + " " + out, 1, "no gate");
    refused("cut" + here + "--gate 16" + " " + out, 64, "16");
    refused("gate" + here + "--channel 1 --bins 1", 64, "--bins 1");
    refused("gate" + here + "--channel 1 --shortest-s 2 --longest-s 1", 64, "--shortest-s 2");
    refused("gate" + quoted(run / "coincidences.plm") + "--channel 1", 64, "--output");
    CHECK(names_in(run) == std::set<std::string>{"coincidences.plm", "run.json", "tags.plm"});
    // Openings of a gate begin cycles where there are no triggers.
    write_tags(run / "tags.plm",
               {tag(run_start, 2, gpu::TagKind::gate, 1), tag(run_start + 1, 2, gpu::TagKind::gate, 0),
                tag(run_start + 4, 2, gpu::TagKind::gate, 1)});
    CHECK(run_petlm("gate" + here + "--channel 2 --bins 2 ").status == 0);
    CHECK(read_coincidences(phase(run / "gate-2", 1)).size() == 1);
    CHECK(read_coincidences(phase(run / "gate-2", 2)).size() == 1);
}

TEST_CASE("petlm gate says which weights it lacks", "[petlm][gate]") {
    const TemporaryDirectory directory;
    const auto run = directory / "run";
    std::vector<std::uint64_t> times;
    for (std::uint64_t t = run_start; t < run_start + 4000; t += 10)
        times.push_back(t);
    write_run(run, pairs_at(times));
    std::vector<gpu::Tag> tags;
    for (std::uint32_t i = 0; i < 5; ++i)
        tags.push_back(tag(run_start + 1000 * i, 1, gpu::TagKind::trigger, i + 1));
    write_tags(run / "tags.plm", tags);
    const auto gated = [&] { return run_petlm("gate --force --channel 1" + quoted(run) + "2>&1"); };
    CHECK_THAT(gated().out, contains("weights of delayeds are not known") && contains("without seconds"));
    write_seconds(run / "seconds.plm", 3);
    const Outcome whole = gated();
    CHECK(whole.status == 0);
    CHECK_FALSE(contains(whole.out, "weights of delayeds"));
    std::filesystem::resize_file(run / "seconds.plm", std::filesystem::file_size(run / "seconds.plm") - 100);
    CHECK_THAT(gated().out, contains("weights of delayeds are not known") && contains("truncated"));
}

TEST_CASE("petlm gate takes a file by its name alone", "[petlm][gate]") {
    const TemporaryDirectory directory;
    const auto run = directory / "run";
    write_run(run, pairs_at({run_start + 1, run_start + 5}));
    write_tags(run / "tags.plm", std::vector{tag(run_start, 1, gpu::TagKind::trigger, 1),
                                             tag(run_start + 10, 1, gpu::TagKind::trigger, 2)});
    const Outcome outcome =
        shell("cd" + quoted(run) + "&& " PETLM_PROGRAM " gate coincidences.plm --channel 1 --output" +
              quoted(directory / "out"));
    CAPTURE(outcome.out);
    CHECK(outcome.status == 0);
}
