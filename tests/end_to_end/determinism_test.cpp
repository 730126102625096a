// The same frames give the same list-mode, however they arrive and are processed.
#include "daemon/seconds/reader.hpp"
#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;

namespace {

struct Payloads {
    std::string coincidences;
    std::string singles;
    std::string tags;
    std::string seconds;  // the first
    json counts;          // of singles and pairs
};

void check_same(const Payloads& other, const Payloads& reference) {
    CHECK(other.coincidences == reference.coincidences);
    CHECK(other.singles == reference.singles);
    CHECK(other.tags == reference.tags);
    CHECK(other.seconds == reference.seconds);
    CHECK(other.counts == reference.counts);
}

/// The first second, which is whole: the length of the last depends on when the run was stopped. Datagrams
/// out of order may be lost in one second and arrive in another.
std::string first_second(const std::filesystem::path& file) {
    petacq::daemon::SecondsReader seconds(file);
    REQUIRE(seconds.next());
    const std::span<const std::byte> record = seconds.record();
    std::string bytes(reinterpret_cast<const char*>(record.data()), record.size());
    bytes.replace(seconds.find("lost")->offset, sizeof(double), sizeof(double), '\0');
    for (const char* field : {"module_temperature", "module_dead_time"}) {
        const petacq::daemon::FieldValues values = seconds.values(*seconds.find(field));
        for (std::size_t bdm = 0; bdm < values.size(); ++bdm) {
            INFO(field << " of module " << bdm);
            CHECK(values.number(bdm) > 0);  // not NaN
        }
    }
    CHECK(seconds.next());
    CHECK_FALSE(seconds.next());
    return bytes;
}

Payloads take(const std::string& what, json patch, const std::vector<std::string>& how_sent) {
    INFO(what);
    patch["listmode"]["write_singles"] = true;
    const Site site(patch);
    Daemon daemon(site);
    daemon.start("r");
    std::vector<std::string> arguments{"--seed",          "11",      "--start-time-s",    "0.85",
                                       "--duration-s",    "0.3",     "--dead-time-ticks", "100000",
                                       "--tag-dead-time", "15:0.01", "--tag-clock",       "3:0.003"};
    arguments.insert(arguments.end(), how_sent.begin(), how_sent.end());
    const json summary = simulate(site, short_stream(daemon, arguments));
    REQUIRE(daemon.received(summary["total"]["expected"]["datagrams_received"]));
    const json ledger = daemon.stop()["ledger"];
    INFO(ledger.dump(1));
    CHECK(ledger["closed"] == true);
    CHECK(ledger["frames"]["late"] == 0);
    CHECK(ledger["frames"]["received"] == summary["total"]["frames"]);
    CHECK(ledger["datagrams"]["lost"] == 0);
    CHECK(daemon.terminate() == 0);
    const Outcome verify = run_program(PETLM_PROGRAM, {"verify", site.run("r").string()});
    INFO(verify.out);
    CHECK(verify.status == 0);
    return {payload_of(site.run("r") / "coincidences.plm"),
            payload_of(site.run("r") / "singles.plm"),
            payload_of(site.run("r") / "tags.plm"),
            first_second(site.run("r") / "seconds.plm"),
            {{"singles", ledger["singles"]}, {"pairs", ledger["pairs"]}, {"saved", ledger["saved_singles"]}}};
}

}  // namespace

