// Compressed blocks: the same records, and the same guarantees for cut and damaged files.
#include "daemon/listmode/compression.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <random>

#include "tests/daemon/listmode/set_support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/read_listmode.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;

namespace {

std::string write_compressed(const std::filesystem::path& file,
                             const gpu::RecordVector<gpu::Coincidence>& records, std::uint32_t block_bytes) {
    ListModeOptions options = set_options(1, block_bytes);
    options.compression = config::Compression::zstd;
    ListModeWriter writer(file, options);
    writer.append(std::vector(records));
    REQUIRE(writer.finish().written == records.size());
    return read_file(file);
}

}  // namespace

TEST_CASE("What was compressed comes back, in however many stretches it was", "[listmode][compression]") {
    std::mt19937 random(1);
    for (const std::uint32_t record_bytes : {16U, 32U}) {
        BlockCompressor compressor(record_bytes);
        BlockDecompressor decompressor;
        for (int round = 0; round < 200; ++round) {
            std::vector<std::byte> records(record_bytes * (1 + random() % 1000));
            for (std::byte& byte : records)
                byte = static_cast<std::byte>(random() % (round % 7 + 1));
            std::vector<std::span<const std::byte>> stretches;
            for (std::span<const std::byte> rest(records); !rest.empty();) {
                const std::size_t some = record_bytes * (1 + random() % (rest.size() / record_bytes));
                stretches.push_back(rest.first(some));
                rest = rest.subspan(some);
            }
            const auto compressed = compressor.compress(stretches);
            if (compressed.empty()) continue;  // a few records
            CHECK(compressed.size() < records.size());
            std::vector<std::byte> back(records.size());
            CHECK(decompressor.decompress(compressed, record_bytes, back));
            CHECK(back == records);
            CHECK_FALSE(decompressor.decompress(compressed.first(compressed.size() - 1), record_bytes, back));
            back.resize(records.size() - record_bytes);
            CHECK_FALSE(decompressor.decompress(compressed, record_bytes, back));
        }
    }
}

TEST_CASE("A compressed file has the payload of a plain one", "[listmode][compression]") {
    const TemporaryDirectory directory;
    const auto all = pairs(5000);
    write_compressed(directory / "c.plm", all, 4096);
    ListModeWriter plain(directory / "p.plm", set_options(1, 4096));
    plain.append(std::vector(all));
    plain.finish();
    const ListModeReader compressed(directory / "c.plm");
    CHECK(compressed.header().version == 2);
    CHECK(compressed.trailer()->payload_crc == ListModeReader(directory / "p.plm").trailer()->payload_crc);
    CHECK(compressed.file_bytes() < std::filesystem::file_size(directory / "p.plm") / 2);
    CHECK(same(read_coincidences(directory / "c.plm"), all));
}

TEST_CASE("Records that do not become smaller are stored as they are", "[listmode][compression]") {
    const TemporaryDirectory directory;
    std::mt19937_64 random(2);
    gpu::RecordVector<gpu::Coincidence> noise(100, gpu::Coincidence{});
    for (auto& c : noise) {
        std::array<std::uint64_t, sizeof c / 8> words{};
        for (auto& word : words)
            word = random();
        std::memcpy(static_cast<void*>(&c), words.data(), sizeof c);
        c.energy_a = c.energy_b = 1;  // not NaN, which is not equal to itself
    }
    noise.resize(2);  // zstd finds nothing in so few
    const std::string bytes = write_compressed(directory / "n.plm", noise, 4096);
    CHECK(bytes.size() == 4096 + 64 + 2 * 32 + 32 + 64);
    CHECK(same(read_coincidences(directory / "n.plm"), noise));
}

TEST_CASE("A compressed file that is cut or damaged gives every whole block", "[listmode][compression]") {
    const TemporaryDirectory directory;
    const auto all = pairs(500);
    const std::string whole = write_compressed(directory / "c.plm", all, 4096);
    std::vector<std::uint64_t> ends;
    {
        ListModeReader reader(directory / "c.plm");
        while (reader.next())
            ends.push_back(reader.bytes_done());
    }
    REQUIRE(ends.size() == 4);
    const auto file = directory / "x.plm";
    for (std::size_t size = 4096; size < whole.size(); size += 7) {
        write_file(file, whole.substr(0, size));
        const auto blocks = static_cast<std::uint64_t>(
            std::count_if(ends.begin(), ends.end(), [&](std::uint64_t end) { return end <= size; }));
        const FoundRecords found = read_what_is_there(file);
        if (found.condition.state != FileState::truncated || found.condition.blocks != blocks ||
            !same(found.records, pairs(std::min<std::uint64_t>(500, 126 * blocks))))
            FAIL("cut at " << size << ": " << found.condition.summary());
    }
    write_file(file, whole);
    const int handle = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
    REQUIRE(handle >= 0);
    for (std::size_t at = 4096; at < whole.size(); ++at) {
        const char bad = static_cast<char>(whole[at] ^ (1 << at % 8));
        REQUIRE(::pwrite(handle, &bad, 1, static_cast<off_t>(at)) == 1);
        const FoundRecords found = read_what_is_there(file);
        // zstd ignores a few bits: then the records are right all the same.
        const bool harmless = found.condition.state == FileState::complete && same(found.records, all) &&
                              found.records.size() == all.size();
        if (!harmless && (found.condition.state == FileState::complete || found.condition.blocks < 3))
            FAIL("flip at " << at << ": " << found.condition.summary());
        REQUIRE(::pwrite(handle, &whole[at], 1, static_cast<off_t>(at)) == 1);
    }
    ::close(handle);
}
