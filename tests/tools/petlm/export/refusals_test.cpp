// All exports: runs in parts, damaged input, existing output.
#include <fcntl.h>
#include <unistd.h>

#include <fstream>

#include "daemon/space/reserve.hpp"
#include "tests/tools/petlm/support.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

/// The contents of all files of an export except the README, which names the source of the data.
std::string everything(const std::filesystem::path& out) {
    if (!std::filesystem::is_directory(out)) return read_file(out);
    std::string all;
    for (const auto& name : names_in(out)) {
        if (name != "README.txt") all += read_file(out / name);
    }
    return all;
}

void flip_bit(const std::filesystem::path& file, std::uint64_t offset) {
    std::fstream bytes(file, std::ios::binary | std::ios::in | std::ios::out);
    bytes.seekg(static_cast<std::streamoff>(offset));
    const char byte = static_cast<char>(bytes.get() ^ 0x10);
    bytes.seekp(static_cast<std::streamoff>(offset));
    bytes.put(byte);
}

gpu::RecordVector<gpu::Coincidence> some_records() {
    return point_source(export_scanner(), {3, -8, 1}, 3000);
}

}  // namespace

TEST_CASE("a run in parts is exported as if it were one file", "[petlm][export]") {
    const TemporaryDirectory directory;
    const auto records = some_records();
    write_run(directory / "one", records);
    write_run(directory / "three", records, export_scanner(), 3);
    write_run(directory / "many", records, export_scanner(), 12);
    for (const auto& format : export_formats()) {
        if (format == "hdf5") continue;  // it contains the time of the export
        CAPTURE(format);
        REQUIRE(exported(format, directory / "one", directory / (format + "1")).status == 0);
        REQUIRE(exported(format, directory / "three", directory / (format + "3")).status == 0);
        REQUIRE(exported(format, directory / "many", directory / (format + "12")).status == 0);
        const std::string expected = everything(directory / (format + "1"));
        CHECK(everything(directory / (format + "3")) == expected);
        CHECK(everything(directory / (format + "12")) == expected);
    }
    CHECK(run_petlm("dump" + quoted(directory / "many")).out ==
          run_petlm("dump" + quoted(directory / "one")).out);
    // One file of a run, with run.json beside it, is exported with the scanner of the run.
    CHECK(exported("castor", directory / "one" / "coincidences.plm", directory / "file").status == 0);
    CHECK(everything(directory / "file") == everything(directory / "castor1"));
}

TEST_CASE("a run with a part missing, or parts that do not belong together, is refused", "[petlm][export]") {
    const TemporaryDirectory directory;
    const auto records = some_records();
    const auto run = directory / "run";
    write_run(run, records, export_scanner(), 4);
    const auto refused = [&](int status, const std::string& why) {
        const Outcome outcome = exported("csv", run, directory / "out.csv");
        CHECK(outcome.status == status);
        CHECK_THAT(outcome.out, contains(why));
        CHECK(names_in(directory.path()) == std::set<std::string>{"run"});
    };
    std::filesystem::rename(run / "coincidences-0002.plm", run / "kept");
    refused(65, "part 2 of its coincidences is missing");
    std::filesystem::copy(run / "coincidences-0001.plm", run / "coincidences-0002.plm");
    refused(1, "before the end of the previous file");
    std::filesystem::remove(run / "coincidences-0002.plm");
    auto other = file_description(export_scanner());
    other["run_id"] = "another";
    write_plm(run / "coincidences-0002.plm", {records[1000]}, other);
    refused(1, "its run_id is \"another\"");
    std::filesystem::remove(run / "coincidences-0002.plm");
    std::filesystem::rename(run / "kept", run / "coincidences-0002.plm");
    std::filesystem::copy(run / "coincidences-0001.plm", run / "coincidences.plm");
    refused(65, "expected one or the other");
    std::filesystem::remove(run / "coincidences.plm");
    CHECK(exported("csv", run, directory / "out.csv").status == 0);
}