TEST_CASE("list-mode does not depend on slices, batches, threads, sockets or the order of arrival",
          "[e2e][determinism]") {
    const Payloads reference = take("reference", json::object(), {});
    REQUIRE(reference.coincidences.size() > 1000 * sizeof(petacq::gpu::Coincidence));
    REQUIRE(reference.singles.size() > 10'000 * sizeof(petacq::gpu::Single));
    REQUIRE(reference.tags.size() > 200 * sizeof(petacq::gpu::Tag));

    const json two_sockets =
        json::array({{{"address", "127.0.0.1"}, {"port", 0}}, {{"address", "127.0.0.1"}, {"port", 0}}});
    struct Way {
        std::string name;
        json patch;
        std::vector<std::string> how_sent;
    };
    const std::vector<Way> ways{
        {"a slice for each datagram, one thread", {{"pipeline", {{"slice_frames", 1}, {"threads", 1}}}}, {}},
        {"slices of 1000, three threads", {{"pipeline", {{"slice_frames", 1000}, {"threads", 3}}}}, {}},
        {"long slices", {{"pipeline", {{"slice_frames", 1'000'000}, {"slice_interval_ms", 10'000}}}}, {}},
        {"small batches, no GRO",
         {{"receive", {{"batch_bytes", 131072}, {"flush_interval_ms", 1}, {"gro", false}}}},
         {}},
        {"large batches",
         {{"receive", {{"batch_bytes", 4 << 20}, {"flush_interval_ms", 500}}}},
         {"--no-gso"}},
        {"two sockets", {{"receive", {{"sockets", two_sockets}}}}, {}},
        {"reordered and duplicated",
         json::object(),
         {"--reorder", "0.3", "--reorder-span", "6", "--duplicate", "0.2"}},
        {"in long bursts", json::object(), {"--burst-us", "50000", "--prepare"}},
        {"small blocks on disk", {{"listmode", {{"block_bytes", 4096}, {"sync_interval_ms", 10}}}}, {}},
        {"three files side by side",
         {{"listmode", {{"files", 3}, {"block_bytes", 4096}, {"queue_blocks", 2}}}},
         {}},
    };
    for (const Way& way : ways) {
        INFO(way.name);
        const Payloads other = take(way.name, way.patch, way.how_sent);
        check_same(other, reference);
    }
}

TEST_CASE("the CUDA back-end gives the list-mode of the CPU with every sort engine",
          "[e2e][determinism][cuda]") {
    if (const std::string reason = no_cuda_reason(); !reason.empty()) {
        WARN("skipped: " << reason);
        return;
    }
    const Payloads reference = take("CPU", json::object(), {});
    for (const char* engine : {"auto", "merge", "radix", "bitonic", "quicksort", "odd-even", "cub"}) {
        INFO(engine);
        const Payloads other = take(engine, {{"pipeline", {{"backend", "cuda"}, {"sort", engine}}}},
                                    {"--reorder", "0.3", "--reorder-span", "6"});
        check_same(other, reference);
    }
}

TEST_CASE("two GPUs give the list-mode of the CPU", "[e2e][determinism][cuda]") {
    if (const std::string reason = no_two_gpus_reason(); !reason.empty()) {
        WARN("skipped: " << reason);
        return;
    }
    const Payloads reference = take("CPU", json::object(), {});
    const Payloads other = take("two GPUs", {{"pipeline", {{"backend", "cuda"}, {"devices", {0, 1}}}}},
                                {"--reorder", "0.3", "--reorder-span", "6"});
    check_same(other, reference);
}

TEST_CASE("a capture replayed and singles re-sorted with CUDA give the list-mode of the CPU",
          "[e2e][determinism][cuda]") {
    if (const std::string reason = no_cuda_reason(); !reason.empty()) {
        WARN("skipped: " << reason);
        return;
    }
    const json saved{{"write_singles", true}};
    Site site(json{{"listmode", saved}});
    const std::string capture = (site.directory() / "simulated.pcap").string();
    simulate(site, {"--duration-s", "0.5", "--rate", "400000", "--sources", "4", "--seed", "12", "--reorder",
                    "0.3", "--reorder-span", "6", "--tag-dead-time", "15:0.01", "--start-time-s", "0.7",
                    "--write", capture});
    for (const std::string backend : {"cpu", "cuda"}) {
        site.configure({{"listmode", saved}, {"pipeline", {{"backend", backend}}}});
        const Outcome replayed = run_program(
            PETACQD_PROGRAM, {"--config", site.configuration(), "--replay", capture, "--run", backend});
        INFO(replayed.err);
        REQUIRE(replayed.status == 0);
        CHECK(site.run_json(backend)["state"] == "complete");
        CHECK(site.run_json(backend)["ledger"]["closed"] == true);
    }
    const std::string reference = payload_of(site.run("cpu") / "coincidences.plm");
    REQUIRE(reference.size() > 1000 * sizeof(petacq::gpu::Coincidence));
    CHECK(payload_of(site.run("cuda") / "coincidences.plm") == reference);
    CHECK(payload_of(site.run("cuda") / "singles.plm") == payload_of(site.run("cpu") / "singles.plm"));
    CHECK(payload_of(site.run("cuda") / "tags.plm") == payload_of(site.run("cpu") / "tags.plm"));
    CHECK(payload_of(site.run("cuda") / "seconds.plm") == payload_of(site.run("cpu") / "seconds.plm"));
    for (const char* counts : {"pairs", "singles", "saved_singles"})
        CHECK(site.run_json("cuda")["ledger"][counts] == site.run_json("cpu")["ledger"][counts]);

    // With the window of the run, and with another one.
    for (const std::vector<std::string>& settings :
         {std::vector<std::string>{}, std::vector<std::string>{"--window-ticks", "200", "--no-delay"}}) {
        std::vector<std::string> of_backend;
        std::vector<std::string> seconds;
        for (const std::string backend : {"cpu", "cuda"}) {
            const auto out = site.directory() / (backend + "-again");
            std::vector<std::string> arguments{
                "resort", site.run("cpu").string(), "-o", out.string(), "--force", "--backend", backend};
            arguments.insert(arguments.end(), settings.begin(), settings.end());
            const Outcome resorted = run_program(PETLM_PROGRAM, arguments);
            INFO(resorted.err);
            REQUIRE(resorted.status == 0);
            of_backend.push_back(payload_of(out / "coincidences.plm"));
            seconds.push_back(payload_of(out / "seconds.plm"));
        }
        CHECK(of_backend[0] == of_backend[1]);
        CHECK(seconds[0] == seconds[1]);
        CHECK((of_backend[0] == reference) == settings.empty());
        CHECK((seconds[0] == payload_of(site.run("cpu") / "seconds.plm")) == settings.empty());
    }
}
