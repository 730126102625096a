// The closing description: what is known only when a file is closed.
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "daemon/listmode/reader.hpp"
#include "daemon/listmode/writer.hpp"
#include "tests/daemon/listmode/set_support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/read_listmode.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;
using nlohmann::json;

namespace {

json times_of(const PartTimes& times) {
    const auto number = [](const std::optional<std::uint64_t>& time) { return time ? json(*time) : json(); };
    return {{"closing", {number(times.from), number(times.to), number(times.last_time)}}, {"end", "known"}};
}

ListModeOptions options_with(std::uint32_t files, config::Compression compression) {
    ListModeOptions options;
    options.block_bytes = 4096;
    options.queue_blocks = 8;
    options.sync_interval_ms = 1'000'000;
    options.files = files;
    options.compression = compression;
    options.closing = times_of;
    return options;
}

void flip_byte(const std::filesystem::path& file, std::uint64_t from_end) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(-static_cast<std::streamoff>(from_end), std::ios::end);
    const auto at = stream.tellg();
    const int byte = stream.get();
    stream.seekp(at);
    stream.put(static_cast<char>(byte ^ 1));
}

}  // namespace

TEST_CASE("closing: its members replace those of the header", "[listmode]") {
    const TemporaryDirectory directory;
    const auto file = directory / "a.plm";
    const auto compression = GENERATE(config::Compression::none, config::Compression::zstd);
    const std::uint64_t count = GENERATE(0U, 1U, 5000U);
    const auto all = pairs(count);
    {
        ListModeWriter writer(file, options_with(1, compression), {{"run_id", "r"}, {"end", nullptr}});
        append_in_pieces(writer, all, 3);
        writer.finish();
        REQUIRE(writer.failure().empty());
    }
    ListModeReader reader(file);
    CHECK(reader.header().version == 3);
    CHECK(reader.description()["run_id"] == "r");
    CHECK(reader.description()["end"] == "known");
    CHECK(reader.description()["closing"] ==
          json{nullptr, nullptr, count == 0 ? json() : json(all.back().time)});
    gpu::RecordVector<gpu::Coincidence> read;
    while (reader.next())
        read.insert(read.end(), reader.coincidences().begin(), reader.coincidences().end());
    CHECK(same(read, all));
    CHECK(reader.condition().state == FileState::complete);
}

TEST_CASE("closing: each part knows where the next one begins", "[listmode]") {
    const TemporaryDirectory directory;
    const std::uint32_t files = GENERATE(1U, 3U);
    ListModeOptions options = options_with(files, config::Compression::none);
    options.split.ticks = 10'000;
    const auto all = pairs(5000);
    {
        ListModeWriter writer(directory / "a.plm", options, json::object());
        append_in_pieces(writer, all, 3);
        writer.finish();
        REQUIRE(writer.failure().empty());
    }
    json before;
    std::size_t parts = 0;
    for (;; ++parts) {
        char name[32];
        std::snprintf(name, sizeof name, "a-%04zu.plm", parts + 1);
        const bool exists =
            std::filesystem::exists(files == 1 ? directory / name : file_of_set(directory / name, 0));
        if (!exists) break;
        ListModeReader reader(directory / name);
        REQUIRE(reader.next());
        const json closing = reader.description()["closing"];
        if (parts == 0) {
            CHECK(closing[0].is_null());
        } else {
            CHECK(closing[0] == reader.block().first_time);
            CHECK(closing[0] == before);
        }
        before = closing[1];
    }
    CHECK(parts > 3);
    CHECK(before.is_null());
}

TEST_CASE("closing: a file that is cut off, or whose closing is damaged, has its header and its records",
          "[listmode]") {
    const TemporaryDirectory directory;
    const auto file = directory / "a.plm";
    const auto all = pairs(1000);
    {
        ListModeWriter writer(file, options_with(1, config::Compression::none), {{"end", nullptr}});
        append_in_pieces(writer, all, 3);
        writer.finish();
    }
    SECTION("cut off") {
        std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
    }
    SECTION("damaged") {
        flip_byte(file, 64 + 5);
    }
    ListModeReader reader(file);
    CHECK(reader.description()["end"].is_null());
    std::uint64_t records = 0;
    while (reader.next())
        records += reader.coincidences().size();
    CHECK(records == all.size());
    CHECK(reader.condition().state == FileState::truncated);
}