TEST_CASE("truncated, bit-flipped and foreign files are refused, and nothing is left", "[petlm][export]") {
    const TemporaryDirectory directory;
    const auto good = directory / "good";
    write_run(good, some_records());
    const auto bad = directory / "bad";
    std::filesystem::copy(good, bad);
    const auto file = bad / "coincidences.plm";
    const std::uint64_t size = std::filesystem::file_size(file);
    const auto all_refuse = [&](const std::string& what, std::set<int> statuses) {
        for (const auto& format : export_formats()) {
            const Outcome outcome = exported(format, bad, directory / "out");
            CAPTURE(what, format, outcome.out);
            CHECK(statuses.count(outcome.status) == 1);
            CHECK_THAT(outcome.out, contains("coincidences.plm"));
            CHECK(names_in(directory.path()) == std::set<std::string>{"good", "bad"});
        }
        std::filesystem::remove(file);
        std::filesystem::copy(good / "coincidences.plm", file);
    };
    for (const std::uint64_t length : {size - 1, size / 2, std::uint64_t{4096}}) {
        std::filesystem::resize_file(file, length);
        all_refuse("cut to " + std::to_string(length), {1});
    }
    std::filesystem::resize_file(file, 0);
    all_refuse("empty", {65});
    std::filesystem::resize_file(file, 100);
    all_refuse("a hundred bytes", {65});
    // Header, description, header of a block, a record in the middle, index, trailer.
    for (const std::uint64_t offset :
         {std::uint64_t{10}, std::uint64_t{60}, std::uint64_t{4100}, size / 2, size - 100, size - 30}) {
        flip_bit(file, offset);
        all_refuse("bit flipped at " + std::to_string(offset), {1, 65});
    }
    write_file(file, std::string(10'000, 'x'));
    all_refuse("foreign", {65});
    std::filesystem::remove(file);
    CHECK(exported("csv", bad, directory / "out").status == 65);
    CHECK(exported("csv", directory / "nowhere", directory / "out").status == 74);
}

TEST_CASE("records that no scanner makes are refused", "[petlm][export]") {
    const TemporaryDirectory directory;
    auto records = some_records();
    records[2000].crystal_b = 2880;
    write_run(directory / "crystal", records);
    records[2000].crystal_b = 0;
    records[2000].kind = static_cast<gpu::Kind>(7);
    write_run(directory / "kind", records);
    records[2000].kind = gpu::Kind::prompt;
    records[2000].time = records[1990].time;
    write_run(directory / "order", records);
    for (const auto& format : export_formats()) {
        for (const char* run : {"crystal", "kind", "order"}) {
            const Outcome outcome = exported(format, directory / run, directory / "out");
            CAPTURE(format, run, outcome.out);
            CHECK(outcome.status == 1);
            CHECK_THAT(outcome.out, contains("record 2000"));
            CHECK_FALSE(std::filesystem::exists(directory / "out"));
        }
    }
}

TEST_CASE("existing files are not replaced without --force", "[petlm][export]") {
    const TemporaryDirectory directory;
    write_run(directory / "run", some_records());
    for (const auto& format : export_formats()) {
        CAPTURE(format);
        const auto out = directory / format;
        REQUIRE(exported(format, directory / "run", out).status == 0);
        const std::string before = everything(out);
        const Outcome again = exported(format, directory / "run", out);
        CHECK(again.status == 64);
        CHECK_THAT(again.out, contains("exists, nothing was written") && contains("--force"));
        CHECK(everything(out) == before);
        CHECK(exported(format, directory / "run", out, "--force").status == 0);
    }
    // A directory in place of a file, and the reverse.
    CHECK(exported("csv", directory / "run", directory / "castor", "--force").status == 64);
    CHECK(exported("castor", directory / "run", directory / "csv", "--force").status == 64);
    // A failed export keeps the previous one.
    const std::string before = everything(directory / "csv");
    flip_bit(directory / "run" / "coincidences.plm", 50'000);
    CHECK(exported("csv", directory / "run", directory / "csv", "--force").status == 1);
    CHECK(everything(directory / "csv") == before);
}

TEST_CASE("a scanner that the run was not recorded with is refused", "[petlm][export]") {
    const TemporaryDirectory directory;
    write_run(directory / "run", some_records());
    auto other = export_scanner();
    other.tick_ps = 20;
    write_file(directory / "ticks.json", config::to_json(other).dump());
    other = export_scanner();
    other.geometry.crystals.z = 3;
    write_file(directory / "crystals.json", config::to_json(other).dump());
    for (const char* format : {"castor", "stir"}) {
        const auto with = [&](const char* file) {
            return exported(format, directory / "run", directory / "out",
                            "--scanner" + quoted(directory / file));
        };
        CHECK_THAT(with("ticks.json").out, contains("recorded with ticks of 15.625 ps"));
        CHECK(with("ticks.json").status == 1);
        CHECK_THAT(with("crystals.json").out, contains("recorded with 2880 crystals"));
        CHECK(with("crystals.json").status == 1);
        CHECK(with("none.json").status == 74);
        write_file(directory / "bad.json", "{}");
        CHECK(with("bad.json").status == 78);
    }
}

TEST_CASE("options that a format does not have are refused", "[petlm][export]") {
    const TemporaryDirectory directory;
    write_run(directory / "run", some_records());
    const auto refused = [&](const std::string& format, const std::string& option) {
        CAPTURE(format, option);
        CHECK(exported(format, directory / "run", directory / "out", option).status == 64);
        CHECK_FALSE(std::filesystem::exists(directory / "out"));
    };
    refused("stir", "--tof-resolution-ps 200");
    refused("csv", "--kind");
    refused("coinstruct", "--depth-mm 3");
    refused("castor", "--time-from-start");
    refused("castor", "--tof-resolution-ps 0");
    refused("castor", "--tof-resolution-ps nan");
    refused("castor", "--depth-mm 13");
    refused("stir", "--depth-mm -1");
    refused("root", "");
}

TEST_CASE("a full disk stops an export with a message", "[petlm][export]") {
    const TemporaryDirectory directory;
    write_run(directory / "run", some_records());
    // A limit on the size of files is a disk that is full at 4 KiB.
    const Outcome outcome = shell("trap '' XFSZ; ulimit -f 8; exec " PETLM_PROGRAM " export --format csv" +
                                  quoted(directory / "run") + "--output" + quoted(directory / "a.csv"));
    CHECK(outcome.status == 74);
    CHECK_THAT(outcome.out, contains("a.csv") && contains("File too large"));
    CHECK(names_in(directory.path()) == std::set<std::string>{"run"});
}

TEST_CASE("a run that is still being recorded is refused as such, and not as a damaged one",
          "[petlm][export]") {
    const TemporaryDirectory directory;
    const std::filesystem::path run = directory / "run";
    write_run(run, some_records());
    nlohmann::json about = nlohmann::json::parse(read_file(run / "run.json"));
    about["state"] = "running";
    write_file(run / "run.json", about.dump());
    const std::string whole = read_file(run / "coincidences.plm");
    write_file(run / "coincidences.plm", whole.substr(0, whole.size() - 40));
    const auto refusal = [&](const std::string& command) {
        const Outcome outcome = run_petlm(command + quoted(run) + " -o" + quoted(directory / "out"));
        CHECK(outcome.status == 1);
        CHECK_FALSE(std::filesystem::exists(directory / "out"));
        return outcome.out;
    };
    {
        const daemon::RunReserve writer(run);
        CHECK_THAT(refusal("frames --schedule 1s"), contains("the run is still being recorded"));
        CHECK_THAT(refusal("image"), contains("Expected a run that has ended"));
    }
    // Its writer is gone.
    CHECK_THAT(refusal("frames --schedule 1s"), contains("petlm recover makes a sound file"));
}
