// petlm recover: every whole block of a cut or damaged file comes back; so do whole runs.
#include <iostream>

#include "daemon/listmode/reader.hpp"
#include "tests/support/read_listmode.hpp"
#include "tests/tools/petlm/support.hpp"
#include "tools/petlm/records/recovery/recover.hpp"

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

Written write(const std::filesystem::path& file, const gpu::RecordVector<gpu::Coincidence>& records,
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
               const gpu::RecordVector<gpu::Coincidence>& records) {
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
    const gpu::RecordVector<gpu::Coincidence> expected(
        records.begin(), records.begin() + static_cast<std::ptrdiff_t>(whole.records[blocks]));
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

    const Outcome outcome = run_petlm("recover" + quoted(std::filesystem::path(run.string() + "/")));
    CAPTURE(outcome.out);
    REQUIRE(outcome.status == 0);
    const auto recovered = directory / "run.recovered";
    CHECK(names_in(recovered) == std::set<std::string>{"run.json", "coincidences-0001.plm",
                                                       "coincidences-0002.plm", "coincidences-0003.plm"});
    CHECK(read_file(recovered / "coincidences-0001.plm") == read_file(run / "coincidences-0001.plm"));
    const auto json = nlohmann::json::parse(read_file(recovered / "run.json"));
    CHECK(json["run_id"] == "test-run");
    CHECK(json["state"] == "recovered");
    CHECK(json["recovered"]["state"] == "complete");
    CHECK(json["files"].size() == 3);
    CHECK(json["files"][2]["first_record"] == 2000);
    CHECK(json["recovered"]["files"]["coincidences-0002.plm"]["state"] == "complete");
    CHECK(json["recovered"]["files"]["coincidences-0003.plm"]["state"] == "truncated");
    REQUIRE(exported("csv", recovered, directory / "out.csv").status == 0);
    CHECK(read_file(directory / "out.csv") == run_petlm("dump" + quoted(run) + "2>/dev/null").out);
    CHECK(run_petlm("recover" + quoted(run)).status == 64);  // the output exists

    // A part without a header is reported as lost.
    write_file(run / "coincidences-0002.plm", std::string(5000, 'x'));
    const Outcome lost = run_petlm("recover" + quoted(run) + "-o" + quoted(directory / "second"));
    CHECK(lost.status == 1);
    CHECK_THAT(lost.out, contains("coincidences-0002.plm") && contains("nothing of it can be recovered"));
    CHECK(names_in(directory / "second").count("coincidences-0003.plm") == 1);
    CHECK(exported("csv", directory / "second", directory / "none.csv").status == 65);
    CHECK(run_petlm("recover" + quoted(directory / "nowhere")).status == 74);
}

namespace {

/// An interrupted run of about 1000 pairs, the second half of which is cut off, with rows that count 1010
/// pairs.
void write_interrupted(const std::filesystem::path& run) {
    write_run(run, point_source(export_scanner(), {3, -8, 1}, 1000));
    const auto file = run / "coincidences.plm";
    const std::string bytes = read_file(file);
    write_file(file, bytes.substr(0, bytes.size() / 2));
    auto json = nlohmann::json::parse(read_file(run / "run.json"));
    json["state"] = "running";
    json.erase("stop_ticks");
    write_file(run / "run.json", json.dump());
    write_file(run / "ledger.csv",
               "from_ticks,to_ticks,datagrams.lost,frames.received,singles.prompts,singles.delayeds\n"
               "1000,2000,3,5000,400,100\n"
               "2000,9000,-1,6000,408,102\n"
               "9000,9500,0,60");
}

nlohmann::json recovered_json(const std::filesystem::path& run) {
    return nlohmann::json::parse(read_file(std::filesystem::path(run.string() + ".recovered") / "run.json"));
}

}  // namespace

