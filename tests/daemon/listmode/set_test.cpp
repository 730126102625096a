// Sets of files: the same records whatever their number, and an exact report of what is missing.
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "daemon/listmode/crc32c.hpp"
#include "tests/daemon/listmode/set_support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/read_listmode.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;

namespace {

std::uint32_t crc_of(const gpu::RecordVector<gpu::Coincidence>& records) {
    return crc32c(std::as_bytes(std::span(records)));
}

/// 33 blocks of four records, the last of two, in files r.1.plm, r.2.plm, r.3.plm.
constexpr std::uint64_t set_records = 130;
std::map<std::string, std::string> write_set(const TemporaryDirectory& directory) {
    ListModeWriter writer(directory / "r.plm", set_options(3), {{"run_id", "r1"}});
    writer.append(pairs(set_records));
    REQUIRE(writer.finish().written == set_records);
    std::map<std::string, std::string> files;
    for (const ListModePart& part : writer.parts())
        files[part.name] = read_file(directory / part.name);
    REQUIRE(files.size() == 3);
    return files;
}

}  // namespace

TEST_CASE("The records and their order do not depend on the number of files", "[listmode][set]") {
    const auto all = pairs(12'000);
    const auto compression = GENERATE(config::Compression::none, config::Compression::zstd);
    for (const std::uint32_t files : {1U, 2U, 3U, 8U}) {
        for (const std::uint32_t block_bytes : {128U, 4096U, 1U << 20}) {
            CAPTURE(files, block_bytes);
            const TemporaryDirectory directory;
            ListModeOptions options = set_options(files, block_bytes);
            options.compression = compression;
            ListModeWriter writer(directory / "r.plm", options, {{"run_id", "r1"}});
            append_in_pieces(writer, all, files, block_bytes == 4096 ? 9000 : 700);
            const ListModeCounts counts = writer.finish();
            CHECK(writer.failure().empty());
            CHECK(counts.written == all.size());
            CHECK(counts.queue_blocks == 0);
            CHECK(writer.threads().size() == files);

            ListModeReader reader(directory / "r.plm");
            REQUIRE(reader.trailer());
            CHECK(reader.trailer()->records == all.size());
            CHECK(reader.trailer()->payload_crc == crc_of(all));
            CHECK(reader.index().size() == counts.blocks);
            CHECK(reader.file_bytes() == counts.bytes);
            if (compression == config::Compression::zstd && block_bytes != 128)
                CHECK(counts.bytes - files * 4096 < all.size() * sizeof all[0] / 2);
            CHECK(reader.description() == nlohmann::json{{"run_id", "r1"}});
            CHECK(same(read_coincidences(directory / "r.plm"), all));

            const auto parts = writer.parts();
            REQUIRE(parts.size() == files);
            for (const ListModePart& part : parts) {
                CHECK(part.bytes == std::filesystem::file_size(directory / part.name));
                if (part.records == 0) continue;
                CHECK(part.first_time == all[part.first_record].time);
                CHECK(same(read_coincidences(directory / part.name), all));  // any file opens the set
            }
        }
    }
}

TEST_CASE("A set is split at the same blocks as its limits say", "[listmode][set]") {
    const auto all = pairs(250);
    for (const std::uint32_t files : {1U, 2U, 3U}) {
        for (const SplitOptions split : {SplitOptions{4096 + 3 * 192, 0}, SplitOptions{0, 500},
                                         SplitOptions{4096 + 3 * 192, 300}, SplitOptions{100, 0}}) {
            CAPTURE(files, split.bytes, split.ticks);
            const TemporaryDirectory directory;
            ListModeOptions options = set_options(files);
            options.split = split;
            ListModeWriter writer(directory / "r.plm", options);
            append_in_pieces(writer, all, 4);
            REQUIRE(writer.finish().written == all.size());
            const auto parts = writer.parts();
            REQUIRE(parts.size() % files == 0);
            REQUIRE(parts.size() / files > 3);
            gpu::RecordVector<gpu::Coincidence> joined;
            for (std::size_t i = 0; i < parts.size(); ++i) {
                const auto file = directory / parts[i].name;
                CHECK((split.bytes == 0 || parts[i].bytes - 64 - 32 * ((parts[i].records + 3) / 4) <=
                                               std::max<std::uint64_t>(split.bytes, 4096 + 192)));
                if (i % files != 0) continue;
                ListModeReader reader(file);
                CHECK(reader.description()["part"] == i / files + 1);
                REQUIRE(reader.next());
                const std::uint64_t start = reader.block().first_time;
                do {
                    CHECK((split.ticks == 0 || reader.block().first_time - start < split.ticks));
                    const auto records = reader.coincidences();
                    joined.insert(joined.end(), records.begin(), records.end());
                } while (reader.next());
                CHECK(reader.condition().state == FileState::complete);
                // Full: another block would have broken a limit.
                const bool last = i + files == parts.size();
                const bool by_size =
                    split.bytes != 0 && reader.condition().blocks % files == 0 && parts[i].records >= 4;
                CHECK((last || split.ticks != 0 || by_size));
            }
            CHECK(same(joined, all));
        }
    }
}

TEST_CASE("Records of a quiet run reach a set without a full block", "[listmode][set]") {
    const TemporaryDirectory directory;
    ListModeOptions options = set_options(3, 4096);
    options.sync_interval_ms = 5;
    ListModeWriter writer(directory / "r.plm", options);
    for (std::uint64_t round = 1; round <= 7; ++round) {
        writer.append(pairs(5, (round - 1) * 5));
        CHECK(eventually(
            [&] { return same(read_what_is_there(directory / "r.plm").records, pairs(round * 5)); }));
    }
    CHECK(writer.finish().blocks == 7);
    CHECK(same(read_coincidences(directory / "r.plm"), pairs(35)));
}

TEST_CASE("Latency counts when all earlier blocks are written, in whatever file", "[listmode][set]") {
    const TemporaryDirectory directory;
    ListModeWriter writer(directory / "r.plm", set_options(3));
    const auto now = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
    for (std::uint64_t i = 0; i < 300; ++i) {
        writer.append(pairs(4, 4 * i));
        writer.mark({&now, 1});
    }
    CHECK(eventually([&] { return writer.latency().samples == 300; }));
}

TEST_CASE("Selected times of a set come from the indexes of all files", "[listmode][set]") {
    const TemporaryDirectory directory;
    write_set(directory);
    const auto all = pairs(set_records);
    for (std::uint64_t from = 990; from < 2400; from += 37) {
        for (const std::uint64_t length : {0U, 1U, 10U, 45U, 400U, 3000U}) {
            ListModeReader reader(directory / "r.plm");
            reader.select(from, from + length);
            gpu::RecordVector<gpu::Coincidence> found;
            while (reader.next()) {
                CHECK(reader.block().last_time >= from);
                CHECK(reader.block().first_time < from + length);
                for (const auto& c : reader.coincidences())
                    if (c.time >= from && c.time < from + length) found.push_back(c);
            }
            CHECK(reader.condition().state == FileState::complete);
            CHECK(reader.condition().missing_records == 0);
            gpu::RecordVector<gpu::Coincidence> expected;
            for (const auto& c : all)
                if (c.time >= from && c.time < from + length) expected.push_back(c);
            if (!same(found, expected)) FAIL("other records from " << from << ", " << length << " ticks");
        }
    }
}

TEST_CASE("A set whose files end anywhere gives every whole block and counts what is missing",
          "[listmode][set]") {
    const TemporaryDirectory directory;
    const auto files = write_set(directory);
    std::mt19937 random(5);
    for (int round = 0; round < 400; ++round) {
        std::map<std::uint64_t, BlockHeader> there;  // by number
        std::uint64_t tail_bytes = 0;
        std::vector<std::uint64_t> next_of_file;
        for (const auto& [name, content] : files) {
            // Some cuts are near the end, as after kill -9, some anywhere.
            const std::size_t blocks_end = blocks_within(content, content.size()).back().end;
            const std::size_t most = round % 2 == 0 ? blocks_end - 4096 : 700;
            const std::size_t size = blocks_end - random() % (most + 1);
            write_file(directory / name, content.substr(0, size));
            std::uint64_t end = 4096;
            for (const PlainBlock& block : blocks_within(content, size)) {
                there[block.header.number] = block.header;
                end = block.end;
            }
            tail_bytes += size - end;
        }
        gpu::RecordVector<gpu::Coincidence> expected;
        std::uint64_t missing = 0;
        std::set<std::uint64_t> ended;  // files that lack a block before the last one
        std::uint64_t number = 0;
        std::uint64_t record = 0;
        for (const auto& [found, header] : there) {
            for (; number < found; ++number)
                ended.insert(number % 3);
            missing += header.first_record - record;
            const auto records = pairs(header.records, header.first_record);
            expected.insert(expected.end(), records.begin(), records.end());
            record = header.first_record + header.records;
            ++number;
        }
        const FoundRecords found = read_what_is_there(directory / "r.plm");
        CAPTURE(round, found.condition.summary());
        CHECK(found.condition.state == FileState::truncated);
        CHECK(found.condition.missing_records == missing);
        CHECK(found.condition.tail_bytes == tail_bytes);
        CHECK(found.condition.blocks == there.size());
        CHECK(found.condition.cut_off_count == ended.size());
        for (const Damage& damage : found.condition.damage) {
            CHECK(damage.file == "r." + std::to_string(damage.block % 3 + 1) + ".plm");
            CHECK(there.count(damage.block) == 0);
            CHECK(damage.what == "the file ends before block " + std::to_string(damage.block));
        }
        if (!same(found.records, expected)) FAIL("other records");
    }
}

TEST_CASE("A file of a set that is lost, foreign or of another set is named", "[listmode][set]") {
    const TemporaryDirectory directory;
    const auto files = write_set(directory);
    const std::size_t lost = GENERATE(0U, 1U, 2U);
    const std::string name = "r." + std::to_string(lost + 1) + ".plm";
    gpu::RecordVector<gpu::Coincidence> rest;
    std::uint64_t last = 0;
    for (std::uint64_t block = 0; block < 33; ++block) {
        if (block % 3 == lost) continue;
        const auto records = pairs(std::min<std::uint64_t>(4, set_records - 4 * block), 4 * block);
        rest.insert(rest.end(), records.begin(), records.end());
        last = 4 * block + records.size();
    }
    const auto check = [&](const std::string& what) {
        for (const char* opened : {"r.plm", "r.1.plm", "r.2.plm", "r.3.plm"}) {
            // The first file that can be read tells which set it is.
            const bool is_first = name == opened || (lost == 0 && std::string(opened) == "r.plm");
            if (is_first && what == "the file belongs to another set") continue;
            const FoundRecords found = read_what_is_there(directory / opened);
            CAPTURE(opened, found.condition.summary());
            CHECK(found.condition.state == FileState::damaged);
            CHECK(found.condition.missing_records == last - rest.size());
            REQUIRE(found.condition.damage.size() == 1);
            CHECK(found.condition.damage[0].file == name);
            CHECK(found.condition.damage[0].block == lost);
            CHECK_THAT(found.condition.damage[0].what, contains(what));
            CHECK(same(found.records, rest));
        }
    };
    std::filesystem::remove(directory / name);
    check("the file is missing");
    write_file(directory / name, "");
    check("empty, not a list-mode file");
    const TemporaryDirectory other;
    ListModeWriter(other / "r.plm", set_options(3), {{"run_id", "r2"}}).finish();
    write_file(directory / name, read_file(other / name));
    check("the file belongs to another set");
    write_file(directory / name, files.at(name));
    CHECK(same(read_coincidences(directory / "r.plm"), pairs(set_records)));
}

TEST_CASE("Damage in one file of a set costs no other block", "[listmode][set]") {
    const TemporaryDirectory directory;
    const auto files = write_set(directory);
    std::mt19937 random(9);
    for (int round = 0; round < 100; ++round) {
        const std::string name = "r." + std::to_string(random() % 3 + 1) + ".plm";
        std::string content = files.at(name);
        const std::size_t at = 4096 + random() % (content.size() - 4096);
        content[at] = static_cast<char>(content[at] ^ (1 << random() % 8));
        write_file(directory / name, content);
        const FoundRecords found = read_what_is_there(directory / "r.plm");
        CAPTURE(name, at, found.condition.summary());
        CHECK(found.condition.state != FileState::complete);
        CHECK(found.records.size() >= set_records - 4);
        CHECK(found.condition.missing_records == set_records - found.records.size());
        write_file(directory / name, files.at(name));
    }
}

TEST_CASE("A file of a set by another name is refused", "[listmode][set]") {
    const TemporaryDirectory directory;
    write_set(directory);
    std::filesystem::rename(directory / "r.2.plm", directory / "other.plm");
    CHECK_THROWS_AS(ListModeReader(directory / "other.plm"), NotListMode);
    CHECK_THROWS_AS(ListModeReader(directory / "none.plm"), std::system_error);
}
