// petlm with the seconds of a run.
#include <hdf5.h>

#include "daemon/seconds/reader.hpp"
#include "tests/daemon/seconds/support.hpp"
#include "tests/tools/petlm/support.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

/// A run of `count` seconds whose ledger has their pairs, and no coincidences.
std::filesystem::path run_of_seconds(const TemporaryDirectory& directory, std::uint64_t count) {
    const auto run = directory / "run";
    std::filesystem::create_directories(run);
    write_seconds(run / "seconds.plm", count);
    std::uint64_t prompts = 0;
    std::uint64_t delayeds = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        prompts += second_number(i).sums.counts.prompts;
        delayeds += second_number(i).sums.counts.delayeds;
    }
    const nlohmann::json pairs = {
        {"prompts_found", prompts}, {"delayeds_found", delayeds}, {"written", 0}, {"write_failed", 1}};
    write_file(
        run / "run.json",
        nlohmann::json{{"run_id", "test-run"}, {"state", "complete"}, {"ledger", {{"pairs", pairs}}}}.dump());
    return run;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);)
        lines.push_back(line);
    return lines;
}

std::vector<std::uint64_t> starts_in(const std::filesystem::path& file) {
    daemon::SecondsReader reader(file);
    std::vector<std::uint64_t> starts;
    while (reader.next())
        starts.push_back(reader.start());
    CHECK(reader.reader().condition().state == daemon::FileState::complete);
    return starts;
}

}  // namespace

TEST_CASE("petlm dump prints seconds", "[petlm][seconds]") {
    const TemporaryDirectory directory;
    const auto run = run_of_seconds(directory, 3);
    const Outcome scalars = run_petlm("dump --seconds" + quoted(run));
    REQUIRE(scalars.status == 0);
    const auto lines = lines_of(scalars.out);
    REQUIRE(lines.size() == 4);
    CHECK(lines[0].starts_with("start,length,decided,prompts,"));
    CHECK_FALSE(contains(lines[0], "crystal_"));
    const gpu::SingleCounts& counts = second_number(1).sums.counts;
    CHECK(lines[2].starts_with("6000,1000," + std::to_string(counts.decided) + ',' +
                               std::to_string(counts.prompts) + ','));
    CHECK(contains(lines[2], "nan"));  // lost
    CHECK(run_petlm("dump" + quoted(run / "seconds.plm")).out == scalars.out);
    CHECK(lines_of(run_petlm("dump --limit 1 --seconds" + quoted(run)).out).size() == 2);

    const auto field = lines_of(run_petlm("dump --field crystal_prompts" + quoted(run)).out);
    REQUIRE(field.size() == 4);
    std::string names = "start,length";
    std::string values = "7000,1000";
    for (std::size_t i = 0; i < small_scanner().crystal_count(); ++i) {
        names += ",crystal_prompts[" + std::to_string(i) + ']';
        values += ',' + std::to_string(second_number(2).sums.prompts[i]);
    }
    CHECK(field[0] == names);
    CHECK(field[3] == values);
    CHECK(lines_of(run_petlm("dump --field pile_up" + quoted(run)).out)[1] == "5000,1000,1");

    CHECK(run_petlm("dump --field nothing" + quoted(run) + "2>&1").status == 64);
    CHECK(run_petlm("dump --kind prompt" + quoted(run / "seconds.plm") + "2>&1").status == 64);
}