TEST_CASE("recover: an interrupted run gets the ledger that is known", "[petlm][recover]") {
    const TemporaryDirectory directory;
    const auto run = directory / "run";
    write_interrupted(run);
    const Outcome outcome = run_petlm("recover" + quoted(run));
    CAPTURE(outcome.out);
    REQUIRE(outcome.status == 0);
    const nlohmann::json json = recovered_json(run);
    const auto kept = read_coincidences(directory / "run.recovered" / "coincidences.plm");
    REQUIRE(kept.size() < 1000);
    const nlohmann::json& ledger = json["ledger"];
    CHECK(json["state"] == "recovered");
    CHECK(json["recovered"]["state"] == "interrupted");
    CHECK(json["recovered"]["ledger_until_ticks"] == 9000);
    CHECK(json["ledger_over_time"]["rows"] == 2);
    CHECK_THAT(json["ledger_over_time"]["failure"].get<std::string>(), contains("line 4 is cut off"));
    CHECK(ledger["datagrams"]["lost"] == 2);
    CHECK(ledger["frames"]["received"] == 11000);
    CHECK(ledger["frames"]["late"].is_null());
    CHECK(ledger["pairs"] == nlohmann::json{{"prompts_found", 808},
                                            {"delayeds_found", 202},
                                            {"written", kept.size()},
                                            {"write_failed", 1010 - kept.size()},
                                            {"in_queue", 0}});
    CHECK(ledger["saved_singles"]["found"] == 0);
    CHECK(ledger["loss_known"] == true);
    CHECK(ledger["closed"].is_null());
    CHECK_THAT(ledger["open"][0].get<std::string>(), contains("interrupted") && contains("9000 ticks"));
    CHECK_THAT(outcome.out, contains("at least " + std::to_string(1010 - kept.size()) + " coincidences"));
    CHECK(names_in(directory / "run.recovered") ==
          std::set<std::string>{"run.json", "coincidences.plm", "ledger.csv"});
    CHECK(run_petlm("verify" + quoted(directory / "run.recovered")).status == 0);
    CHECK(run_petlm("verify" + quoted(run)).status == 1);
    // What was recovered can be recovered again: nothing is lost or invented.
    REQUIRE(run_petlm("recover" + quoted(directory / "run.recovered")).status == 0);
    CHECK(recovered_json(directory / "run.recovered")["ledger"] == ledger);
}

TEST_CASE("recover: without ledger.csv and run.json only the files count", "[petlm][recover]") {
    const TemporaryDirectory directory;
    const auto run = directory / "run";
    write_interrupted(run);
    std::filesystem::remove(run / "ledger.csv");
    std::filesystem::remove(run / "run.json");
    REQUIRE(run_petlm("recover" + quoted(run)).status == 0);
    const nlohmann::json json = recovered_json(run);
    CHECK(json["run_id"] == "run");
    CHECK(json["state"] == "recovered");
    CHECK(json["recovered"]["ledger_until_ticks"].is_null());
    CHECK(json["ledger"]["frames"]["received"].is_null());
    CHECK(json["ledger"]["loss_known"] == false);
    CHECK(json["ledger"]["pairs"]["written"] == json["files"][0]["records"]);
    CHECK(json["ledger"]["pairs"]["write_failed"] == 0);
    CHECK(run_petlm("verify" + quoted(directory / "run.recovered")).status == 0);
}

TEST_CASE("recover: a run that had stopped keeps its ledger, and counts what is missing",
          "[petlm][recover]") {
    const TemporaryDirectory directory;
    const auto run = directory / "run";
    write_interrupted(run);
    auto json = nlohmann::json::parse(read_file(run / "run.json"));
    json["state"] = "complete";
    json["stop_reason"] = "stopped by operator";
    json["ledger"] = {{"closed", true},
                      {"frames", {{"received", 7}}},
                      {"pairs",
                       {{"prompts_found", 800},
                        {"delayeds_found", 200},
                        {"written", 1000},
                        {"write_failed", 0},
                        {"in_queue", 0}}}};
    write_file(run / "run.json", json.dump());
    REQUIRE(run_petlm("recover" + quoted(run)).status == 0);
    const nlohmann::json recovered = recovered_json(run);
    const std::uint64_t kept = recovered["files"][0]["records"];
    CHECK(recovered["state"] == "recovered");
    CHECK(recovered["stop_reason"] == "stopped by operator");
    CHECK(recovered["ledger"]["closed"] == true);
    CHECK(recovered["ledger"]["frames"]["received"] == 7);
    CHECK(recovered["ledger"]["pairs"]["written"] == kept);
    CHECK(recovered["ledger"]["pairs"]["write_failed"] == 1000 - kept);
}
