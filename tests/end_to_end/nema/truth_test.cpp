// petlm nema on simulated runs: its figures against the truth of the simulator.
#include <cmath>
#include <map>
#include <unordered_map>

#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"
#include "tools/petlm/nema/line_source.hpp"
#include "tools/petlm/nema/slices.hpp"
#include "tools/petsim/simulation/base/truth.hpp"

using namespace petacq;
using namespace petacq::test;
using nlohmann::json;

namespace {

enum class Origin : std::uint8_t { genuine, scattered, random };

struct Labelled {
    gpu::Coincidence pair;
    Origin origin;
};

/// Simulated runs of the small scanner, and what their prompts are.
class Simulated {
  public:
    explicit Simulated(const json& patch = json::object()) : site_(patch) {}

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
    /// results.json of a test of runs.
    json nema(const std::string& test, const std::vector<std::string>& runs,
              const std::vector<std::string>& options) {
        std::vector<std::string> arguments = {
            "nema", test, "--force", "--depth-mm", "0", "-o", (site_.directory() / test).string()};
        for (const auto& name : runs)
            arguments.push_back(site_.run(name).string());
        arguments.insert(arguments.end(), options.begin(), options.end());
        const Outcome outcome = run_program(PETLM_PROGRAM, arguments);
        INFO(outcome.out << outcome.err);
        REQUIRE(outcome.status == 0);
        return json::parse(read_file(site_.directory() / test / "results.json"));
    }
    [[nodiscard]] config::Scanner scanner() const { return config::load_scanner(site_.scanner()); }

  private:
    std::vector<Labelled> label(const std::string& name, const std::string& truth_file) {
        std::unordered_map<std::uint64_t, sim::TruthRecord> singles;
        const auto key = [](std::uint64_t time, std::uint32_t crystal) { return time * 4096 + crystal; };
        for (const auto& record : sim::read_truth(truth_file))
            singles[key(record.time, record.crystal)] = record;
        std::vector<Labelled> all;
        for (const auto& pair : coincidences_of(site_.run(name) / "coincidences.plm")) {
            if (pair.kind != gpu::Kind::prompt) continue;
            const auto& a = singles.at(key(pair.time, pair.crystal_a));
            const auto& b = singles.at(key(pair.time + pair.dt, pair.crystal_b));
            const bool same = a.annihilation == b.annihilation && a.annihilation != 0;
            const bool scattered = ((a.flags | b.flags) & sim::truth_scattered) != 0;
            all.push_back({pair, !same ? Origin::random : scattered ? Origin::scattered : Origin::genuine});
        }
        return all;
    }

    Site site_;
};

/// The columns of a row of a table.
std::map<std::string, double> row_of(const json& results, const std::string& table, std::size_t row) {
    std::map<std::string, double> values;
    const json& columns = results["tables"][table]["columns"];
    const json& cells = results["tables"][table]["rows"][row];
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

    [[nodiscard]] double all() const {
        double sum = 0;
        for (const auto& [origin, count] : counts)
            sum += count;
        return sum;
    }
};
constexpr double bin_mm = 0.8;

InPhantom in_phantom(const config::Scanner& scanner, const std::vector<Labelled>& pairs) {
    const auto& phantom = nema::phantom_of(nema::Phantom::mouse);
    const nema::SliceBins bins(scanner, 0, scanner.dimensions.crystal_pitch_y_mm / 2);
    const auto slices = nema::slices_of(bins, phantom);
    InPhantom in;
    for (const auto& [pair, origin] : pairs) {
        const std::size_t bin = bins.of(pair.crystal_a, pair.crystal_b);
        if (bin == nema::SliceBins::outside) continue;
        const auto column = static_cast<std::uint32_t>(bin % bins.lines().radial());
        const std::size_t slice = bin / bins.in_slice();
        if (slice < slices.from || slice >= slices.to) continue;
        if (std::abs(bins.lines().radial_mm(column)) > phantom.diameter_mm / 2 + 8) continue;
        ++in.counts[origin];
        const auto p = config::crystal_place(scanner, pair.crystal_a).front_centre_mm;
        const auto q = config::crystal_place(scanner, pair.crystal_b).front_centre_mm;
        // The same sign of s for the lines of all angles: that of the normal with y above 0.
        const double length = std::hypot(q[0] - p[0], q[1] - p[1]) * (p[0] < q[0] ? -1 : 1);
        const double s = ((p[0] - phantom.line_at_mm) * (q[1] - p[1]) - p[1] * (q[0] - p[0])) / length;
        auto& projection = in.projections[origin];
        projection.resize(201);
        ++projection[static_cast<std::size_t>(std::clamp(std::lround(s / bin_mm) + 100, 0L, 200L))];
    }
    return in;
}

/// Randoms and scatter as the standard defines them, with the line where it really is.
double background_of(const InPhantom& in) {
    double background = 0;
    for (const auto& [origin, projection] : in.projections)
        background += nema::strip_counts(projection, bin_mm).background;
    return background;
}

}  // namespace

