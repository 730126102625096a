#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <random>
#include <system_error>

#include "daemon/listmode/crc32c.hpp"
#include "daemon/listmode/file.hpp"
#include "daemon/listmode/reader.hpp"
#include "daemon/listmode/writer.hpp"
#include "tests/daemon/listmode/set_support.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;

namespace {

constexpr std::size_t header_bytes = 4096;

// Blocks of 2, 2, 2 and 1 records: 128, 128, 128 and 96 bytes.
std::string small_file(const TemporaryDirectory& directory) {
    const auto file = directory / "whole.plm";
    if (!std::filesystem::exists(file)) {
        ListModeOptions options;
        options.block_bytes = 128;
        options.queue_blocks = 2;
        options.sync_interval_ms = 3'600'000;
        ListModeWriter(file, options).append(pairs(7));
    }
    return read_file(file);
}

FoundRecords read_text(const TemporaryDirectory& directory, const std::string& contents) {
    const auto file = directory / "changed.plm";
    write_file(file, contents);
    return read_what_is_there(file);
}

std::string refusal_of(const std::filesystem::path& file) {
    try {
        const ListModeReader reader(file);
    } catch (const NotListMode& error) {
        return error.what();
    }
    return "not refused";
}

// Whether the records found are the original ones, with some missing.
bool are_some_of(const gpu::RecordVector<gpu::Coincidence>& some,
                 const gpu::RecordVector<gpu::Coincidence>& all) {
    auto from = all.begin();
    for (const auto& record : some) {
        from = std::find_if(from, all.end(), [&](const auto& other) { return same(record, other); });
        if (from == all.end()) return false;
        ++from;
    }
    return true;
}

}  // namespace

TEST_CASE("A file cut off at any byte gives every whole block", "[listmode]") {
    const TemporaryDirectory directory;
    const std::string whole = small_file(directory);
    const std::vector<std::size_t> ends = {header_bytes + 128, header_bytes + 256, header_bytes + 384,
                                           header_bytes + 480};
    REQUIRE(whole.size() == ends.back() + 4 * 32 + 64);
    const auto file = directory / "cut.plm";
    write_file(file, whole);
    for (std::size_t size = whole.size(); size-- > 0;) {
        std::filesystem::resize_file(file, size);
        if (size < header_bytes) {
            if (refusal_of(file).find("cut.plm") == std::string::npos) FAIL("accepted at " << size);
            continue;
        }
        const FoundRecords found = read_what_is_there(file);
        std::uint64_t blocks = 0;
        std::size_t last_end = header_bytes;
        for (const std::size_t end : ends) {
            if (end <= size) {
                ++blocks;
                last_end = end;
            }
        }
        CAPTURE(size, found.condition.summary());
        if (found.condition.state != FileState::truncated || found.condition.blocks != blocks ||
            found.condition.tail_bytes != size - last_end ||
            !same(found.records, pairs(std::min<std::uint64_t>(7, 2 * blocks)))) {
            FAIL("wrong answer");
        }
    }
}

TEST_CASE("No flipped bit goes unnoticed, and it costs no other block", "[listmode]") {
    const TemporaryDirectory directory;
    std::string bytes = small_file(directory);
    const auto all = pairs(7);
    const auto file = directory / "flipped.plm";
    write_file(file, bytes);
    const int handle = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
    REQUIRE(handle >= 0);
    std::mt19937 random(7);
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        const char good = bytes[at];
        const char bad = static_cast<char>(good ^ static_cast<char>(1U << (random() % 8)));
        REQUIRE(::pwrite(handle, &bad, 1, static_cast<off_t>(at)) == 1);
        CAPTURE(at);
        if (at < header_bytes) {
            if (refusal_of(file) == "not refused") FAIL("flip in the header not noticed");
        } else {
            const FoundRecords found = read_what_is_there(file);
            if (found.condition.state == FileState::complete) FAIL("flip not noticed");
            if (!are_some_of(found.records, all)) FAIL("records that were never written");
            if (found.condition.blocks < 3) FAIL("more than one block lost");
            if (at >= header_bytes + 480 && found.condition.blocks != 4)
                FAIL("a flip behind the blocks lost one");
        }
        REQUIRE(::pwrite(handle, &good, 1, static_cast<off_t>(at)) == 1);
    }
    ::close(handle);
    CHECK(read_what_is_there(file).condition.state == FileState::complete);
}

