// The list-mode writer against dd with the same block size, and the CRC alone.
#include <spawn.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "config/error.hpp"
#include "daemon/listmode/crc32c.hpp"
#include "daemon/listmode/writer.hpp"
#include "tools/petbench/measure.hpp"
#include "tools/petbench/scratch_directory.hpp"
#include "tools/petbench/suites.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration): some headers leave it out

namespace petacq::bench {
namespace {

// About as many records as the pipeline hands over at a time.
std::vector<gpu::Coincidence> one_slice() {
    std::vector<gpu::Coincidence> records(20'000);
    for (std::size_t i = 0; i < records.size(); ++i) {
        records[i].time = 1000 * i;
        records[i].crystal_a = static_cast<std::uint32_t>(i * 2'654'435'761U % 30'000);
        records[i].crystal_b = static_cast<std::uint32_t>(i * 40'503U % 30'000);
        records[i].energy_a = 511;
        records[i].energy_b = 500;
    }
    return records;
}

void write_records(const std::filesystem::path& path, const WriterSuite& options, std::uint64_t bytes) {
    daemon::ListModeOptions listmode;
    listmode.block_bytes = options.block_bytes;
    listmode.queue_blocks = options.queue_blocks;
    daemon::ListModeWriter writer(path, listmode);
    const auto slice = one_slice();
    const std::uint64_t slice_bytes = slice.size() * sizeof slice[0];
    for (std::uint64_t done = 0; done < bytes; done += slice_bytes)
        writer.append(slice);
    writer.finish();
    if (!writer.failure().empty()) throw config::IoError(writer.failure());
}

void run_dd(const std::filesystem::path& path, const WriterSuite& options, std::uint64_t bytes) {
    std::vector<std::string> words = {"dd",
                                      "if=/dev/zero",
                                      "of=" + path.string(),
                                      "bs=" + std::to_string(options.block_bytes),
                                      "count=" + std::to_string(bytes / options.block_bytes),
                                      "conv=fdatasync",
                                      "status=none"};
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (auto& word : words)
        arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_t child = -1;
    if (posix_spawnp(&child, "dd", nullptr, nullptr, arguments.data(), environ) != 0) {
        throw config::IoError("dd cannot be started");
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) throw config::IoError("dd failed");
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

}  // namespace

void run(const WriterSuite& suite) {
    const auto bytes = static_cast<std::uint64_t>(suite.gigabytes * 1e9);
    const double megabytes = static_cast<double>(bytes) / 1e6;
    const ScratchDirectory scratch(suite.directory, "writer");
    const std::filesystem::path file = scratch.path() / "output";
    measure_crc(suite.block_bytes);
    std::printf("%.2f GB in %u byte blocks to %s, synced at the end; rounds interleaved\n", suite.gigabytes,
                suite.block_bytes, suite.directory.c_str());
    std::vector<Candidate> candidates = {{"dd"}, {"writer"}};
    Candidate& dd = candidates[0];
    Candidate& writer = candidates[1];
    for (int round = 0; round < suite.rounds; ++round) {
        writer.measure([&] { write_records(file, suite, bytes); });
        std::filesystem::remove(file);
        dd.measure([&] { run_dd(file, suite, bytes); });
        std::filesystem::remove(file);
        std::printf("round %d      writer %8.1f MB/s   dd %8.1f MB/s\n", round + 1,
                    megabytes / writer.seconds.back(), megabytes / dd.seconds.back());
        std::fflush(stdout);
    }
    print_comparison(candidates, megabytes, "MB");
}

}  // namespace petacq::bench