TEST_CASE("petlm nema sensitivity: that of the simulator, at each position of the bed", "[e2e][nema]") {
    Simulated simulated;
    constexpr double mbq = 0.1;
    constexpr double seconds = 1;
    const auto pairs = simulated.run("bed", {"--point", "0,0,-16,0.1", "--bed-steps", "8,1", "--duration-s",
                                             "5", "--tag-position", "3", "--scatter", "0", "--seed", "4"});
    const json results = simulated.nema(
        "sensitivity", {"bed"}, {"--by-position", "3", "--activity-mbq", std::to_string(mbq / 0.906)});
    REQUIRE(results["tables"]["positions"]["rows"].size() == 5);
    const double tick_s = simulated.scanner().tick_ps * 1e-12;
    std::vector<double> found(5);
    double randoms = 0;
    for (const auto& [pair, origin] : pairs) {
        const auto position =
            static_cast<std::size_t>(std::min(4.0, static_cast<double>(pair.time) * tick_s / seconds));
        if (origin == Origin::random)
            ++randoms;
        else
            ++found[position];
    }
    for (std::size_t i = 0; i < 5; ++i) {
        auto row = row_of(results, "positions", i);
        CAPTURE(i, row["absolute_percent"], row["absolute_percent_error"], row["z_mm"], randoms, found[i]);
        CHECK(row["z_mm"] == Approx(-16 + 8.0 * static_cast<double>(i)).margin(0.3));
        CHECK(row["bed_mm"] == Approx(8 * static_cast<double>(i)));
        const double truth = 100 * found[i] / (mbq * 1e6 * seconds);
        // The same counts: what remains are randoms, and the time at which the bed moves.
        CHECK(row["absolute_percent"] == Approx(truth).epsilon(0.003));
        CHECK(row["absolute_percent_error"] == Approx(truth / std::sqrt(found[i])).epsilon(0.02));
    }
    CHECK(results["figures"]["mouse_percent"]["value"].get<double>() > 1);
}

