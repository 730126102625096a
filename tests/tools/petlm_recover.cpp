// petlm recover: whatever a file was cut or damaged to, every whole block comes back; and whole runs.
#include <iostream>

#include "daemon/listmode_reader.hpp"
#include "tests/tools/petlm_export_common.hpp"
#include "tools/petlm/commands.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

/// What is printed meanwhile goes nowhere: it is done thousands of times.
class Quiet {
  public:
    Quiet() : before_(std::cout.rdbuf(nowhere_.rdbuf())) {}
    ~Quiet() { std::cout.rdbuf(before_); }
    Quiet(const Quiet&) = delete;
    Quiet& operator=(const Quiet&) = delete;

  private:
    std::ostringstream nowhere_;
    std::streambuf* before_;
};

struct Written {
    std::string bytes;
    std::vector<std::uint64_t> block_ends;  ///< offsets in the file; the first entry is the header's end
    std::vector<std::uint64_t> records;     ///< before these offsets
};

Written write(const std::filesystem::path& file, const std::vector<gpu::Coincidence>& records,
              std::uint32_t block_bytes) {
    daemon::ListModeOptions options;
    options.block_bytes = block_bytes;
    options.sync_interval_ms = 3'600'000;
    options.description = {{"tick_ps", 20}, {"crystals", 5000}};
    daemon::ListModeWriter writer(file, options);
    writer.append(records);
    REQUIRE(writer.finish().written == records.size());
    Written out;
    out.bytes = contents_of(file);
    daemon::ListModeReader reader(file);
    out.block_ends.push_back(reader.header().header_bytes);
    out.records.push_back(0);
    while (reader.next()) {
        out.block_ends.push_back(reader.block_offset() + sizeof(daemon::BlockHeader) +
                                 reader.payload().size());
        out.records.push_back(out.records.back() + reader.block().records);
    }
    return out;
}

/// Recovers `bytes` and compares with the records that whole blocks of them hold.
void check_cut(const TemporaryDirectory& directory, const std::string& bytes, const Written& whole,
               const std::vector<gpu::Coincidence>& records) {
    const auto file = directory / "cut.plm";
    const auto recovered = directory / "cut.recovered.plm";
    std::filesystem::remove(recovered);
    put(file, bytes);
    CAPTURE(bytes.size());
    if (bytes.size() < whole.block_ends.front()) {
        CHECK_THROWS_AS(petacq::petlm::recover(file, {}), daemon::NotListMode);
        CHECK_FALSE(std::filesystem::exists(recovered));
        return;
    }
    REQUIRE(petacq::petlm::recover(file, {}) == 0);
    std::size_t blocks = 0;
    while (blocks + 1 < whole.block_ends.size() && whole.block_ends[blocks + 1] <= bytes.size())
        ++blocks;
    const auto expected =
        std::vector(records.begin(), records.begin() + static_cast<std::ptrdiff_t>(whole.records[blocks]));
    const auto found = daemon::read_coincidences(recovered);  // throws unless complete
    if (!same(found, expected)) FAIL("not the records of the whole blocks");
    const daemon::ListModeReader reader(recovered);
    const bool is_whole = bytes.size() == whole.bytes.size();
    if (reader.description().contains("recovered") == is_whole) FAIL("the description says otherwise");
    if (contents_of(file) != bytes) FAIL("the original was changed");
}

}  // namespace

TEST_CASE("recover: from a file cut at any byte, every whole block", "[petlm][recover]") {
    const TemporaryDirectory directory;
    const Quiet quiet;
    const auto records = pairs(13);
    const Written whole = write(directory / "whole.plm", records, 192);
    REQUIRE(whole.block_ends.size() == 5);  // four records, and one in the last
    for (std::size_t size = 0; size <= whole.bytes.size(); ++size) {
        // Of the header, mostly zeros, some sizes will do.
        if (size > 200 && size < whole.block_ends.front() - 2 && size % 331 != 0) continue;
        check_cut(directory, whole.bytes.substr(0, size), whole, records);
    }
}

TEST_CASE("recover: of files of any size, cut anywhere", "[petlm][recover]") {
    const TemporaryDirectory directory;
    const Quiet quiet;
    std::mt19937_64 random(11);
    for (int round = 0; round < 40; ++round) {
        const auto records = pairs(random() % 3000, random() % 1000);
        const auto block_bytes = static_cast<std::uint32_t>(128 + 64 * (random() % 100));
        std::filesystem::remove(directory / "whole.plm");
        const Written whole = write(directory / "whole.plm", records, block_bytes);
        CAPTURE(records.size(), block_bytes);
        for (int cut = 0; cut < 5; ++cut)
            check_cut(directory, whole.bytes.substr(0, random() % (whole.bytes.size() + 1)), whole, records);
    }
}

TEST_CASE("recover: a run whose last part was cut becomes a run that can be used", "[petlm][recover]") {
    const TemporaryDirectory directory;
    const auto records = point_source(export_scanner(), {3, -8, 1}, 3000);
    const auto run = directory / "run";
    write_run(run, records, export_scanner(), 3);
    put(run / "raw.pcap", "no list-mode");
    const auto last = run / "coincidences-0003.plm";
    const std::string before = contents_of(last);
    std::filesystem::resize_file(last, before.size() / 2);
    CHECK(exported("csv", run, directory / "out.csv").status == 1);

    const Outcome outcome = test::petlm("recover" + test::quoted(std::filesystem::path(run.string() + "/")));
    CAPTURE(outcome.out);
    REQUIRE(outcome.status == 0);
    const auto recovered = directory / "run.recovered";
    CHECK(names_in(recovered) == std::set<std::string>{"run.json", "coincidences-0001.plm",
                                                       "coincidences-0002.plm", "coincidences-0003.plm"});
    CHECK(contents_of(recovered / "coincidences-0001.plm") == contents_of(run / "coincidences-0001.plm"));
    const auto json = nlohmann::json::parse(contents_of(recovered / "run.json"));
    CHECK(json["run_id"] == "test-run");
    CHECK(json["recovered"]["files"]["coincidences-0002.plm"]["state"] == "complete");
    CHECK(json["recovered"]["files"]["coincidences-0003.plm"]["state"] == "truncated");
    REQUIRE(exported("csv", recovered, directory / "out.csv").status == 0);
    CHECK(contents_of(directory / "out.csv") == test::petlm("dump" + quoted(run) + "2>/dev/null").out);
    CHECK(test::petlm("recover" + quoted(run)).status == 64);  // it is there already

    // A part without a header is lost, and said to be.
    put(run / "coincidences-0002.plm", std::string(5000, 'x'));
    const Outcome lost = test::petlm("recover" + quoted(run) + "-o" + quoted(directory / "second"));
    CHECK(lost.status == 1);
    CHECK_THAT(lost.out, contains("coincidences-0002.plm") && contains("nothing of it can be recovered"));
    CHECK(names_in(directory / "second").count("coincidences-0003.plm") == 1);
    CHECK(exported("csv", directory / "second", directory / "none.csv").status == 65);
    CHECK(test::petlm("recover" + quoted(directory / "nowhere")).status == 74);
}
