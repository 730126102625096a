// Simulated runs whose prompts are labelled with the truth of the simulator, and the results of petlm nema.
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "config/make_calibration.hpp"
#include "config/scanner/rotation.hpp"
#include "config/shape/extent.hpp"
#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"
#include "tools/petlm/nema/line_source.hpp"
#include "tools/petlm/nema/slices.hpp"
#include "tools/petsim/simulation/base/truth.hpp"

namespace petacq::test {

/// `spurious`: of one decay, but not of its two annihilation photons.
enum class Origin : std::uint8_t { genuine, scattered, random, spurious };

struct Labelled {
    gpu::Coincidence pair;
    Origin origin;
};

/// Simulated runs of the small scanner or another one, and what their prompts are.
class Simulated {
  public:
    explicit Simulated(const nlohmann::json& patch = nlohmann::json::object()) : site_(patch) {}
    /// Another scanner, with the calibration that fits.
    void use(const nlohmann::json& scanner) {
        write_file(site_.scanner(), scanner.dump());
        const config::Scanner description = this->scanner();
        config::CalibrationModel model;
        model.time_offset_ticks = 200;
        model.bins = 16;
        config::save_calibration(site_.calibration(), description.geometry,
                                 config::make_calibration(description, model));
    }

    /// Simulates, replays and labels.
    std::vector<Labelled> run(const std::string& name, std::vector<std::string> arguments) {
        const std::string capture = (site_.directory() / (name + ".pcap")).string();
        const std::string truth = (site_.directory() / (name + ".truth")).string();
        for (const std::string& more :
             {std::string("--crystals"), std::string("surface"), std::string("--scanner"), site_.scanner(),
              std::string("--calibration"), site_.calibration(), std::string("--threads"), std::string("2"),
              std::string("--write"), capture, std::string("--truth"), truth})
            arguments.push_back(more);
        const Outcome simulated = run_program(PETSIM_PROGRAM, arguments);
        INFO(simulated.err);
        REQUIRE(simulated.status == 0);
        const Outcome replayed = run_program(
            PETACQD_PROGRAM, {"--config", site_.configuration(), "--replay", capture, "--run", name});
        INFO(replayed.err);
        REQUIRE(replayed.status == 0);
        return label(name, truth);
    }
    /// results.json of a test of runs, or of files by their paths.
    nlohmann::json nema(const std::string& test, const std::vector<std::string>& runs,
                        const std::vector<std::string>& options) {
        std::vector<std::string> arguments = {
            "nema", test, "--force", "--depth-mm", "0", "-o", (site_.directory() / test).string()};
        for (const auto& name : runs)
            arguments.push_back(name.front() == '/' ? name : site_.run(name).string());
        arguments.insert(arguments.end(), options.begin(), options.end());
        const Outcome outcome = run_program(PETLM_PROGRAM, arguments);
        INFO(outcome.out << outcome.err);
        REQUIRE(outcome.status == 0);
        return nlohmann::json::parse(read_file(site_.directory() / test / "results.json"));
    }
    [[nodiscard]] config::Scanner scanner() const { return config::load_scanner(site_.scanner()); }
    [[nodiscard]] std::filesystem::path directory() const { return site_.directory(); }
    [[nodiscard]] std::filesystem::path path(const std::string& run) const { return site_.run(run); }

  private:
    std::vector<Labelled> label(const std::string& name, const std::string& truth_file) {
        std::unordered_map<std::uint64_t, sim::TruthRecord> singles;
        const auto key = [](std::uint64_t time, std::uint32_t crystal) { return time * 65536 + crystal; };
        for (const auto& record : sim::read_truth(truth_file))
            singles[key(record.time, record.crystal)] = record;
        std::vector<Labelled> all;
        for (const auto& pair : coincidences_of(site_.run(name) / "coincidences.plm")) {
            if (pair.kind != gpu::Kind::prompt) continue;
            const auto& a = singles.at(key(pair.time, pair.crystal_a));
            const auto& b = singles.at(key(pair.time + pair.dt, pair.crystal_b));
            const bool same = a.annihilation == b.annihilation && a.annihilation != 0;
            const bool scattered = ((a.flags | b.flags) & sim::truth_scattered) != 0;
            constexpr std::uint8_t which = 3;
            const bool spurious =
                (a.photon & which) == sim::truth_gamma || (b.photon & which) == sim::truth_gamma;
            all.push_back({pair, !same       ? Origin::random
                                 : spurious  ? Origin::spurious
                                 : scattered ? Origin::scattered
                                             : Origin::genuine});
        }
        return all;
    }