TEST_CASE("Damage is named by block, offset and missing records", "[listmode]") {
    const TemporaryDirectory directory;
    const std::string whole = small_file(directory);

    SECTION("a block whose records are wrong") {
        std::string bytes = whole;
        bytes[header_bytes + 128 + 70] ^= 1;
        const FoundRecords found = read_text(directory, bytes);
        CHECK(found.condition.state == FileState::damaged);
        REQUIRE(found.condition.damage.size() == 1);
        CHECK(found.condition.damage[0].block == 1);
        CHECK(found.condition.damage[0].offset == header_bytes + 128);
        CHECK(found.condition.damage[0].bytes == 128);
        CHECK(found.condition.damage[0].what == "block 1 with a wrong CRC");
        CHECK(found.condition.missing_records == 2);
        CHECK(found.records.size() == 5);
    }
    SECTION("the last block") {
        std::string bytes = whole;
        bytes[header_bytes + 384 + 3] ^= 1;
        const FoundRecords found = read_text(directory, bytes);
        CHECK(found.condition.state == FileState::damaged);
        CHECK(found.condition.damage[0].what == "no block header");
        CHECK(found.condition.missing_records == 1);
        CHECK(same(found.records, pairs(6)));
    }
    SECTION("a block cut out") {
        const FoundRecords found =
            read_text(directory, whole.substr(0, header_bytes + 128) + whole.substr(header_bytes + 256));
        CHECK(found.condition.state == FileState::damaged);
        CHECK(found.condition.damage[0].what == "block 2 where block 1 was expected");
        CHECK(found.condition.missing_records == 2);
        CHECK(found.records.size() == 5);
    }
    SECTION("a few bytes cut out: blocks need not lie where they were") {
        const FoundRecords found =
            read_text(directory, whole.substr(0, header_bytes + 150) + whole.substr(header_bytes + 157));
        CHECK(found.condition.state == FileState::damaged);
        CHECK(found.condition.missing_records == 2);
        CHECK(found.records.size() == 5);
    }
    SECTION("foreign bytes between blocks") {
        const FoundRecords found =
            read_text(directory, whole.substr(0, header_bytes + 256) + std::string(3'000'000, 'x') +
                                     whole.substr(header_bytes + 256));
        CHECK(found.condition.state == FileState::damaged);
        CHECK(found.condition.missing_records == 0);
        CHECK(found.condition.damage[0].bytes == 3'000'000);
        CHECK(same(found.records, pairs(7)));
    }
    SECTION("a block twice") {
        const FoundRecords found =
            read_text(directory, whole.substr(0, header_bytes + 256) + whole.substr(header_bytes + 128));
        CHECK(found.condition.state == FileState::damaged);
        CHECK(found.condition.damage[0].what == "block 1 again");
        CHECK(same(found.records, pairs(7)));
    }
    SECTION("something behind the end") {
        const FoundRecords found = read_text(directory, whole + "more");
        CHECK(found.condition.state == FileState::truncated);
        CHECK(found.condition.tail_bytes == 4 * 32 + 64 + 4);
        CHECK(same(found.records, pairs(7)));
    }
    SECTION("a tail of zeros, as after a power cut") {
        const FoundRecords found =
            read_text(directory, whole.substr(0, header_bytes + 256) + std::string(5000, '\0'));
        CHECK(found.condition.state == FileState::truncated);
        CHECK(found.condition.tail_bytes == 5000);
        CHECK(same(found.records, pairs(4)));
    }
}

TEST_CASE("Block headers with a right CRC and wrong content are refused", "[listmode]") {
    const TemporaryDirectory directory;
    const std::string whole = small_file(directory);
    const auto with_header = [&](auto change) {
        std::string bytes = whole;
        BlockHeader header;
        std::memcpy(&header, bytes.data() + header_bytes, sizeof header);
        change(header);
        seal(header);
        std::memcpy(bytes.data() + header_bytes, &header, sizeof header);
        return read_text(directory, bytes);
    };
    CHECK(with_header([](BlockHeader&) {}).condition.state == FileState::complete);
    const std::vector<FoundRecords> lies = {
        with_header([](BlockHeader& h) { h.records = UINT32_MAX; }),
        with_header([](BlockHeader& h) { h.records = 0; }),
        with_header([](BlockHeader& h) { h.record_bytes = 16; }),
        with_header([](BlockHeader& h) { h.records = 1; }),
        with_header([](BlockHeader& h) { h.number = UINT64_MAX; }),
        with_header([](BlockHeader& h) { h.first_record = UINT64_MAX; }),
        with_header([](BlockHeader& h) { h.first_time = 0; }),
        with_header([](BlockHeader& h) { h.last_time = UINT64_MAX; }),
    };
    for (const FoundRecords& lie : lies) {
        CHECK(lie.condition.state == FileState::damaged);
        CHECK(are_some_of(lie.records, pairs(7)));
    }
}

TEST_CASE("Garbage is refused or read as damaged", "[listmode]") {
    const TemporaryDirectory directory;
    const std::string whole = small_file(directory);
    std::minstd_rand random(3);
    for (int round = 0; round < 300; ++round) {
        // A sound header, then pieces of blocks and noise.
        std::string bytes = whole.substr(0, header_bytes);
        for (auto piece = random() % 6; piece > 0; --piece) {
            const std::size_t from = header_bytes + random() % (whole.size() - header_bytes);
            bytes += whole.substr(from, random() % 300);
            for (auto n = random() % 20; n > 0; --n)
                bytes += static_cast<char>(random());
        }
        const FoundRecords found = read_text(directory, bytes);
        if (!are_some_of(found.records, pairs(7))) FAIL("records that were never written");
    }
}

