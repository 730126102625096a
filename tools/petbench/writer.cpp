// The list-mode writer against dd with the same block size, and the CRC alone.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "config/error.hpp"
#include "daemon/crc32c.hpp"
#include "daemon/listmode_writer.hpp"
#include "tools/petbench/suites.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration): some headers leave it out

namespace petacq::bench {
namespace {

struct WriterOptions {
    std::string directory = ".";
    double gigabytes = 2;
    std::uint32_t block_bytes = 1U << 20;
    std::uint32_t queue_blocks = 64;
    int rounds = 5;
};

/// Gone at the end, whatever happens.
struct ScratchFile {
    std::filesystem::path path;
    explicit ScratchFile(std::filesystem::path where) : path(std::move(where)) { remove(); }
    ~ScratchFile() { remove(); }
    ScratchFile(const ScratchFile&) = delete;
    ScratchFile& operator=(const ScratchFile&) = delete;
    void remove() const {
        std::error_code ignored;
        std::filesystem::remove(path, ignored);
    }
};

// What the pipeline hands over at a time is about this much.
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

void write_records(const std::filesystem::path& path, const WriterOptions& options, std::uint64_t bytes) {
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

void run_dd(const std::filesystem::path& path, const WriterOptions& options, std::uint64_t bytes) {
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
    const auto rate = [&](auto crc) {
        std::uint32_t value = 0;
        std::vector<double> seconds;
        seconds.reserve(5);
        for (int round = 0; round < 5; ++round) {
            seconds.push_back(seconds_of([&] {
                for (int i = 0; i < blocks; ++i)
                    value = crc(std::span<const std::byte>(block), value);
            }));
        }
        // The value is printed, so that the work cannot be left out.
        return std::pair(static_cast<double>(block.size()) * blocks / 1e9 / median(seconds), value);
    };
    const auto [fast, fast_value] = rate(daemon::crc32c);
    const auto [table, table_value] = rate(daemon::crc32c_by_table);
    std::printf("CRC-32C      %7.2f GB/s   by table %.2f GB/s   (one core, %zu byte blocks; %08x %08x)\n",
                fast, table, block.size(), fast_value, table_value);
}

void measure(const WriterOptions& options) {
    const auto bytes = static_cast<std::uint64_t>(options.gigabytes * 1e9);
    const ScratchFile file(std::filesystem::path(options.directory) /
                           ("petbench-writer-" + std::to_string(getpid())));
    measure_crc(options.block_bytes);
    std::printf("%.2f GB in %u byte blocks to %s, synced at the end; rounds interleaved\n", options.gigabytes,
                options.block_bytes, options.directory.c_str());
    const auto rate = [&](double seconds) { return static_cast<double>(bytes) / 1e6 / seconds; };
    std::vector<double> ours;
    std::vector<double> dds;
    for (int round = 0; round < options.rounds; ++round) {
        ours.push_back(seconds_of([&] { write_records(file.path, options, bytes); }));
        file.remove();
        dds.push_back(seconds_of([&] { run_dd(file.path, options, bytes); }));
        file.remove();
        std::printf("round %d      writer %8.1f MB/s   dd %8.1f MB/s\n", round + 1, rate(ours.back()),
                    rate(dds.back()));
        std::fflush(stdout);
    }
    std::printf("median       writer %8.1f MB/s   dd %8.1f MB/s   writer/dd %.2f\n", rate(median(ours)),
                rate(median(dds)), median(dds) / median(ours));
}

}  // namespace

void add_writer_suite(CLI::App& app) {
    auto options = std::make_shared<WriterOptions>();
    auto* suite = app.add_subcommand("writer", "List-mode writer against dd with the same block size");
    suite->add_option("--dir", options->directory, "Directory to write to")
        ->check(CLI::ExistingDirectory)
        ->capture_default_str();
    suite->add_option("--gigabytes", options->gigabytes, "Size of each file")
        ->check(CLI::Range(0.01, 10'000.0))
        ->capture_default_str();
    suite->add_option("--block-bytes", options->block_bytes, "Block size")
        ->check(CLI::Range(4096, 1 << 28))
        ->check([](const std::string& text) {
            std::uint32_t value = 0;
            const bool good = CLI::detail::lexical_cast(text, value) && value % 64 == 0;
            return good ? std::string() : "expected a multiple of 64, found " + text;
        })
        ->capture_default_str();
    suite->add_option("--queue-blocks", options->queue_blocks, "Blocks that may wait")
        ->check(CLI::Range(2, 65536))
        ->capture_default_str();
    suite->add_option("--rounds", options->rounds, "Rounds")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    suite->callback([options] { measure(*options); });
}

}  // namespace petacq::bench
