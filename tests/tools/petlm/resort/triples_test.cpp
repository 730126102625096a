// petlm resort finds the triples that one search over all singles finds, and counts the gammas as it does,
// wherever shards are divided: also where gammas belong to pairs of many shards.
#include <array>

#include "tests/tools/petlm/resort/support.hpp"
#include "tools/petlm/base/status.hpp"

using namespace petacq;
using namespace petacq::test;
using nlohmann::json;

namespace {

constexpr gpu::EnergyWindow energy{true, 450, 700};

gpu::CoincidenceRules random_rules(std::mt19937_64& random) {
    gpu::CoincidenceRules rules;
    rules.window = 40;
    if (random() % 2 == 0) rules.delay = 700;
    rules.mode = static_cast<gpu::WindowMode>(random() % 3);
    rules.policy = static_cast<gpu::MultiplesPolicy>(random() % 6);
    gpu::GammaRules& gammas = rules.gammas.emplace();
    gammas.lower = 300;
    gammas.upper = 449;
    gammas.before = std::array{0, 30, 400, 6000}.at(random() % 4);
    gammas.after = std::array{0, 60, 500, 9000}.at(random() % 4);
    gammas.policy = static_cast<gpu::GammaPolicy>(random() % 3);
    if (random() % 2 == 0) gammas.delay = gammas.before + gammas.after + 1 + random() % 2000;
    return rules;
}

json configuration_of(const gpu::GammaRules& gammas) {
    json section = {{"lower_keV", gammas.lower},
                    {"upper_keV", gammas.upper},
                    {"before_ticks", gammas.before},
                    {"after_ticks", gammas.after},
                    {"policy", name_of(gammas.policy)}};
    if (gammas.delay) section["delay_ticks"] = *gammas.delay;
    return {{"energy", {{"filter", true}, {"lower_keV", energy.lower}, {"upper_keV", energy.upper}}},
            {"gammas", section}};
}

template <class Record, class Read>
gpu::RecordVector<Record> records_of(const std::filesystem::path& run, const char* kind, Read read) {
    gpu::RecordVector<Record> all;
    const json document = json::parse(read_file(run / "run.json"));
    for (const json& file : document["files"]) {
        if (file["kind"] != kind) continue;
        const auto some = read(run / file["name"].get<std::string>());
        CHECK(file["records"] == some.size());
        all.insert(all.end(), some.begin(), some.end());
    }
    return all;
}

void check_run(const std::filesystem::path& run, const gpu::SliceResult& expected) {
    CHECK(same_bytes(records_of<gpu::Coincidence>(run, "coincidences", read_coincidences),
                     expected.coincidences));
    CHECK(same_bytes(records_of<gpu::Triple>(run, "triples", read_triples), expected.triples));
    const json ledger = json::parse(read_file(run / "run.json"))["ledger"];
    const gpu::GammaCounts& counts = expected.gamma_counts;
    CHECK(ledger["gammas"]["used"] == counts.used);
    CHECK(ledger["gammas"]["unused"] == counts.unused);
    CHECK(ledger["gammas"]["reused"] == counts.reused);
    CHECK(ledger["gammas"]["triples"] == counts.triples);
    CHECK(ledger["gammas"]["delayed"] == counts.delayed);
    CHECK(ledger["triples"]["written"] == expected.triples.size());
}

/// Singles that are the same, and gammas of which several are, too.
Singles singles_with_twins(const std::string& kind, std::mt19937_64& random, std::size_t count) {
    Singles all = difficult(kind, 40, random, count);
    for (std::size_t i = 0; i + 1 < all.size(); i += 2 + random() % 9)
        all[i + 1] = all[i];
    return all;
}

}  // namespace

