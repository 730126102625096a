// petlm resort --part and --join make the run that petlm resort makes, in any order and after any
// interruption.
#include "tests/tools/petlm/resort/support.hpp"
#include "tools/petlm/base/status.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

/// The coincidences of the files that run.json names.
gpu::RecordVector<gpu::Coincidence> coincidences_of(const std::filesystem::path& run) {
    gpu::RecordVector<gpu::Coincidence> all;
    const auto document = nlohmann::json::parse(read_file(run / "run.json"));
    for (const auto& file : document["files"]) {
        if (file["kind"] != "coincidences") continue;
        const auto some = read_coincidences(run / file["name"].get<std::string>());
        all.insert(all.end(), some.begin(), some.end());
    }
    return all;
}

struct Case {
    TemporaryDirectory directory;
    gpu::SliceResult expected;
    petlm::ResortOptions options;

    Case(const std::string& kind, std::mt19937_64& random) {
        gpu::CoincidenceRules rules;
        rules.window = 40;
        rules.delay = 700;
        const Singles all = difficult(kind, rules.window, random, 3000);
        expected = found_at_once(all, rules);
        write_singles_run(directory / "host", all, {{"window_ticks", 40}, {"delay_ticks", 700}}, 0,
                          all.back().time + 1);
        options.input.runs = {directory / "host"};
        options.output = directory / "out";
        options.backend = "cpu";
        options.threads = 2;
        options.shard_singles = 200;
    }
    int make_part(std::uint32_t number, std::uint32_t of) {
        petlm::ResortOptions o = options;
        o.part = petlm::Share{number, of};
        return quietly_resort(o);
    }
    int join() {
        petlm::ResortOptions o = options;
        o.join = true;
        return quietly_resort(o);
    }
};

}  // namespace

TEST_CASE("resort: parts in any order make the run", "[resort]") {
    std::mt19937_64 random(21);
    for (const std::string kind : {"sparse", "dense", "chained", "on the edge", "bursts"}) {
        for (const std::uint32_t of : {1U, 3U, 50U}) {
            INFO(kind << ", " << of << " shares");
            Case c(kind, random);
            std::vector<std::uint32_t> numbers(of);
            std::iota(numbers.begin(), numbers.end(), 1U);
            std::shuffle(numbers.begin(), numbers.end(), random);
            for (const std::uint32_t number : numbers)
                REQUIRE(c.make_part(number, of) == petlm::ok);
            REQUIRE(c.join() == petlm::ok);
            CHECK(same_bytes(coincidences_of(c.options.output), c.expected.coincidences));
        }
    }
}

TEST_CASE("resort: parts that are there are kept, and those that are not are named and made", "[resort]") {
    std::mt19937_64 random(22);
    Case c("dense", random);
    const std::filesystem::path& out = c.options.output;
    CHECK_THROWS_WITH(c.join(), contains("holds no parts"));
    REQUIRE(c.make_part(1, 2) == petlm::ok);
    CHECK_THROWS_WITH(c.join(), contains("parts are missing or incomplete"));
    CHECK_FALSE(std::filesystem::exists(out / "run.json"));
    REQUIRE(c.make_part(2, 2) == petlm::ok);
    // Parts that were cut, lost and damaged, and what a process that was killed leaves.
    std::filesystem::resize_file(out / "coincidences-0003.plm", 5000);
    std::filesystem::remove(out / "coincidences-0005.state");
    std::string state = read_file(out / "coincidences-0006.state");
    state[20] ^= 1;
    write_file(out / "coincidences-0006.state", state);
    write_file(out / "coincidences-0006.plm.host-1.partial", "half");
    const auto kept = std::filesystem::last_write_time(out / "coincidences-0004.plm");
    CHECK_THROWS_WITH(c.join(), contains("3, 5 to 6;"));
    REQUIRE(c.make_part(1, 1) == petlm::ok);
    CHECK(std::filesystem::last_write_time(out / "coincidences-0004.plm") == kept);
    REQUIRE(c.join() == petlm::ok);
    CHECK(same_bytes(coincidences_of(out), c.expected.coincidences));
    CHECK_FALSE(std::filesystem::exists(out / "coincidences-0006.plm.host-1.partial"));
    // Tasks and the merge may be started again at any time.
    REQUIRE(c.make_part(2, 3) == petlm::ok);
    REQUIRE(c.join() == petlm::ok);
    CHECK(same_bytes(coincidences_of(out), c.expected.coincidences));
}

TEST_CASE("resort: parts of other settings, and other directories, are refused", "[resort]") {
    std::mt19937_64 random(23);
    Case c("dense", random);
    REQUIRE(c.make_part(1, 2) == petlm::ok);
    c.options.window_ticks = 30;
    CHECK_THROWS_WITH(c.make_part(2, 2), contains("other runs or settings"));
    CHECK_THROWS_WITH(c.join(), contains("other runs or settings"));
    c.options.output = c.directory / "host";
    CHECK_THROWS_WITH(c.make_part(1, 2), contains("is one of the runs"));
    c.options.output = c.directory / "file.plm";
    CHECK_THROWS_WITH(c.make_part(1, 2), contains("expected a directory"));
}