TEST_CASE("petlm info and verify know seconds", "[petlm][seconds]") {
    const TemporaryDirectory directory;
    const auto run = run_of_seconds(directory, 3);
    const Outcome info = run_petlm("info" + quoted(run / "seconds.plm"));
    CHECK(info.status == 0);
    CHECK_THAT(info.out, contains("kind         seconds") && contains("crystal_unpaired[12]") &&
                             contains("records      3 in 3 blocks"));
    CHECK_FALSE(contains(info.out, "offset"));
    const Outcome good = run_petlm("verify" + quoted(run));
    CAPTURE(good.out);
    CHECK(good.status == 0);

    SECTION("a file of the run is gone") {
        auto json = nlohmann::json::parse(read_file(run / "run.json"));
        json["files"] = {{{"name", "seconds.plm"}}, {{"name", "tags.plm"}}};
        write_file(run / "run.json", json.dump());
        const Outcome other = run_petlm("verify" + quoted(run));
        CHECK(other.status == 1);
        CHECK_THAT(other.out, contains("there is no tags.plm") && !contains("no seconds.plm"));
    }
    SECTION("the ledger counts other pairs") {
        auto json = nlohmann::json::parse(read_file(run / "run.json"));
        json["ledger"]["pairs"]["prompts_found"] = 7;
        write_file(run / "run.json", json.dump());
        const Outcome other = run_petlm("verify" + quoted(run));
        CHECK(other.status == 1);
        CHECK_THAT(other.out, contains("/pairs/prompts_found is 7"));
    }
    SECTION("a file without seconds") {
        std::filesystem::remove(run / "seconds.plm");
        write_seconds(run / "seconds.plm", 0);
        const Outcome none = run_petlm("verify" + quoted(run));
        CHECK(none.status == 1);
        CHECK_THAT(none.out, contains("the seconds hold 0"));
    }
    SECTION("seconds that contradict themselves or each other") {
        std::filesystem::remove(run / "seconds.plm");
        std::string expected;
        {
            const nlohmann::json description = {{"tick_ps", 1e9}};
            daemon::SecondsFile file(run / "seconds.plm", small_scanner(), description,
                                     config::Compression::none, std::chrono::seconds(1));
            daemon::Second second = second_number(0);
            file.append(second);
            SECTION("times") {
                second.range = {second.range.start + 999, second.range.end + 999};
                expected = "record 1 (block 1) starts before";
            }
            SECTION("length") {
                second = second_number(1);
                second.range.end = second.range.start;
                expected = "record 1 (block 1) has no length";
            }
            SECTION("crystals") {
                second = second_number(1);
                ++second.sums.prompts[3];
                expected = "has other prompts than its crystals";
            }
            SECTION("pairs of modules") {
                second = second_number(1);
                ++second.sums.module_pairs[3];
                expected = "has other prompts than its pairs of BDMs";
            }
            file.append(second);
        }
        const Outcome bad = run_petlm("verify" + quoted(run / "seconds.plm"));
        CHECK(bad.status == 1);
        CHECK_THAT(bad.out, contains(expected));
    }
}

TEST_CASE("petlm cut takes the seconds that lie in the interval as a whole", "[petlm][seconds]") {
    const TemporaryDirectory directory;
    const auto run = run_of_seconds(directory, 5);
    const auto out = directory / "cut.plm";
    const auto cut = [&](const std::string& options) {
        const Outcome outcome =
            run_petlm("cut --force --seconds" + quoted(run) + "-o" + quoted(out) + options + " 2>&1");
        CAPTURE(outcome.out);
        REQUIRE(outcome.status == 0);
        return starts_in(out);
    };
    using Starts = std::vector<std::uint64_t>;
    CHECK(cut("") == Starts{5000, 6000, 7000, 8000, 9000});
    CHECK(cut(" --from-ticks 6000 --to-ticks 8000") == Starts{6000, 7000});
    CHECK(cut(" --from-ticks 6001 --to-ticks 8999") == Starts{7000});
    CHECK(cut(" --from-ticks 6001 --to-ticks 6002").empty());
    CHECK(run_petlm("merge" + quoted(run / "seconds.plm") + "-o" + quoted(directory / "merged.plm") + "2>&1")
              .status == 64);
}

