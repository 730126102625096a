// The exports of petlm against a plain copy of the same list-mode file.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "config/error.hpp"
#include "config/scanner.hpp"
#include "daemon/listmode_writer.hpp"
#include "tools/petbench/suites.hpp"
#include "tools/petlm/export.hpp"

namespace petacq::bench {
namespace {

struct ExportSuite {
    std::string directory = ".";
    std::string scanner;
    double millions = 20;
    int rounds = 3;
};

/// Gone at the end, whatever happens.
struct ScratchDirectory {
    std::filesystem::path path;
    explicit ScratchDirectory(std::filesystem::path where) : path(std::move(where)) {
        std::filesystem::create_directory(path);
    }
    ~ScratchDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
    ScratchDirectory(const ScratchDirectory&) = delete;
    ScratchDirectory& operator=(const ScratchDirectory&) = delete;
};

/// Records as a scanner makes them, as far as their digits and their compression go; 3 % are delayeds.
void write_input(const std::filesystem::path& file, const config::Scanner& scanner, std::uint64_t count) {
    daemon::ListModeOptions options;
    options.description = {{"tick_ps", scanner.tick_ps}, {"crystals", scanner.geometry.crystal_count()}};
    daemon::ListModeWriter writer(file, options);
    std::vector<gpu::Coincidence> slice(20'000);
    std::uint64_t time = 1'000'000'000;
    std::uint64_t random = 88'172'645'463'325'252;
    for (std::uint64_t done = 0; done < count; done += slice.size()) {
        for (auto& c : slice) {
            random ^= random << 13U;
            random ^= random >> 7U;
            random ^= random << 17U;
            c.time = time += random % 20'000;
            c.dt = static_cast<std::uint32_t>(random >> 20U) % 100;
            c.crystal_a = static_cast<std::uint32_t>(random >> 32U) % scanner.geometry.crystal_count();
            c.crystal_b = static_cast<std::uint32_t>(random >> 8U) % scanner.geometry.crystal_count();
            c.energy_a = 400 + static_cast<float>(random >> 40U & 0x3FFFU) * 0.0127F;
            c.energy_b = 400 + static_cast<float>(random >> 50U & 0x3FFFU) * 0.0127F;
            c.kind = random % 32 == 0 ? gpu::Kind::delayed : gpu::Kind::prompt;
        }
        writer.append(slice);
    }
    writer.finish();
    if (!writer.failure().empty()) throw config::IoError(writer.failure());
}

void measure(const ExportSuite& suite) {
    const ScratchDirectory scratch(std::filesystem::path(suite.directory) /
                                   ("petbench-export-" + std::to_string(getpid())));
    const auto input = scratch.path / "input.plm";
    const auto count = static_cast<std::uint64_t>(suite.millions * 50) * 20'000;
    write_input(input, config::load_scanner(suite.scanner), count);
    std::printf("%.1f million coincidences, %.2f GB in the page cache; rounds interleaved; not synced\n",
                static_cast<double>(count) / 1e6, static_cast<double>(count) * 32 / 1e9);
    const std::vector<std::string> formats = {"copy",       "castor", "castor+tof", "stir",
                                              "coinstruct", "csv",    "hdf5"};
    std::vector<std::vector<double>> seconds(formats.size());
    std::vector<std::vector<double>> cpu(formats.size());
    for (int round = 0; round < suite.rounds; ++round) {
        for (std::size_t f = 0; f < formats.size(); ++f) {
            const auto output = scratch.path / "output";
            petlm::ExportOptions options;
            options.format = formats[f].substr(0, formats[f].find('+'));
            options.target = input;
            options.output = output;
            if (options.format == "castor" || options.format == "stir") options.scanner = suite.scanner;
            if (formats[f] == "castor+tof") options.tof_resolution_ps = 200;
            const double cpu_before = cpu_seconds();
            seconds[f].push_back(seconds_of([&] {
                if (f == 0) {
                    std::filesystem::copy_file(input, output);
                } else {
                    petlm::export_quietly(options);
                }
            }));
            cpu[f].push_back(cpu_seconds() - cpu_before);
            for (const char* name : {"output", "output.delayeds", "output.README.txt"})
                std::filesystem::remove_all(scratch.path / name);
        }
    }
    const double copy = median(seconds[0]);
    for (std::size_t f = 0; f < formats.size(); ++f) {
        const double s = median(seconds[f]);
        const double millions = static_cast<double>(count) / 1e6;
        std::printf(
            "%-12s %8.2f s  %8.2f million events/s   %.2f of the copy   %8.2f million events per CPU "
            "second\n",
            formats[f].c_str(), s, millions / s, copy / s, millions / median(cpu[f]));
    }
}

}  // namespace

void add_export_suite(CLI::App& app) {
    auto options = std::make_shared<ExportSuite>();
    auto* suite = app.add_subcommand("export", "Exports of petlm against a plain copy");
    suite->add_option("--dir", options->directory, "Directory to write to")
        ->check(CLI::ExistingDirectory)
        ->capture_default_str();
    suite->add_option("--scanner", options->scanner, "Scanner description")->required();
    suite->add_option("--millions", options->millions, "Coincidences")
        ->check(CLI::Range(0.02, 100'000.0))
        ->capture_default_str();
    suite->add_option("--rounds", options->rounds, "Rounds")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    suite->callback([options] { measure(*options); });
}

}  // namespace petacq::bench
