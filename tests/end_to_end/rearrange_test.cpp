// Runs in several files, and list-mode made from other list-mode: split, cut, merge, resort.
#include <algorithm>

#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;

namespace {

/// A run of a simulated stream, by replay.
void replay_capture(const Site& site, const std::string& capture, const std::string& run) {
    const Outcome outcome =
        run_program(PETACQD_PROGRAM, {"--config", site.configuration(), "--replay", capture, "--run", run});
    INFO(outcome.err);
    REQUIRE(outcome.status == 0);
}

std::string simulated(const Site& site) {
    const std::string file = (site.directory() / "simulated.pcap").string();
    simulate(site,
             {"--duration-s", "0.5", "--rate", "400000", "--sources", "4", "--seed", "21", "--write", file});
    return file;
}

Outcome petlm(const std::vector<std::string>& arguments) {
    return run_program(PETLM_PROGRAM, arguments);
}
std::string good(const std::vector<std::string>& arguments) {
    const Outcome outcome = petlm(arguments);
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.status == 0);
    return outcome.out;
}

json singles_too(json patch) {
    patch["listmode"]["write_singles"] = true;
    return patch;
}

}  // namespace

TEST_CASE("a run is split by size or by time, and its parts form one sequence", "[e2e][files]") {
    Site site(singles_too(json::object()));
    const std::string capture = simulated(site);
    replay_capture(site, capture, "one-file");
    const std::string whole = payload_of(site.run("one-file") / "coincidences.plm");
    const std::string whole_singles = payload_of(site.run("one-file") / "singles.plm");
    REQUIRE(whole.size() > 500'000);

    const double tick_ps = site.run_json("one-file")["scanner"]["tick_ps"];
    for (const json& split : {json{{"split_bytes", 200'000}}, json{{"split_s", 0.05}},
                              json{{"split_bytes", 300'000}, {"split_s", 0.1}}}) {
        INFO(split.dump());
        json patch = singles_too(json::object());
        patch["listmode"].update(split);
        patch["listmode"]["block_bytes"] = 32768;
        site.configure(patch);
        const std::string name = "split-" + std::to_string(split.dump().size());
        replay_capture(site, capture, name);
        const json files = site.run_json(name)["files"];
        std::string joined;
        std::string joined_singles;
        std::uint64_t records = 0;
        std::size_t parts = 0;
        for (const json& file : files) {
            const auto path = site.run(name) / file["name"].get<std::string>();
            CHECK(std::filesystem::file_size(path) == file["bytes"]);
            if (file["kind"] == "seconds") continue;
            const bool singles = file["kind"] == "singles";
            (singles ? joined_singles : joined) += payload_of(path);
            if (split.contains("split_bytes"))
                CHECK(file["bytes"] <= split["split_bytes"].get<double>() * 1.1);
            if (split.contains("split_s")) {
                // A block that starts in the interval is not divided.
                const double spans =
                    (file["last_time"].get<double>() - file["first_time"].get<double>()) * tick_ps * 1e-12;
                CHECK(spans < split["split_s"].get<double>() + 0.02);
            }
            if (singles) continue;
            ++parts;
            char expected[32];
            std::snprintf(expected, sizeof expected, "coincidences-%04zu.plm", parts);
            CHECK(file["name"] == expected);
            CHECK(file["first_record"] == records);
            records += file["records"].get<std::uint64_t>();
        }
        CHECK(parts >= 4);
        CHECK(joined == whole);
        CHECK(joined_singles == whole_singles);
        good({"verify", site.run(name).string()});
        CHECK(good({"dump", site.run(name).string()}) == good({"dump", site.run("one-file").string()}));
        const std::string merged = (site.directory() / (name + ".plm")).string();
        good({"merge", site.run(name).string(), "-o", merged});
        CHECK(payload_of(merged) == whole);
        const std::string resorted = (site.directory() / (name + "-resorted.plm")).string();
        good({"resort", site.run(name).string(), "-o", resorted});
        CHECK(payload_of(resorted) == whole);
        // A missing part is detected.
        std::filesystem::remove(site.run(name) / "coincidences-0002.plm");
        const Outcome gap = petlm({"merge", site.run(name).string(), "-o", merged, "--force"});
        CHECK(gap.status != 0);
        CHECK(contains(gap.err, "missing"));
    }
}

TEST_CASE("a run in files side by side, split too, reads as one", "[e2e][files]") {
    Site site(singles_too(json::object()));
    const std::string capture = simulated(site);
    replay_capture(site, capture, "one-file");
    const std::string whole = payload_of(site.run("one-file") / "coincidences.plm");
    const std::string dumped = good({"dump", site.run("one-file").string()});
    for (const std::uint64_t split_bytes : {0U, 100'000U}) {
        INFO(split_bytes);
        json patch = singles_too(json::object());
        patch["listmode"].update({{"files", 3}, {"split_bytes", split_bytes}, {"block_bytes", 8192}});
        if (split_bytes != 0) patch["listmode"]["compression"] = "zstd";
        site.configure(patch);
        const std::string name = "split-by-" + std::to_string(split_bytes);
        replay_capture(site, capture, name);
        const auto run = site.run(name);
        const std::string first = split_bytes == 0 ? "coincidences" : "coincidences-0001";
        std::uint64_t records = 0;
        const json files = site.run_json(name)["files"];
        for (const json& file : files) {
            CHECK(std::filesystem::file_size(run / file["name"].get<std::string>()) == file["bytes"]);
            if (file["kind"] == "coincidences") records += file["records"].get<std::uint64_t>();
        }
        CHECK(records == whole.size() / sizeof(petacq::gpu::Coincidence));
        CHECK(files[1]["name"] == first + ".2.plm");
        CHECK(contains(good({"verify", run.string()}), " in 3 files"));
        CHECK(contains(good({"info", run.string()}), "in 3 files"));
        CHECK(good({"dump", run.string()}) == dumped);
        const auto out = [&](const std::string& what) {
            return (site.directory() / (name + "-" + what + ".plm")).string();
        };
        good({"merge", run.string(), "-o", out("merged")});
        CHECK(payload_of(out("merged")) == whole);
        good({"cut", run.string(), "-o", out("cut"), "--from-ticks", "0", "--to-ticks",
              "18446744073709551615"});
        CHECK(payload_of(out("cut")) == whole);
        good({"resort", run.string(), "-o", out("resorted")});
        CHECK(payload_of(out("resorted")) == whole);
        good({"export", "--format", "csv", run.string(), "--output", out("csv")});
        CHECK(read_file(out("csv")) == dumped);

        // A sound set is kept as it is, a damaged one becomes one file.
        good({"recover", run.string(), "-o", (site.directory() / (name + "-kept")).string()});
        CHECK(std::filesystem::exists(site.directory() / (name + "-kept") / (first + ".2.plm")));
        good({"verify", (site.directory() / (name + "-kept")).string()});
        const auto second = run / (first + ".2.plm");
        const std::uint64_t bytes = std::filesystem::file_size(second);
        std::filesystem::resize_file(second, bytes - 14'000);
        const Outcome broken = petlm({"verify", run.string()});
        CHECK(broken.status == 1);
        CHECK(contains(broken.out, second.string() + ": offset "));
        CHECK(contains(broken.out, "the file ends before block "));
        const auto recovered = site.directory() / (name + "-recovered");
        const Outcome made = petlm({"recover", run.string(), "-o", recovered.string()});
        INFO(made.out << made.err);
        CHECK(made.status == 0);
        CHECK_FALSE(std::filesystem::exists(recovered / (first + ".2.plm")));
        const Outcome verified = petlm({"verify", (recovered / (first + ".plm")).string()});
        INFO(verified.out);
        CHECK(verified.status == 0);
        std::filesystem::remove(second);
        CHECK(contains(petlm({"verify", run.string()}).out, "the file is missing"));
        CHECK(petlm({"merge", run.string(), "-o", out("none")}).status != 0);
    }
}

TEST_CASE("the merged pieces of a run are the run", "[e2e][files]") {
    const Site site(singles_too(json::object()));
    replay_capture(site, simulated(site), "r");
    const auto run = site.run("r").string();
    const std::string whole = payload_of(site.run("r") / "coincidences.plm");
    const std::uint64_t end = site.run_json("r")["stop_ticks"];
    const auto name = [&](const std::string& part) { return (site.directory() / (part + ".plm")).string(); };
    const std::string first = std::to_string(end / 3);
    const std::string second = std::to_string(end / 2);
    good({"cut", run, "-o", name("a"), "--to-ticks", first});
    good({"cut", run, "-o", name("b"), "--from-ticks", first, "--to-ticks", second});
    good({"cut", run, "-o", name("c"), "--from-ticks", second});
    CHECK(payload_of(name("a")) + payload_of(name("b")) + payload_of(name("c")) == whole);
    // In any order of the arguments.
    good({"merge", name("c"), name("a"), name("b"), "-o", name("merged")});
    CHECK(payload_of(name("merged")) == whole);
    good({"verify", name("merged"), name("b")});
    good({"cut", run, "--singles", "-o", name("s"), "--to-ticks", first});
    for (const auto& s : singles_of(name("s")))
        REQUIRE(s.time < end / 3);
    good({"cut", run, "-o", name("none"), "--from-ticks", std::to_string(end), "--to-ticks",
          "18446744073709551615"});
    CHECK(payload_of(name("none")).empty());

    CHECK(petlm({"cut", run, "-o", name("a")}).status == 64);  // exists
    CHECK(petlm({"cut", run, "-o", name("d"), "--from-ticks", "6", "--to-ticks", "5"}).status == 64);
    CHECK(petlm({"merge", name("a"), name("s"), "-o", name("d")}).status == 65);  // the other kind
    CHECK_FALSE(std::filesystem::exists(name("d")));
    // A damaged file does not pass for a complete one.
    std::string bytes = read_file(name("b"));
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
    write_file(name("b"), bytes);
    const Outcome damaged = petlm({"merge", name("a"), name("b"), "-o", name("d")});
    CHECK(damaged.status == 1);
    CHECK(contains(damaged.err, "petlm recover"));
    CHECK_FALSE(std::filesystem::exists(name("d")));
}

TEST_CASE("coincidences resorted from singles are those of a run with the other settings", "[e2e][files]") {
    Site site(singles_too(json::object()));
    const std::string capture = simulated(site);
    replay_capture(site, capture, "r");
    struct Way {
        std::string name;
        json patch;
        std::vector<std::string> options;
    };
    const std::vector<Way> ways{
        {"same", json::object(), {}},
        {"window", {{"coincidence", {{"window_ticks", 900}}}}, {"--window-ticks", "900"}},
        {"all-goods",
         {{"coincidence",
           {{"window_ticks", 5000}, {"multiples_policy", "TakeAllGoods"}, {"delay_ticks", 10000}}}},
         {"--window-ticks", "5000", "--policy", "TakeAllGoods", "--delay-ticks", "10000"}},
        {"nanoseconds",
         {{"coincidence",
           {{"window_ticks", nullptr}, {"window_ns", 9}, {"delay_ticks", nullptr}, {"delay_ns", 130}}}},
         {"--window-ns", "9.0", "--delay-ns", "130"}},
        {"delayed-window",
         {{"coincidence", {{"delayeds", "delayed_window"}, {"delay_ticks", 300}}}},
         {"--delayeds", "delayed_window", "--delay-ticks", "300"}},
        {"every",
         {{"coincidence",
           {{"window_mode", "every"}, {"max_ring_difference", 2}, {"min_module_difference", 2}}}},
         {"--window-mode", "every", "--max-ring-difference", "2", "--min-module-difference", "2", "--threads",
          "3"}},
        {"energy",
         {{"energy", {{"lower_keV", 450}, {"upper_keV", 560}}}},
         {"--lower-kev", "450", "--upper-kev", "560"}},
    };
    for (const Way& way : ways) {
        INFO(way.name);
        site.configure(way.patch);
        replay_capture(site, capture, "as-" + way.name);
        const std::string out = (site.directory() / (way.name + ".plm")).string();
        std::vector<std::string> arguments{"resort", site.run("r").string(), "-o", out};
        arguments.insert(arguments.end(), way.options.begin(), way.options.end());
        good(arguments);
        const std::string expected = payload_of(site.run("as-" + way.name) / "coincidences.plm");
        REQUIRE(expected.size() > 1000);
        CHECK(payload_of(out) == expected);
        good({"verify", out});
    }
    const std::string out = (site.directory() / "refused.plm").string();
    const Outcome policy = petlm({"resort", site.run("r").string(), "-o", out, "--policy", "Nonsense"});
    CHECK(policy.status == 64);
    CHECK(contains(policy.err, "RemoveMultiples"));
    CHECK(petlm({"resort", site.run("as-window").string(), "-o", out}).status == 65);  // no singles
    CHECK(petlm({"resort", site.directory().string(), "-o", out}).status == 64);
    CHECK_FALSE(std::filesystem::exists(out));
}

TEST_CASE("resort knows which energies a run has saved", "[e2e][files]") {
    Site site(singles_too({{"energy", {{"filter", false}}}}));
    const std::string capture = simulated(site);
    replay_capture(site, capture, "all");
    const auto resorted = [&](const std::string& run, const std::vector<std::string>& limits) {
        std::vector<std::string> arguments{"resort", site.run(run).string(), "-o",
                                           (site.directory() / "out.plm").string(), "--force"};
        arguments.insert(arguments.end(), limits.begin(), limits.end());
        return petlm(arguments);
    };
    // A limit that is not given cuts nothing, although the configuration has a value for it.
    site.configure({{"energy", {{"filter", true}, {"lower_keV", 400}, {"upper_keV", 1'000'000}}}});
    replay_capture(site, capture, "from-400");
    REQUIRE(resorted("all", {"--lower-kev", "400"}).status == 0);
    CHECK(payload_of((site.directory() / "out.plm").string()) ==
          payload_of(site.run("from-400") / "coincidences.plm"));
    // Wider limits than those of the saved singles would not be true.
    const Outcome lower = resorted("from-400", {"--lower-kev", "399.5"});
    CHECK(lower.status == 64);
    CHECK(contains(lower.err, "--lower-kev 399.5: the run has saved singles from 400 to 1000000 keV"));
    site.configure(singles_too({{"energy", {{"filter", true}, {"lower_keV", 400}, {"upper_keV", 600}}}}));
    replay_capture(site, capture, "to-600");
    CHECK(resorted("to-600", {"--upper-kev", "601"}).status == 64);
    const Outcome same = resorted("to-600", {"--lower-kev", "400", "--upper-kev", "600"});
    INFO(same.err);
    CHECK(same.status == 0);
}