TEST_CASE("petlm recover saves the whole seconds of a run", "[petlm][seconds]") {
    const TemporaryDirectory directory;
    const auto run = run_of_seconds(directory, 5);
    const std::string bytes = read_file(run / "seconds.plm");
    write_file(run / "seconds.plm", bytes.substr(0, bytes.size() - 400));  // into the last second
    REQUIRE(run_petlm("recover" + quoted(run)).status == 0);
    const auto recovered = directory / "run.recovered";
    CHECK(starts_in(recovered / "seconds.plm") == std::vector<std::uint64_t>{5000, 6000, 7000, 8000});
    const auto json = nlohmann::json::parse(read_file(recovered / "run.json"));
    CHECK(json["seconds"]["records"] == 4);
    CHECK(json["files"][0]["kind"] == "seconds");
    CHECK(json["files"][0]["last_time"] == 8000);
    CHECK(json["recovered"]["files"]["seconds.plm"]["state"] == "truncated");
    CHECK(run_petlm("verify" + quoted(recovered)).status == 0);
}

TEST_CASE("hdf5: the seconds of a run are a group of data sets", "[petlm][seconds][hdf5]") {
    const TemporaryDirectory directory;
    const auto run = directory / "run";
    write_run(run, point_source(export_scanner(), {1, 2, 3}, 10));
    const std::uint64_t count = GENERATE(0, 3);
    write_seconds(run / "seconds.plm", count);
    const Outcome outcome = exported("hdf5", run, directory / "a.h5");
    CAPTURE(outcome.out);
    REQUIRE(outcome.status == 0);
    const hid_t file = H5Fopen((directory / "a.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
    const auto read = [&]<class T>(const char* name, hid_t type, std::vector<hsize_t> shape, T) {
        const hid_t set = H5Dopen2(file, (std::string("seconds/") + name).c_str(), H5P_DEFAULT);
        REQUIRE(set >= 0);
        const hid_t space = H5Dget_space(set);
        std::vector<hsize_t> found(2);
        found.resize(static_cast<std::size_t>(H5Sget_simple_extent_dims(space, found.data(), nullptr)));
        CHECK(found == shape);
        std::vector<T> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
        CHECK(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
        CHECK(H5Aexists(set, "units") > 0);
        CHECK(H5Aexists(set, "description") > 0);
        H5Sclose(space);
        H5Dclose(set);
        return values;
    };
    const auto start = read("start", H5T_NATIVE_UINT64, {count}, std::uint64_t{});
    const auto randoms = read("randoms", H5T_NATIVE_DOUBLE, {count}, double{});
    const auto prompts = read("crystal_prompts", H5T_NATIVE_UINT32, {count, 12}, std::uint32_t{});
    const auto dt = read("module_dt", H5T_NATIVE_INT64, {count, 3}, std::int64_t{});
    for (std::uint64_t i = 0; i < count; ++i) {
        const daemon::Second s = second_number(i);
        CHECK(start[i] == s.range.start);
        CHECK(randoms[i] == s.randoms.total);
        CHECK(std::vector<std::uint32_t>(&prompts[12 * i], &prompts[12 * i] + 12) == s.sums.prompts);
        for (std::size_t m = 0; m < 3; ++m)
            CHECK(dt[3 * i + m] == static_cast<std::int64_t>(s.sums.modules[m].dt));
    }
    H5Fclose(file);
    std::filesystem::resize_file(run / "seconds.plm", std::filesystem::file_size(run / "seconds.plm") - 1);
    CHECK(exported("hdf5", run, directory / "b.h5", " 2>&1").status == 1);
    CHECK_FALSE(std::filesystem::exists(directory / "b.h5"));
}

TEST_CASE("petlm export, plot and image refuse a file of seconds", "[petlm][seconds]") {
    const TemporaryDirectory directory;
    const auto file = run_of_seconds(directory, 1) / "seconds.plm";
    for (const std::string& format : export_formats()) {
        const Outcome outcome = exported(format, file, directory / "out", " 2>&1");
        CHECK(outcome.status == 64);
        CHECK_THAT(outcome.out, contains("holds seconds"));
    }
    CHECK(run_petlm("image" + quoted(file) + "-o" + quoted(directory / "out") + "2>&1").status == 64);
}
