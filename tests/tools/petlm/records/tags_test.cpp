// petlm with files of tags.
#include "tests/tools/petlm/tags.hpp"
#include "daemon/listmode/reader.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

std::vector<gpu::Tag> all_kinds() {
    std::vector<gpu::Tag> tags;
    for (std::uint32_t i = 0; i < 50; ++i)
        tags.push_back({run_start + i, i, static_cast<std::uint16_t>(i % 3),
                        static_cast<std::uint8_t>(i % 16), static_cast<std::uint8_t>(i % 7)});
    tags[2].value = static_cast<std::uint32_t>(-2500);
    tags[6].kind = 200;
    return tags;
}

std::vector<gpu::Tag> read_tags(const std::filesystem::path& file) {
    daemon::ListModeReader reader(file);
    std::vector<gpu::Tag> out;
    while (reader.next())
        out.insert(out.end(), reader.tags().begin(), reader.tags().end());
    return out;
}

}  // namespace

TEST_CASE("petlm dump and export csv of tags", "[petlm][tags]") {
    const TemporaryDirectory directory;
    const auto file = directory / "tags.plm";
    write_tags(file, all_kinds());
    const Outcome dumped = run_petlm("dump" + quoted(file));
    CHECK(dumped.status == 0);
    CHECK_THAT(dumped.out, contains("time,source,channel,kind,value\n"
                                    "5000000000,0,0,trigger,0\n"
                                    "5000000001,1,1,gate,1\n"
                                    "5000000002,2,2,position,-2500\n"
                                    "5000000003,0,3,dead_time,3\n"
                                    "5000000004,1,4,clock,4\n"
                                    "5000000005,2,5,5,5\n"
                                    "5000000006,0,6,200,6\n"));
    CHECK(run_petlm("dump --limit 2" + quoted(file) + "| wc -l").out == "3\n");
    CHECK(run_petlm("dump --kind prompt" + quoted(file)).status == 64);
    REQUIRE(exported("csv", file, directory / "tags.csv").status == 0);
    CHECK(read_file(directory / "tags.csv") == dumped.out);
    for (const char* format : {"castor", "stir", "coinstruct", "hdf5", "petsird"})
        CHECK(exported(format, file, directory / format).status == 64);
    CHECK(run_petlm("plot" + quoted(file) + "-o" + quoted(directory / "plot")).status == 64);
    const auto info = nlohmann::json::parse(run_petlm("info --json" + quoted(file)).out);
    CHECK(info["kind"] == "tags");
    CHECK(info["records"] == 50);
    CHECK(info["record_bytes"] == 16);
}

TEST_CASE("petlm verify of tags", "[petlm][tags]") {
    const TemporaryDirectory directory;
    const auto run = directory / "run";
    const auto pairs = point_source(export_scanner(), {1, 2, 3}, 200);
    write_run(run, pairs);
    write_tags(run / "tags.plm", all_kinds());
    auto json = nlohmann::json::parse(read_file(run / "run.json"));
    json["ledger"]["pairs"]["written"] = pairs.size();
    json["ledger"]["tags"]["written"] = 50;
    write_file(run / "run.json", json.dump());
    CHECK(run_petlm("verify" + quoted(run)).status == 0);
    json["ledger"]["tags"]["written"] = 51;
    write_file(run / "run.json", json.dump());
    const Outcome wrong = run_petlm("verify" + quoted(run));
    CHECK(wrong.status == 1);
    CHECK_THAT(wrong.out, contains("the ledger's /tags/written is 51, the files hold 50"));

    // Tags have an order of their own, and 16 channels.
    auto tags = all_kinds();
    tags[20].channel = 16;
    write_tags(directory / "channel.plm", tags);
    CHECK_THAT(run_petlm("verify" + quoted(directory / "channel.plm")).out,
               contains("record 20 (block 1) has a"));
    daemon::ListModeFile out(directory / "order.plm", daemon::RecordKind::tags, 4096,
                             file_description(export_scanner()));
    const std::array swapped = {tag(5, 1, gpu::TagKind::gate, 1), tag(5, 1, gpu::TagKind::gate, 0)};
    out.write_block(std::as_bytes(std::span(swapped)));
    out.close();
    CHECK_THAT(run_petlm("verify" + quoted(directory / "order.plm")).out,
               contains("record 1 (block 0) is not in"));
}

TEST_CASE("petlm recover, cut and merge of tags", "[petlm][tags]") {
    const TemporaryDirectory directory;
    const auto run = directory / "run";
    const auto pairs = point_source(export_scanner(), {1, 2, 3}, 200);
    write_run(run, pairs);
    write_tags(run / "tags.plm", all_kinds());
    auto json = nlohmann::json::parse(read_file(run / "run.json"));
    json["state"] = "failed";
    json["ledger"] = {{"pairs", {{"written", pairs.size()}}}, {"tags", {{"found", 50}, {"written", 50}}}};
    write_file(run / "run.json", json.dump());
    // A cut in the third block of 16 costs that block.
    std::filesystem::resize_file(run / "tags.plm", 4096 + 3 * (64 + 16 * 16) - 1);
    REQUIRE(run_petlm("recover" + quoted(run) + "-o" + quoted(directory / "saved")).status == 0);
    CHECK(read_tags(directory / "saved" / "tags.plm").size() == 32);
    const auto saved = nlohmann::json::parse(read_file(directory / "saved" / "run.json"));
    CHECK(saved["ledger"]["tags"]["written"] == 32);
    CHECK(saved["ledger"]["tags"]["write_failed"] == 18);
    CHECK(saved["recovered"]["files"]["tags.plm"]["records"] == 32);
    CHECK(saved["files"][1]["kind"] == "tags");
    CHECK(run_petlm("verify" + quoted(directory / "saved")).status == 0);

    const auto tags = directory / "saved" / "tags.plm";
    const std::string middle = std::to_string(run_start + 10);
    REQUIRE(run_petlm("cut" + quoted(tags) + "-o" + quoted(directory / "a.plm") + "--to-ticks " + middle)
                .status == 0);
    REQUIRE(run_petlm("cut" + quoted(tags) + "-o" + quoted(directory / "b.plm") + "--from-ticks " + middle)
                .status == 0);
    CHECK(read_tags(directory / "a.plm").size() == 10);
    REQUIRE(run_petlm("merge" + quoted(directory / "b.plm") + quoted(directory / "a.plm") + "-o" +
                      quoted(directory / "all.plm"))
                .status == 0);
    CHECK(read_tags(directory / "all.plm") == read_tags(tags));
}
