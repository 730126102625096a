// The list-mode writer against plain writes by as many threads to as many files, and the CRC alone.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "config/base/error.hpp"
#include "daemon/listmode/crc32c.hpp"
#include "daemon/listmode/writer.hpp"
#include "tools/petbench/base/measure.hpp"
#include "tools/petbench/base/scratch_directory.hpp"
#include "tools/petbench/base/suites.hpp"
#include "tools/petbench/pairs.hpp"

namespace petacq::bench {
namespace {

// About as many records as the pipeline hands over at a time.
gpu::RecordVector<gpu::Coincidence> one_slice() {
    gpu::RecordVector<gpu::Coincidence> records(48'000, gpu::Coincidence{});
    MadePairs(30'000).fill(records);
    return records;
}

void write_records(const std::filesystem::path& path, const WriterSuite& options, std::uint32_t files,
                   std::uint64_t bytes, config::Compression compression) {
    daemon::ListModeOptions listmode;
    listmode.compression = compression;
    listmode.block_bytes = options.block_bytes;
    listmode.queue_blocks = options.queue_blocks;
    listmode.files = files;
    daemon::ListModeWriter writer(path, listmode);
    const gpu::RecordVector<gpu::Coincidence> slice = one_slice();
    const std::uint64_t slice_bytes = slice.size() * sizeof slice[0];
    gpu::RecordVector<gpu::Coincidence> records;
    for (std::uint64_t done = 0; done < bytes; done += slice_bytes) {
        // Memory that comes back holds an earlier slice.
        if (records.size() != slice.size()) records = slice;  // NOLINT(bugprone-use-after-move)
        writer.append(std::move(records));
    }
    writer.finish();
    if (!writer.failure().empty()) throw config::IoError(writer.failure());
}

/// Writes without records.
struct PlainWrites {
    /// Written one after the other: a single one stays in the cache, records that were just made do not.
    std::size_t blocks = 1;
    /// Of the block whose CRC is computed right before this piece is written; 0: the block as one, without.
    std::size_t crc_piece = 0;
    bool direct = false;
};

constexpr std::size_t page = 4096;

/// The memory of one thread: blocks of zeros, each on pages of its own.
class Zeros {
  public:
    Zeros(std::size_t block_bytes, std::size_t blocks)
        : block_bytes_(block_bytes),
          step_((block_bytes + page - 1) / page * page),
          memory_(static_cast<std::byte*>(std::aligned_alloc(page, step_ * blocks)), &std::free) {
        if (!memory_) throw std::bad_alloc();
        std::memset(memory_.get(), 0, step_ * blocks);
    }
    [[nodiscard]] std::span<const std::byte> block(std::size_t i) const {
        return {memory_.get() + i * step_, block_bytes_};
    }

  private:
    std::size_t block_bytes_;
    std::size_t step_;
    std::unique_ptr<std::byte, decltype(&std::free)> memory_;
};

/// Throws std::system_error.
void write_zeros(const std::filesystem::path& path, const Zeros& zeros, std::uint64_t bytes,
                 const PlainWrites& how) {
    const auto fail = [&] { throw std::system_error(errno, std::generic_category(), path.string()); };
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-vararg)
    const int file =
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | (how.direct ? O_DIRECT : 0), 0666);
    if (file < 0) fail();
    for (std::uint64_t at = 0, number = 0; at < bytes; ++number) {
        const std::span<const std::byte> block = zeros.block(number % how.blocks);
        const std::size_t most = how.crc_piece != 0 ? how.crc_piece : block.size();
        std::uint32_t crc = 0;
        for (std::size_t from = 0; from < block.size(); from += most) {
            const auto piece = block.subspan(from, std::min(most, block.size() - from));
            if (how.crc_piece != 0) crc = daemon::crc32c(piece, crc);
            const ssize_t wrote = ::pwrite(file, piece.data(), piece.size(), static_cast<off_t>(at));
            if (wrote != static_cast<ssize_t>(piece.size())) fail();
            at += piece.size();
        }
    }
    if (::fdatasync(file) != 0 || ::close(file) != 0) fail();
}

/// A file for each of `zeros`.
void write_plainly(const std::filesystem::path& directory, std::span<const Zeros> zeros, std::uint64_t bytes,
                   const PlainWrites& how) {
    std::vector<std::thread> threads;
    std::vector<std::exception_ptr> failures(zeros.size());
    for (std::size_t i = 0; i < zeros.size(); ++i) {
        threads.emplace_back([&, i] {
            try {
                write_zeros(directory / std::to_string(i), zeros[i], bytes / zeros.size(), how);
            } catch (...) {
                failures[i] = std::current_exception();
            }
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    for (const std::exception_ptr& failure : failures)
        if (failure) std::rethrow_exception(failure);
}

void measure_crc(std::uint32_t block_bytes) {
    const std::vector<std::byte> block(block_bytes, std::byte{0x5A});
    constexpr int blocks = 2000;
    std::uint32_t value = 0;
    std::vector<double> seconds;
    seconds.reserve(5);
    for (int round = 0; round < 5; ++round) {
        seconds.push_back(seconds_of([&] {
            for (int i = 0; i < blocks; ++i)
                value = daemon::crc32c(block, value);
        }));
    }
    // Printing the value keeps the compiler from leaving out the work.
    std::printf("CRC-32C      %7.2f GB/s   (one core, %zu byte blocks; %08x)\n",
                static_cast<double>(block.size()) * blocks / 1e9 / median(seconds), block.size(), value);
}

void empty_directory(const std::filesystem::path& directory) {
    for (const auto& entry : std::filesystem::directory_iterator(directory))
        std::filesystem::remove(entry.path());
}

void compare(const WriterSuite& suite, const std::filesystem::path& directory, std::uint32_t files) {
    const std::uint64_t unit = std::uint64_t{suite.block_bytes} * files;
    const std::uint64_t bytes = static_cast<std::uint64_t>(suite.gigabytes * 1e9) / unit * unit + unit;
    std::vector<Zeros> zeros;
    for (std::uint32_t i = 0; i < files; ++i)
        zeros.emplace_back(suite.block_bytes, suite.queue_blocks);
    using config::Compression;
    struct Way {
        std::string name;
        std::function<void()> work;
    };
    const auto plainly = [&](const PlainWrites& how) {
        return [&, how] { write_plainly(directory, zeros, bytes, how); };
    };
    std::vector<Way> ways = {
        {"plain", plainly({suite.queue_blocks})},
        {"plain, one block", plainly({1})},
        // As the writer does it, and with pieces that stay in the nearest caches.
        {"plain with CRC", plainly({suite.queue_blocks, suite.block_bytes})},
        {"the same, 64 KiB at a time", plainly({suite.queue_blocks, std::size_t{64} << 10})},
        {"writer", [&] { write_records(directory / "r.plm", suite, files, bytes, Compression::none); }},
        {"writer, zstd",
         [&] { write_records(directory / "r.plm", suite, files, bytes, Compression::zstd); }}};
    if (suite.direct) ways.push_back({"plain, O_DIRECT", plainly({1, 0, true})});
    std::vector<Candidate> candidates;
    candidates.reserve(ways.size());
    for (const Way& way : ways)
        candidates.push_back({fmt::format("{} x {}", way.name, files)});
    for (int round = 0; round < suite.rounds; ++round) {
        for (std::size_t i = 0; i < ways.size(); ++i) {
            candidates[i].measure(ways[i].work);
            empty_directory(directory);
        }
    }
    print_comparison(candidates, static_cast<double>(bytes) * 1e-6, "MB");
    std::fflush(stdout);
}

}  // namespace

void run(const WriterSuite& suite) {
    const ScratchDirectory scratch(suite.directory, "writer");
    measure_crc(suite.block_bytes);
    std::printf("%.2f GB in %u byte blocks to %s, synced at the end; rounds interleaved\n", suite.gigabytes,
                suite.block_bytes, suite.directory.c_str());
    for (const std::uint32_t files : suite.files)
        compare(suite, scratch.path(), files);
}

}  // namespace petacq::bench
