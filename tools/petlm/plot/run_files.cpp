#include "tools/petlm/plot/run_files.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "config/base/error.hpp"
#include "config/base/json_file.hpp"
#include "config/energy_bins.hpp"
#include "daemon/run/directory.hpp"
#include "daemon/system/progress_line.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/record_source.hpp"

namespace petacq::petlm {
namespace {

Counts numbers_of(const nlohmann::json& numbers, std::size_t expected, const std::string& what) {
    const bool all = numbers.is_array() && numbers.size() == expected &&
                     std::all_of(numbers.begin(), numbers.end(),
                                 [](const nlohmann::json& n) { return n.is_number_unsigned(); });
    if (!all) throw BadInput(what + ": expected " + std::to_string(expected) + " counts");
    return numbers.get<Counts>();
}

Singles from_histograms(const std::filesystem::path& file, const config::Scanner& scanner) {
    const auto document = [&] {
        try {
            return config::read_json_file(file, config::max_run_json_bytes);
        } catch (const config::Error& error) {
            throw BadInput(error.what());
        }
    }();
    if (!document.is_object() || !document.contains("crystals") || !document.contains("energy")) {
        throw BadInput(file.string() + ": not the histograms of a run");
    }
    Singles singles;
    singles.from = file.filename().string();
    singles.all_energies = true;
    singles.crystals =
        numbers_of(document["crystals"], scanner.geometry.crystal_count(), file.string() + ": crystals");
    const auto& energy = document["energy"];
    const nlohmann::json width = document.value("energy_bin_keV", nlohmann::json());
    if (!width.is_number() || width <= 0)
        throw BadInput(file.string() + ": energy_bin_keV: expected a width above 0");
    singles.energy_bin_keV = width.get<float>();
    if (!energy.is_array() || energy.size() != scanner.geometry.bdm_count) {
        throw BadInput(file.string() + ": energy: expected spectra of " +
                       std::to_string(scanner.geometry.bdm_count) + " BDMs");
    }
    singles.energy.resize(config::energy_bins);
    for (const auto& module : energy) {
        const Counts counts = numbers_of(module, config::energy_bins, file.string() + ": energy");
        for (std::size_t bin = 0; bin < counts.size(); ++bin)
            singles.energy[bin] += counts[bin];
        singles.modules.push_back(counts);
    }
    return singles;
}

/// In one file, or in parts.
bool has_records(const std::filesystem::path& run, const std::filesystem::path& file) {
    return std::filesystem::exists(run / file) ||
           std::filesystem::exists(run / (file.stem().string() + "-0001.plm"));
}

Singles from_records(const std::filesystem::path& run, const config::Scanner& scanner) {
    RecordSource source(run, daemon::RecordKind::singles);
    Singles singles;
    singles.from = "singles.plm";
    const auto& gammas = source.coverage().rules.gammas;
    singles.energy_bin_keV = gammas ? config::singles_bin_keV(gammas->upper_keV) : config::energy_bin_keV;
    singles.energy.resize(config::energy_bins);
    singles.crystals.resize(scanner.geometry.crystal_count());
    singles.modules.assign(scanner.geometry.bdm_count, Counts(config::energy_bins));
    const std::vector<std::uint32_t> bdm_of = modules_of_crystals(scanner.geometry);
    daemon::ProgressLine progress("plotting singles", source.total_bytes());
    while (source.next()) {
        for (const gpu::Single& single : source.reader().singles()) {
            if (single.crystal >= singles.crystals.size()) {
                throw BadInput(source.reader().path().string() + ": a single of crystal " +
                               std::to_string(single.crystal) + ", the scanner has " +
                               std::to_string(singles.crystals.size()));
            }
            ++singles.crystals[single.crystal];
            const std::uint32_t bin = energy_bin(single.energy, singles.energy_bin_keV);
            ++singles.energy[bin];
            ++singles.modules[bdm_of[single.crystal]][bin];
        }
        progress.show(source.bytes_done());
    }
    return singles;
}

}  // namespace

std::optional<Singles> singles_of(const std::filesystem::path& run, const config::Scanner& scanner) {
    const auto histograms = run / daemon::histograms_file;
    if (std::filesystem::exists(histograms)) return from_histograms(histograms, scanner);
    return has_records(run, daemon::singles_file) ? std::optional(from_records(run, scanner)) : std::nullopt;
}

std::optional<Triples> triples_of(const std::filesystem::path& run) {
    if (!has_records(run, daemon::triples_file)) return std::nullopt;
    RecordSource source(run, daemon::RecordKind::triples);
    const auto& rules = source.coverage().rules.gammas;
    if (!rules) return std::nullopt;
    Triples triples{*rules, sinogram::GammaHistograms(*rules)};
    daemon::ProgressLine progress("plotting triples", source.total_bytes());
    while (source.next()) {
        triples.histograms.add(source.reader().triples());
        progress.show(source.bytes_done());
    }
    return triples;
}

std::optional<config::Spectra> spectra_of(const std::filesystem::path& run, const config::Scanner& scanner) {
    const auto file = run / daemon::spectra_file;
    if (!std::filesystem::exists(file)) return std::nullopt;
    try {
        return config::load_spectra(file, scanner.geometry);
    } catch (const config::Error& error) {
        throw BadInput(error.what());
    }
}

}  // namespace petacq::petlm