TEST_CASE("Foreign files are refused by name and reason", "[listmode]") {
    const TemporaryDirectory directory;
    const auto file = directory / "foreign.plm";
    const auto refusal = [&](const std::string& contents) {
        write_file(file, contents);
        return refusal_of(file);
    };
    CHECK_THAT(refusal(""), contains("foreign.plm") && contains("empty"));
    CHECK_THAT(refusal("kind,time\n"), contains("does not begin with \"PETACQLM\""));
    CHECK_THAT(refusal("PETACQLM"), contains("cut off"));
    CHECK_THAT(refusal_of(directory.path()), contains("not a regular file"));
    CHECK_THROWS_AS(ListModeReader(directory / "absent.plm"), std::system_error);

    const auto with_header = [&](auto change, const std::string& text = "{}") {
        std::string bytes(header_bytes, '\0');
        FileHeader header;
        header.header_bytes = header_bytes;
        header.record_bytes = 32;
        header.block_bytes = 128;
        header.description_bytes = static_cast<std::uint32_t>(text.size());
        std::memcpy(bytes.data() + sizeof header, text.data(), text.size());
        header.description_crc = crc32c(std::as_bytes(std::span(bytes)).subspan(sizeof header));
        change(header);
        seal(header);
        std::memcpy(bytes.data(), &header, sizeof header);
        return refusal(bytes);
    };
    CHECK(with_header([](FileHeader&) {}) == "not refused");
    CHECK_THAT(with_header([](FileHeader& h) { h.version = 4; }),
               contains("version 4, expected version 1 to 3"));
    CHECK_THAT(with_header([](FileHeader& h) { h.kind = RecordKind{4}; }), contains("invalid values"));
    CHECK_THAT(with_header([](FileHeader& h) { h.record_bytes = 0; }), contains("invalid values"));
    CHECK_THAT(with_header([](FileHeader& h) { h.header_bytes = 0; }), contains("invalid values"));
    CHECK_THAT(with_header([](FileHeader& h) { h.header_bytes = 8192; }), contains("cut off"));
    CHECK_THAT(with_header([](FileHeader& h) { h.block_bytes = 1; }), contains("invalid values"));
    CHECK_THAT(with_header([](FileHeader& h) { h.block_bytes = UINT32_MAX; }), contains("invalid values"));
    CHECK_THAT(with_header([](FileHeader& h) { h.description_bytes = UINT32_MAX; }),
               contains("invalid values"));
    CHECK_THAT(with_header([](FileHeader& h) { h.description_crc ^= 1U; }), contains("description is wrong"));
    const auto keep = [](FileHeader&) {};
    CHECK_THAT(with_header(keep, "[1]"), contains("not a JSON object"));
    CHECK_THAT(with_header(keep, "{\"a\":"), contains("not a JSON object"));
    CHECK_THAT(with_header(keep, "{\"a\":" + std::string(3000, '[')), contains("nested too deeply"));
}

TEST_CASE("A trailer that contradicts the index is ignored", "[listmode]") {
    const TemporaryDirectory directory;
    const std::string whole = small_file(directory);
    const auto with_trailer = [&](auto change) {
        std::string bytes = whole;
        Trailer trailer;
        std::memcpy(&trailer, bytes.data() + bytes.size() - sizeof trailer, sizeof trailer);
        change(trailer);
        seal(trailer);
        std::memcpy(bytes.data() + bytes.size() - sizeof trailer, &trailer, sizeof trailer);
        return read_text(directory, bytes).condition;
    };
    CHECK(with_trailer([](Trailer&) {}).state == FileState::complete);
    CHECK(with_trailer([](Trailer& t) { t.blocks = UINT64_MAX; }).state == FileState::truncated);
    CHECK(with_trailer([](Trailer& t) { t.index_offset = UINT64_MAX; }).state == FileState::truncated);
    CHECK(with_trailer([](Trailer& t) { t.index_offset = 0; }).state == FileState::truncated);
    CHECK(with_trailer([](Trailer& t) { t.index_crc ^= 1U; }).state == FileState::truncated);
    CHECK(with_trailer([](Trailer& t) { t.records = 8; }).state == FileState::damaged);
    CHECK(with_trailer([](Trailer& t) { t.payload_crc ^= 1U; }).state == FileState::damaged);
}

TEST_CASE("A killed program leaves every whole block", "[listmode]") {
    const TemporaryDirectory directory;
    const auto file = directory / "killed.plm";
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        ListModeOptions options;
        options.block_bytes = 4096;
        options.queue_blocks = 4;
        options.sync_interval_ms = 5;
        ListModeWriter writer(file, options);
        for (std::uint64_t i = 0;; i += 50)
            writer.append(pairs(50, i));
    }
    const auto has_grown = [&] {
        std::error_code ignored;
        const auto size = std::filesystem::file_size(file, ignored);
        return !ignored && size > 200'000;
    };
    const bool grown = eventually(has_grown);
    ::kill(child, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(grown);
    CHECK(WIFSIGNALED(status));

    const FoundRecords found = read_what_is_there(file);
    CHECK(found.condition.state == FileState::truncated);
    CHECK(found.condition.tail_bytes < 4096);
    CHECK(found.records.size() > 5000);
    CHECK(same(found.records, pairs(found.records.size())));
}
