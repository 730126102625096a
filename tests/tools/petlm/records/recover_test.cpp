// petlm recover: every whole block of a cut or damaged file comes back; so do whole runs.
#include <iostream>

#include "daemon/listmode/reader.hpp"
#include "tests/support/read_listmode.hpp"
#include "tests/tools/petlm/support.hpp"
#include "tools/petlm/records/recover.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

/// Discards standard output: recover() prints, and these tests call it thousands of times.
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
    write_plm(file, records, {{"tick_ps", 20}, {"crystals", 5000}}, block_bytes);
    Written out;
    out.bytes = read_file(file);
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

/// Recovers `bytes` and compares the result with the records in their whole blocks.
void check_cut(const TemporaryDirectory& directory, const std::string& bytes, const Written& whole,
               const std::vector<gpu::Coincidence>& records) {
    const auto file = directory / "cut.plm";
    const auto recovered = directory / "cut.recovered.plm";
    std::filesystem::remove(recovered);
    write_file(file, bytes);
    CAPTURE(bytes.size());
    if (bytes.size() < whole.block_ends.front()) {
        CHECK_THROWS_AS(petacq::petlm::recover({file, {}}), daemon::NotListMode);
        CHECK_FALSE(std::filesystem::exists(recovered));
        return;
    }
    REQUIRE(petacq::petlm::recover({file, {}}) == 0);
    std::size_t blocks = 0;
    while (blocks + 1 < whole.block_ends.size() && whole.block_ends[blocks + 1] <= bytes.size())
        ++blocks;
    const auto expected =
        std::vector(records.begin(), records.begin() + static_cast<std::ptrdiff_t>(whole.records[blocks]));
    const auto found = read_coincidences(recovered);  // throws unless complete
    if (!same(found, expected)) FAIL("not the records of the whole blocks");
    const daemon::ListModeReader reader(recovered);
    const bool is_whole = bytes.size() == whole.bytes.size();
    if (reader.description().contains("recovered") == is_whole) FAIL("the description says otherwise");
    if (read_file(file) != bytes) FAIL("the original was changed");
}

}  // namespace

TEST_CASE("recover: from a file cut at any byte, every whole block", "[petlm][recover]") {
    const TemporaryDirectory directory;
    const Quiet quiet;
    const auto records = pairs(13);
    const Written whole = write(directory / "whole.plm", records, 192);
    REQUIRE(whole.block_ends.size() == 5);  // four records each, and one in the last
    for (std::size_t size = 0; size <= whole.bytes.size(); ++size) {
        // The header is mostly zeros: some sizes suffice.
        if (size > 200 && size < whole.block_ends.front() - 2 && size % 331 != 0) continue;
        check_cut(directory, whole.bytes.substr(0, size), whole, records);
    }
}

TEST_CASE("recover: from files of any size, cut anywhere", "[petlm][recover]") {
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

TEST_CASE("recover: a run whose last part was cut becomes usable", "[petlm][recover]") {
    const TemporaryDirectory directory;
    const auto records = point_source(export_scanner(), {3, -8, 1}, 3000);
    const auto run = directory / "run";
    write_run(run, records, export_scanner(), 3);
    write_file(run / "raw.pcap", "no list-mode");
    const auto last = run / "coincidences-0003.plm";
    const std::string before = read_file(last);
    std::filesystem::resize_file(last, before.size() / 2);
    CHECK(exported("csv", run, directory / "out.csv").status == 1);

    const Outcome outcome = test::petlm("recover" + quoted(std::filesystem::path(run.string() + "/")));
    CAPTURE(outcome.out);
    REQUIRE(outcome.status == 0);
    const auto recovered = directory / "run.recovered";
    CHECK(names_in(recovered) == std::set<std::string>{"run.json", "coincidences-0001.plm",
                                                       "coincidences-0002.plm", "coincidences-0003.plm"});
    CHECK(read_file(recovered / "coincidences-0001.plm") == read_file(run / "coincidences-0001.plm"));
    const auto json = nlohmann::json::parse(read_file(recovered / "run.json"));
    CHECK(json["run_id"] == "test-run");
    CHECK(json["recovered"]["files"]["coincidences-0002.plm"]["state"] == "complete");
    CHECK(json["recovered"]["files"]["coincidences-0003.plm"]["state"] == "truncated");
    REQUIRE(exported("csv", recovered, directory / "out.csv").status == 0);
    CHECK(read_file(directory / "out.csv") == test::petlm("dump" + quoted(run) + "2>/dev/null").out);
    CHECK(test::petlm("recover" + quoted(run)).status == 64);  // the output exists

    // A part without a header is reported as lost.
    write_file(run / "coincidences-0002.plm", std::string(5000, 'x'));
    const Outcome lost = test::petlm("recover" + quoted(run) + "-o" + quoted(directory / "second"));
    CHECK(lost.status == 1);
    CHECK_THAT(lost.out, contains("coincidences-0002.plm") && contains("nothing of it can be recovered"));
    CHECK(names_in(directory / "second").count("coincidences-0003.plm") == 1);
    CHECK(exported("csv", directory / "second", directory / "none.csv").status == 65);
    CHECK(test::petlm("recover" + quoted(directory / "nowhere")).status == 74);
}