TEST_CASE("resort: the same triples for any hosts, shards and workers, in one process and in parts",
          "[resort][triples]") {
    std::mt19937_64 random(31);
    std::size_t found = 0;
    std::uint64_t reused = 0;
    for (const std::string kind : {"sparse", "dense", "chained", "on the edge", "bursts"}) {
        for (unsigned way = 0; way < 12; ++way) {
            const gpu::CoincidenceRules rules = random_rules(random);
            const Singles all = singles_with_twins(kind, random, 600);
            const gpu::SliceResult expected = found_at_once(all, rules, energy);
            found += expected.triples.size();
            reused += expected.gamma_counts.reused;

            const std::uint64_t hosts = std::array{1, 2, 5}.at(random() % 3);
            petlm::ResortOptions options;
            options.backend = "cpu";
            options.threads = 1 + random() % 3;
            options.shard_singles = std::array{10, 60, 250, 100'000}.at(random() % 4);
            const json configuration = configuration_of(*rules.gammas);
            INFO(kind << ", " << coincidence_of(rules).dump() << configuration.dump() << ", " << hosts
                      << " hosts, shards of " << *options.shard_singles);
            const TemporaryDirectory directory;
            options.input.runs = write_host_runs(directory.path(), all, hosts, coincidence_of(rules),
                                                 {{"configuration", configuration}}, 512);
            options.output = directory / "whole";
            REQUIRE(quietly_resort(options) == petlm::ok);
            check_run(options.output, expected);
            if (way % 4 != 0) continue;
            options.output = directory / "parts";
            const std::uint32_t shares = 1 + random() % 4;
            for (std::uint32_t share = shares; share >= 1; --share) {
                options.part = petlm::Share{share, shares};
                REQUIRE(quietly_resort(options) == petlm::ok);
            }
            options.part.reset();
            options.join = true;
            REQUIRE(quietly_resort(options) == petlm::ok);
            check_run(options.output, expected);
        }
    }
    CHECK(found > 50'000);
    CHECK(reused > 10'000);
}

TEST_CASE("resort: gammas of an interval, to the end of time, and without or with other rules",
          "[resort][triples]") {
    std::mt19937_64 random(32);
    const TemporaryDirectory directory;
    gpu::CoincidenceRules rules;
    rules.window = 40;
    rules.gammas = gpu::GammaRules{300, 449, 300, 500, gpu::GammaPolicy::all, {}};
    Singles all = difficult("sparse", 40, random, 3000);
    const std::uint64_t shift = UINT64_MAX - all.back().time;
    for (gpu::Single& single : all)
        single.time += shift;
    const json configuration = configuration_of(*rules.gammas);
    write_singles_run(directory / "host", all, {{"window_ticks", 40}}, all.front().time, UINT64_MAX,
                      {{"configuration", configuration}, {"stop_ticks", nullptr}});
    petlm::ResortOptions options;
    options.input.runs = {directory / "host"};
    options.backend = "cpu";
    options.shard_singles = 200;
    const auto resort = [&](const char* name) {
        options.output = directory / name;
        REQUIRE(quietly_resort(options) == petlm::ok);
        return options.output;
    };
    options.input.from = all[1000].time + 1;
    options.input.to = all[2000].time;
    check_run(resort("interval"),
              found_at_once(between(all, options.input.from, options.input.to), rules, energy));
    options.input.from = all[2500].time;
    options.input.to = UINT64_MAX;

    options.gamma_policy = "nearest";
    options.gamma_before_ticks = 70;
    options.gamma_delay_ticks = 4000;
    options.gamma_upper_keV = 400;
    rules.gammas = gpu::GammaRules{300, 400, 70, 500, gpu::GammaPolicy::nearest, 4000};
    const Singles last(all.begin() + 2500, all.end() - 1);  // nothing is before the end of time
    options.input.from = last.front().time;
    options.input.to = last.back().time + 1;
    check_run(resort("other rules"), found_at_once(last, rules, energy));
    const json run = json::parse(read_file(options.output / "run.json"));
    CHECK(run["configuration"]["gammas"]["policy"] == "nearest");
    CHECK(run["resorted"]["gammas"]["before_ticks"] == 70);

    options.gamma_upper_keV = 460;
    options.output = directory / "refused";
    CHECK_THROWS_WITH(quietly_resort(options),
                      contains("the run has saved singles from 450 to 700 keV and 300 to 449 keV"));
    options = {};
    options.input.runs = {directory / "host"};
    options.backend = "cpu";
    options.no_gammas = true;
    resort("none");
    CHECK_FALSE(std::filesystem::exists(options.output / "triples.plm"));
    const json none = json::parse(read_file(options.output / "run.json"));
    CHECK(none["configuration"]["gammas"].is_null());
    CHECK(none["ledger"]["gammas"]["used"] == 0);
}

TEST_CASE("resort: saved singles of all energies give gammas, if their rules are asked for",
          "[resort][triples]") {
    std::mt19937_64 random(33);
    const TemporaryDirectory directory;
    const Singles all = difficult("sparse", 40, random, 2000);
    write_singles_run(directory / "host", all, {{"window_ticks", 40}}, 0, all.back().time + 1);
    petlm::ResortOptions options;
    options.input.runs = {directory / "host"};
    options.output = directory / "out";
    options.backend = "cpu";
    options.shard_singles = 200;
    options.lower_keV = energy.lower;
    options.upper_keV = energy.upper;
    options.gamma_lower_keV = 300;
    CHECK_THROWS_WITH(quietly_resort(options), contains("the run has no gammas: expected --gamma-upper-kev"));
    options.gamma_upper_keV = 449;
    options.gamma_before_ns = "30000";  // ticks of a microsecond
    CHECK_THROWS_WITH(quietly_resort(options), contains("expected --gamma-after-ticks or --gamma-after-ns"));
    options.gamma_after_ns = "60999";
    REQUIRE(quietly_resort(options) == petlm::ok);
    gpu::CoincidenceRules rules;
    rules.window = 40;
    rules.gammas = gpu::GammaRules{300, 449, 30, 60, gpu::GammaPolicy::all, {}};
    check_run(options.output, found_at_once(all, rules, energy));
}
