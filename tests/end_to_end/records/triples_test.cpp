// Runs with a gamma window: triples of pairs and gammas, from the daemon to the tools. The lower part of the
// spectrum serves as the gamma window.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "tests/daemon/http/fixture.hpp"
#include "tests/daemon/tap/tap_client.hpp"
#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::test;
using nlohmann::json;

namespace {

constexpr float highest_gamma = 400;
constexpr std::int64_t before = 50'000;
constexpr std::int64_t after = 100'000;
constexpr std::int64_t delay = 1'000'000;

json with_gammas(const std::string& policy) {
    return {{"energy", {{"lower_keV", 430}, {"upper_keV", 650}}},
            {"coincidence", {{"delay_ticks", 30'000}}},
            {"gammas",
             {{"lower_keV", 200},
              {"upper_keV", highest_gamma},
              {"before_ticks", before},
              {"after_ticks", after},
              {"policy", policy},
              {"delay_ticks", delay}}},
            {"listmode", {{"write_singles", true}}}};
}

std::string good(const char* program, const std::vector<std::string>& arguments) {
    const Outcome outcome = run_program(program, arguments);
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.status == 0);
    return outcome.out;
}

template <class Record>
std::vector<Record> records_of(const std::filesystem::path& file) {
    const std::string bytes = payload_of(file);
    std::vector<Record> records(bytes.size() / sizeof(Record));
    std::memcpy(records.data(), bytes.data(), records.size() * sizeof(Record));
    return records;
}

/// The triples of a run by the rules, from its pairs and singles.
std::vector<gpu::Triple> expected_triples(const std::filesystem::path& run, const std::string& policy) {
    std::vector<gpu::Single> all_gammas;
    for (const gpu::Single& single : records_of<gpu::Single>(run / "singles.plm"))
        if (single.energy <= highest_gamma) all_gammas.push_back(single);
    std::span<const gpu::Single> gammas(all_gammas);
    std::vector<gpu::Triple> triples;
    for (const gpu::Coincidence& pair : records_of<gpu::Coincidence>(run / "coincidences.plm")) {
        for (const auto third : {gpu::ThirdPhoton::coincident, gpu::ThirdPhoton::delayed}) {
            std::vector<gpu::Triple> near;
            const std::int64_t shift = third == gpu::ThirdPhoton::delayed ? delay : 0;
            const std::int64_t time = static_cast<std::int64_t>(pair.time) + shift;
            auto gamma = std::find_if(gammas.begin(), gammas.end(), [&](const gpu::Single& g) {
                return static_cast<std::int64_t>(g.time) >= time - before;
            });
            // Pairs are in order of time: no later one needs the gammas before, if this one is not shifted.
            if (shift == 0) {
                gammas = gammas.subspan(static_cast<std::size_t>(gamma - gammas.begin()));
                gamma = gammas.begin();
            }
            for (; gamma != gammas.end(); ++gamma) {
                const std::int64_t dt = static_cast<std::int64_t>(gamma->time) - time;
                if (dt > after) break;
                near.push_back({pair, static_cast<std::int32_t>(dt), gamma->crystal, gamma->energy, third});
            }
            if (policy == "only_one" && near.size() != 1) near.clear();
            if (policy == "nearest" && !near.empty()) {
                near = {*std::min_element(near.begin(), near.end(), [](const auto& a, const auto& b) {
                    return std::abs(a.gamma_dt) < std::abs(b.gamma_dt);
                })};
            }
            triples.insert(triples.end(), near.begin(), near.end());
        }
    }
    return triples;
}

void check_triples(const Site& site, const std::string& name, const std::string& policy) {
    const auto run = site.run(name);
    const auto found = records_of<gpu::Triple>(run / "triples.plm");
    const auto expected = expected_triples(run, policy);
    REQUIRE(found.size() > 1000);
    REQUIRE(found.size() == expected.size());
    CHECK(std::memcmp(found.data(), expected.data(), found.size() * sizeof(gpu::Triple)) == 0);
    const json description = site.run_json(name);
    const json& ledger = description["ledger"];
    INFO(ledger.dump(1));
    CHECK(description["state"] == "complete");
    CHECK(ledger["closed"] == true);
    CHECK(ledger["triples"]["written"] == found.size());
    const auto delayed = std::count_if(found.begin(), found.end(), [](const gpu::Triple& t) {
        return t.third == gpu::ThirdPhoton::delayed;
    });
    CHECK(ledger["gammas"]["delayed"] == delayed);
    CHECK(delayed > 100);
    const auto singles = records_of<gpu::Single>(run / "singles.plm");
    const auto gammas = std::count_if(singles.begin(), singles.end(),
                                      [](const gpu::Single& s) { return s.energy <= highest_gamma; });
    const auto count = [&](const char* of) { return ledger["gammas"][of].get<std::int64_t>(); };
    CHECK(count("used") + count("unused") == gammas);
    CHECK(count("used") + count("reused") == count("triples"));
    good(PETLM_PROGRAM, {"verify", run.string()});
    const std::string true_triples = std::to_string(count("triples") - delayed) + " +- ";
    const std::string told = good(PETLM_PROGRAM, {"info", run.string()});
    INFO(told);
    CHECK(contains(told, true_triples) == (policy == "all"));
    CHECK(contains(told, "gammas hide others with the policy " + policy) == (policy != "all"));
}

/// The programs say by which rules the gammas of triples and singles were found, and find the seconds of
/// triples.
void check_gammas_told(const std::filesystem::path& run, const std::filesystem::path& directory) {
    for (const char* file : {"triples.plm", "singles.plm"}) {
        const std::string told = good(PETLM_PROGRAM, {"info", (run / file).string()});
        CAPTURE(told);
        REQUIRE(contains(told, "\ngammas       {"));
        const std::size_t at = told.find("\ngammas       ") + std::strlen("\ngammas       ");
        const json rules = json::parse(told.substr(at, told.find('\n', at) - at));
        CHECK(rules == with_gammas("all")["gammas"]);
    }
    CHECK_FALSE(
        contains(good(PETLM_PROGRAM, {"info", (run / "coincidences.plm").string()}), "\ngammas       "));
    for (const char* format : {"csv", "hdf5"}) {
        const std::string out = (directory / "triples.").string() + format;
        const std::string said = good(
            PETLM_PROGRAM, {"export", "--format", format, (run / "triples.plm").string(), "--output", out});
        const std::string readme = read_file(out + ".README.txt");
        CAPTURE(format, said, readme);
        for (const char* words : {"200 to 400 keV", "50000 ticks", "100000 ticks", "1000000 ticks", "all"})
            CHECK(contains(readme, words));
        if (std::string_view(format) == "hdf5") CHECK(contains(readme, "The group /seconds has 1 seconds"));
    }
}

/// The histograms of the page hold the triples of all prompts of the run.
void check_histograms(std::uint16_t port, const std::vector<gpu::Triple>& triples) {
    json shown;
    REQUIRE(eventually([&] {
        shown = http_document(port, "/gammas");
        return shown.is_object() && shown["running"] == false;
    }));
    CHECK(shown["run"] == "live");
    CHECK(shown["dropped"] == 0);
    for (const auto& [name, third] : {std::pair{"triples", gpu::ThirdPhoton::coincident},
                                      {"delayed_triples", gpu::ThirdPhoton::delayed}}) {
        const auto expected = [&](double most) {
            return std::count_if(triples.begin(), triples.end(), [&](const gpu::Triple& t) {
                return t.third == third && t.pair.kind == gpu::Kind::prompt &&
                       t.pair.dt / 2. - t.gamma_dt <= most;
            });
        };
        const auto counted = [&](const char* histogram) {
            const auto counts = shown[histogram][name].get<std::vector<std::int64_t>>();
            return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
        };
        CHECK(counted("times") == expected(before));
        CHECK(counted("energies") == expected(1e9));
    }
}

std::vector<std::string> stream(const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"--duration-s", "0.4", "--rate", "400000",
                                       "--sources",    "4",   "--seed", "5"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
}

}  // namespace

TEST_CASE("a run with gammas has the triples of its pairs, live and in replays", "[e2e][triples]") {
    Site site(with_gammas("all"));
    const std::string capture = (site.directory() / "simulated.pcap").string();
    simulate(site, stream({"--write", capture}));
    const auto replay = [&](const std::string& run) {
        good(PETACQD_PROGRAM, {"--config", site.configuration(), "--replay", capture, "--run", run});
    };
    replay("all");
    check_triples(site, "all", "all");
    const std::string pairs = payload_of(site.run("all") / "coincidences.plm");
    const std::string triples = payload_of(site.run("all") / "triples.plm");

    json split = with_gammas("all");
    split["pipeline"] = {{"slice_frames", 2000}, {"threads", 1}};
    split["listmode"].update({{"files", 2}, {"compression", "zstd"}, {"block_bytes", 4096}});
    site.configure(split);
    replay("split");
    CHECK(std::filesystem::exists(site.run("split") / "triples.2.plm"));
    CHECK(payload_of(site.run("split") / "triples.plm") == triples);
    good(PETLM_PROGRAM, {"verify", site.run("split").string()});
    good(PETLM_PROGRAM, {"recover", site.run("split").string(), "-o", (site.directory() / "saved").string()});
    CHECK(payload_of(site.directory() / "saved" / "triples.plm") == triples);
    good(PETLM_PROGRAM, {"verify", (site.directory() / "saved").string()});

    for (const char* policy : {"only_one", "nearest"}) {
        INFO(policy);
        site.configure(with_gammas(policy));
        replay(policy);
        check_triples(site, policy, policy);
        CHECK(payload_of(site.run(policy) / "coincidences.plm") == pairs);
    }

    if (const std::string reason = no_cuda_reason(); !reason.empty()) {
        WARN("on the CPU only: " << reason);
    } else {
        json on_gpu = with_gammas("all");
        on_gpu["pipeline"] = {{"backend", "cuda"}};
        site.configure(on_gpu);
        replay("cuda");
        check_triples(site, "cuda", "all");
        for (const char* file : {"coincidences.plm", "triples.plm", "singles.plm"}) {
            INFO(file);
            CHECK(payload_of(site.run("cuda") / file) == payload_of(site.run("all") / file));
        }
    }

    json shown_live = with_gammas("all");
    shown_live.update({{"tap", {{"socket", "tap.sock"}}}, {"quick_look", {{"interval_s", 0.1}}}});
    site.configure(shown_live);
    {
        Daemon daemon(site);
        TapClientForTest tap(site.directory() / "tap.sock");
        tap.ask({{"kind", "triples"}});
        daemon.start("live");
        const json summary =
            simulate(site, stream({"--to", "127.0.0.1:" + std::to_string(daemon.ports().front())}));
        REQUIRE(daemon.received(summary["total"]["expected"]["datagrams_received"]));
        const json stopped = daemon.stop();
        CHECK(stopped["ledger"]["gammas"]["triples"] > 500);
        CHECK(stopped["triples"] == stopped["ledger"]["gammas"]["triples"]);
        CHECK(stopped["delayed_triples"] == stopped["ledger"]["gammas"]["delayed"]);
        const auto text_of = [&](const char* key) {
            return std::to_string(stopped[key].get<std::uint64_t>());
        };
        CHECK(contains(daemon.log(), "run live complete (stopped by operator): " + text_of("prompts") +
                                         " prompts, " + text_of("delayeds") + " delayeds, " +
                                         text_of("triples") + " triples, " + text_of("delayed_triples") +
                                         " delayed triples"));
        CHECK(tap.records_of_run() == triples);
        check_histograms(daemon.http_port(), records_of<gpu::Triple>(site.run("live") / "triples.plm"));
        const json status = daemon.status();
        CHECK(status["common"]["gammas_upper_keV"] == highest_gamma);
        CHECK(status["average"]["triples_per_s"] > 0);
        CHECK(status["average"]["delayed_triples_per_s"] > 0);
        CHECK(daemon.terminate() == 0);
    }
    CHECK(payload_of(site.run("live") / "coincidences.plm") == pairs);
    CHECK(payload_of(site.run("live") / "triples.plm") == triples);

    // From the saved singles, in one process and in parts, with the counters of the run.
    const std::string all_run = site.run("all").string();
    const auto resorted = [&](const char* name) { return (site.directory() / name).string(); };
    good(PETLM_PROGRAM, {"resort", all_run, "-o", resorted("again"), "--shard-singles", "9000"});
    for (const char* part : {"2/2", "1/2"}) {
        good(PETLM_PROGRAM,
             {"resort", all_run, "-o", resorted("parts"), "--shard-singles", "9000", "--part", part});
    }
    good(PETLM_PROGRAM, {"resort", all_run, "-o", resorted("parts"), "--shard-singles", "9000", "--join"});
    const json ledger = site.run_json("all")["ledger"];
    for (const char* name : {"again", "parts"}) {
        INFO(name);
        CHECK(good(PETLM_PROGRAM, {"dump", resorted(name)}) == good(PETLM_PROGRAM, {"dump", all_run}));
        good(PETLM_PROGRAM, {"verify", resorted(name)});
        const json found = json::parse(read_file(site.directory() / name / "run.json"))["ledger"];
        CHECK(found["closed"] == true);
        for (const char* section : {"frames", "singles", "gammas", "triples"})
            CHECK(found[section] == ledger[section]);
        CHECK(good(PETLM_PROGRAM, {"dump", "--seconds", resorted(name)}) ==
              good(PETLM_PROGRAM, {"dump", "--seconds", all_run}));
    }
    CHECK(payload_of(site.directory() / "again" / "triples.plm") == triples);
    for (const auto& [field, section, name] :
         {std::tuple{"triples", "gammas", "triples"}, {"delayed_triples", "gammas", "delayed"}}) {
        std::istringstream lines(good(PETLM_PROGRAM, {"dump", "--seconds", "--field", field, all_run}));
        std::uint64_t sum = 0;
        for (std::string line; std::getline(lines, line);) {
            const std::size_t comma = line.rfind(',');
            if (comma != std::string::npos && std::isdigit(line[comma + 1]) != 0)
                sum += std::stoull(line.substr(comma + 1));
        }
        CHECK(sum == ledger[section][name]);
    }

    // The tools for records take triples as they take pairs.
    const auto file = [&](const char* name) { return (site.directory() / name).string(); };
    const std::string whole = (site.run("all") / "triples.plm").string();
    const auto records = records_of<gpu::Triple>(whole);
    const std::string middle = std::to_string(records[records.size() / 2].pair.time);
    good(PETLM_PROGRAM, {"cut", whole, "--to-ticks", middle, "-o", file("first.plm")});
    good(PETLM_PROGRAM, {"cut", whole, "--from-ticks", middle, "-o", file("second.plm")});
    good(PETLM_PROGRAM, {"merge", file("first.plm"), file("second.plm"), "-o", file("merged.plm")});
    CHECK(payload_of(file("merged.plm")) == triples);
    // Of runs, too: the halves of what was resorted.
    const auto half = [&](const char* name, const char* option) {
        good(PETLM_PROGRAM, {"resort", all_run, "-o", file(name), option, middle});
        return file(name);
    };
    const std::string early = half("early", "--to-ticks");
    const std::string late = half("late", "--from-ticks");
    good(PETLM_PROGRAM, {"merge", "--triples", early, late, "-o", file("both.plm")});
    good(PETLM_PROGRAM, {"cut", "--triples", all_run, "--to-ticks", middle, "-o", file("cut.plm")});
    CHECK(payload_of(file("cut.plm")) == payload_of(file("first.plm")));
    good(PETLM_PROGRAM, {"verify", file("both.plm")});
    const auto together = records_of<gpu::Triple>(file("both.plm"));
    CHECK(together.size() == records_of<gpu::Triple>(early + "/triples.plm").size() +
                                 records_of<gpu::Triple>(late + "/triples.plm").size());
    CHECK(run_program(PETLM_PROGRAM, {"merge", "--triples", early, all_run, "-o", file("no.plm")}).status !=
          0);
    good(PETLM_PROGRAM, {"verify", file("first.plm"), file("merged.plm")});
    check_gammas_told(site.run("all"), site.directory());
    const std::string lines = good(PETLM_PROGRAM, {"dump", whole});
    CHECK(good(PETLM_PROGRAM, {"dump", "--triples", all_run}) == lines);
    CHECK(good(PETLM_PROGRAM, {"dump", "--singles", all_run}) ==
          good(PETLM_PROGRAM, {"dump", (site.run("all") / "singles.plm").string()}));
    CHECK(contains(run_program(PETLM_PROGRAM, {"dump", "--singles", whole}).err, "holds no singles"));
    CHECK(static_cast<std::size_t>(std::count(lines.begin(), lines.end(), '\n')) == records.size() + 1);
    CHECK(lines.starts_with("kind,time,dt,crystal_a,crystal_b,energy_a,energy_b,gamma,gamma_dt,"));

    // Delays of almost the whole run and of more: pairs find no delayed gammas, whatever there is by chance.
    for (const auto& [name, ticks] : {std::pair{"late", 20'000'000'000}, {"later", 64'000'000'000}}) {
        json long_delay = with_gammas("all");
        long_delay["gammas"]["delay_ticks"] = ticks;
        site.configure(long_delay);
        replay(name);
        const std::string told = good(PETLM_PROGRAM, {"info", site.run(name).string()});
        INFO(told);
        CHECK(contains(told, "how many are true is not known: the delay of "));
        CHECK_FALSE(contains(told, " true\n"));
        CHECK(payload_of(site.run(name) / "coincidences.plm") == pairs);
    }

    // Pairs are the same without gammas.
    json none = with_gammas("all");
    none["gammas"] = nullptr;
    site.configure(none);
    replay("none");
    CHECK(payload_of(site.run("none") / "coincidences.plm") == pairs);
    CHECK_FALSE(std::filesystem::exists(site.run("none") / "triples.plm"));
}
