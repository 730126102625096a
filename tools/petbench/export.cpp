// The exports of petlm against a plain copy of the same list-mode file.
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "config/base/error.hpp"
#include "config/scanner/scanner.hpp"
#include "daemon/coverage/coverage.hpp"
#include "daemon/listmode/writer.hpp"
#include "tools/petbench/base/measure.hpp"
#include "tools/petbench/base/scratch_directory.hpp"
#include "tools/petbench/base/suites.hpp"
#include "tools/petbench/pairs.hpp"
#include "tools/petlm/export/export.hpp"

namespace petacq::bench {
namespace {

void write_input(const std::filesystem::path& file, const config::Scanner& scanner, std::uint64_t count) {
    daemon::Coverage coverage;
    coverage.tick_ps = scanner.tick_ps;
    coverage.rules.coincidence.emplace();
    coverage.rules.coincidence->window_ticks = 100;
    coverage.rules.coincidence->max_multiplicity = 2;
    coverage.rules.energy = config::Energy{true, 400, 650};
    daemon::ListModeWriter writer(file, {},
                                  {{"tick_ps", scanner.tick_ps},
                                   {"crystals", scanner.geometry.crystal_count()},
                                   {"coverage", daemon::to_json(coverage)}});
    gpu::RecordVector<gpu::Coincidence> slice(20'000, gpu::Coincidence{});
    MadePairs pairs(scanner.geometry.crystal_count());
    for (std::uint64_t done = 0; done < count; done += slice.size()) {
        pairs.fill(slice);
        writer.append(std::vector(slice));
    }
    writer.finish();
    if (!writer.failure().empty()) throw config::IoError(writer.failure());
}

}  // namespace

void run(const ExportSuite& suite) {
    const ScratchDirectory scratch(suite.directory, "export");
    const auto input = scratch.path() / "input.plm";
    const auto output = scratch.path() / "output";
    const auto count = static_cast<std::uint64_t>(suite.millions * 50) * 20'000;
    const double millions = static_cast<double>(count) / 1e6;
    write_input(input, config::load_scanner(suite.scanner), count);
    std::printf("%.1f million coincidences, %.2f GB in the page cache; rounds interleaved; not synced\n",
                millions, static_cast<double>(count) * 32 / 1e9);
    std::vector<Candidate> candidates = {{"copy"},       {"castor"}, {"castor+tof"}, {"stir"},
                                         {"coinstruct"}, {"csv"},    {"hdf5"},       {"petsird"}};
    for (int round = 0; round < suite.rounds; ++round) {
        for (Candidate& c : candidates) {
            petlm::ExportOptions options;
            options.format = c.name.substr(0, c.name.find('+'));
            options.target = input;
            options.output = output;
            if (options.format == "castor" || options.format == "stir" || options.format == "petsird")
                options.scanner = suite.scanner;
            if (c.name == "castor+tof") options.tof_resolution_ps = 200;
            c.measure([&] {
                if (c.name == "copy") {
                    std::filesystem::copy_file(input, output);
                } else {
                    petlm::export_quietly(options);
                }
            });
            for (const char* name : {"output", "output.delayeds", "output.README.txt"})
                std::filesystem::remove_all(scratch.path() / name);
        }
    }
    print_comparison(candidates, millions, "million events");
}

}  // namespace petacq::bench