TEST_CASE("petlm nema scatter and count-rate: trues, scatter and randoms of the simulator", "[e2e][nema]") {
    Simulated simulated;
    const auto scanner = simulated.scanner();
    const auto line = [](const std::string& mbq, const std::string& seconds) {
        return std::vector<std::string>{"--line",       "10,0,-30,10,0,30," + mbq,
                                        "--object",     "0,0,0,12.5,70",
                                        "--duration-s", seconds,
                                        "--seed",       "5"};
    };
    const auto low = in_phantom(scanner, simulated.run("low", line("0.3", "2")));
    const auto high = in_phantom(scanner, simulated.run("high", line("20", "0.03")));

    const json scatter = simulated.nema("scatter", {"low", "high"}, {});
    CHECK(scatter["tables"]["acquisitions"]["rows"][0][8] == "yes");
    CHECK(scatter["tables"]["acquisitions"]["rows"][1][8] == "no");
    const double fraction = scatter["figures"]["scatter_fraction"]["value"];
    const double error = scatter["figures"]["scatter_fraction"]["error"];
    CHECK(std::abs(fraction - 100 * background_of(low) / low.all()) < 2 * error);
    // The standard counts scatter as trues that lies near the line, above the straight one.
    const double all_scatter = 100 * low.counts.at(Origin::scattered) / low.all();
    CAPTURE(fraction, error, all_scatter);
    CHECK(fraction < all_scatter);
    CHECK(fraction > 0.7 * all_scatter);

    const json rates = simulated.nema("count-rate", {"low", "high"}, {"--activity-mbq", "0.3,20"});
    for (std::size_t i = 0; i < 2; ++i) {
        auto row = row_of(rates, "rates", i);
        const InPhantom& truth = i == 0 ? low : high;
        const double t = row["duration_s"];
        const double randoms = truth.counts.at(Origin::random);
        const double background = background_of(truth);
        const double trues = truth.all() - background;
        CAPTURE(i, row["trues"] * t, trues, row["scatter"] * t, background - randoms, row["randoms"] * t,
                randoms);
        CHECK(row["total"] * t == Approx(truth.all()).epsilon(1e-9));
        CHECK(std::abs(row["randoms"] * t - randoms) < 3 * std::sqrt(randoms));
        CHECK(std::abs(row["trues"] - trues / t) < 2 * row["trues_error"]);
        CHECK(std::abs(row["scatter"] * t - (background - randoms)) <
              2 * row["scatter_error"] * t + 3 * std::sqrt(randoms));
        CHECK(std::abs(row["necr"] - trues * trues / truth.all() / t) < 2 * row["necr_error"]);
    }
    CHECK(rates["figures"]["necr_at_MBq"]["value"] == 20);
    CHECK_THAT(rates["warnings"].dump(), contains("the peak may lie above it"));

    // The frames of a run have all of its counts, and the activity decays from one to the next.
    const json frames = simulated.nema("count-rate", {"low"},
                                       {"--frame-s", "0.5", "--activity-mbq", "0.3", "--nuclide", "Rb-82"});
    REQUIRE(frames["tables"]["rates"]["rows"].size() == 4);
    double total = 0;
    double randoms = 0;
    for (std::size_t i = 0; i < 4; ++i) {
        auto row = row_of(frames, "rates", i);
        total += row["total"] * row["duration_s"];
        randoms += row["randoms"] * row["duration_s"];
        // In the order of the activity.
        const double middle_s = 2 - 0.5 * (static_cast<double>(i) + 0.5);
        CHECK(row["activity_MBq"] == Approx(0.3 * std::exp2(-middle_s / 75.45)).epsilon(1e-4));
    }
    auto whole = row_of(rates, "rates", 0);
    CHECK(total == Approx(low.all()).epsilon(1e-9));
    CHECK(randoms == Approx(whole["randoms"] * whole["duration_s"]).epsilon(1e-6));
}

TEST_CASE("petlm nema resolution: the widths of a source of known size", "[e2e][nema]") {
    Simulated simulated;
    // Not in line with the middle of a module, where a gap between blocks leaves angles without lines.
    const auto point = [](const char* at, const char* seed) {
        return std::vector<std::string>{"--point",      at,    "--positron-range-mm", "3",
                                        "--duration-s", "0.7", "--scatter",           "0",
                                        "--seed",       seed};
    };
    simulated.run("r5", point("4.957,0.653,0,1", "6"));
    simulated.run("r12", point("-1.566,11.897,2,1", "7"));
    const json results = simulated.nema("resolution", {"r5", "r12"}, {"--max-ring-difference", "4"});
    // Faces of 1.6 mm see a point between them as a triangle of 0.8 mm, interpolation between lines adds as
    // much, and slices are 0.9 mm apart.
    const double across = std::sqrt(9 + 2 * 0.64);
    const double along = std::sqrt(9 + 0.7);
    for (std::size_t i = 0; i < 2; ++i) {
        auto row = row_of(results, "widths", i);
        CAPTURE(i, results["tables"]["widths"]["rows"][i].dump());
        CHECK(row["radial_mm"] == Approx(i == 0 ? 5 : 12).margin(0.5));
        for (const std::string direction : {"radial", "tangential", "axial"}) {
            CAPTURE(direction);
            const double expected = direction == "axial" ? along : across;
            const double error = row[direction + "_fwhm_mm_error"];
            CHECK(error < 0.2);
            CHECK(std::abs(row[direction + "_fwhm_mm"] - expected) < 3 * error + 0.03 * expected);
            CHECK(row[direction + "_fwtm_mm"] / row[direction + "_fwhm_mm"] ==
                  Approx(std::sqrt(std::log2(10))).epsilon(0.15));
        }
    }
}