    Site site_;
};

/// The columns of a row of a table.
inline std::map<std::string, double> row_of(const nlohmann::json& results, const std::string& table,
                                            std::size_t row) {
    std::map<std::string, double> values;
    const nlohmann::json& columns = results["tables"][table]["columns"];
    const nlohmann::json& cells = results["tables"][table]["rows"][row];
    for (std::size_t i = 0; i < columns.size(); ++i) {
        if (cells[i].is_number()) values[columns[i]] = cells[i];
    }
    return values;
}

/// The prompts by origin, in the slices of the phantom and no further than 8 mm from its edge.
struct InPhantom {
    std::map<Origin, double> counts;
    /// By distance from the true place of the line, in bins half a crystal wide.
    std::map<Origin, std::vector<double>> projections;
    std::vector<std::vector<double>> slices;  ///< [slice] the projection of all prompts

    [[nodiscard]] double all() const {
        double sum = 0;
        for (const auto& [origin, count] : counts)
            sum += count;
        return sum;
    }
};
inline constexpr double bin_mm = 0.8;

/// `radians`: the angle of the scanner at a time.
inline InPhantom in_phantom(
    const config::Scanner& scanner, const std::vector<Labelled>& pairs,
    const std::function<double(std::uint64_t)>& radians = [](std::uint64_t) { return 0.0; }) {
    const auto& phantom = nema::phantom_of(nema::Phantom::mouse);
    const nema::SliceBins bins(scanner, config::DepthOfInteraction::fixed(0),
                               config::extent_of(scanner).transaxial_pitch_mm / 2);
    const auto slices = nema::slices_of(bins, phantom);
    InPhantom in;
    in.slices.assign(slices.to - slices.from, std::vector<double>(201));
    for (const auto& [pair, origin] : pairs) {
        const std::size_t bin = bins.of(pair.crystal_a, pair.crystal_b);
        if (bin == nema::SliceBins::outside) continue;
        const auto column = static_cast<std::uint32_t>(bin % bins.lines().radial());
        const std::size_t slice = bin / bins.in_slice();
        if (slice < slices.from || slice >= slices.to) continue;
        if (std::abs(bins.lines().radial_mm(column)) > phantom.diameter_mm / 2 + 8) continue;
        ++in.counts[origin];
        const auto place = [&](std::uint32_t crystal) {
            return config::turned(config::crystal_place(scanner, crystal).front_centre_mm,
                                  radians(pair.time));
        };
        const auto p = place(pair.crystal_a);
        const auto q = place(pair.crystal_b);
        // The same sign of s for the lines of all angles: that of the normal with y above 0.
        const double length = std::hypot(q[0] - p[0], q[1] - p[1]) * (p[0] < q[0] ? -1 : 1);
        const double s = ((p[0] - phantom.line_at_mm) * (q[1] - p[1]) - p[1] * (q[0] - p[0])) / length;
        const auto bin_of_line =
            static_cast<std::size_t>(std::clamp(std::lround(s / bin_mm) + 100, 0L, 200L));
        auto& projection = in.projections[origin];
        projection.resize(201);
        ++projection[bin_of_line];
        ++in.slices[slice - slices.from][bin_of_line];
    }
    return in;
}

/// Randoms and scatter as the standard defines them, with the line where it really is.
inline double background_of(const InPhantom& in) {
    double background = 0;
    for (const auto& [origin, projection] : in.projections)
        background += nema::strip_counts(projection, bin_mm).background;
    return background;
}

/// NECR as the standard defines it, in counts, with the line where it really is.
inline double necr_of(const InPhantom& in) {
    double necr = 0;
    for (const auto& projection : in.slices) {
        const auto counts = nema::strip_counts(projection, bin_mm);
        if (counts.total > 0) necr += counts.trues() * counts.trues() / counts.total;
    }
    return necr;
}

}  // namespace petacq::test
