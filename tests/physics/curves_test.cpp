// Curves of a tracer that moves in, decays and blinds the detector, against its model.
#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "tests/tools/petlm/reconstruction/frames/series.hpp"

namespace petacq::test {
namespace {

/// The rate constants of a two-tissue model, per s, and the bolus that enters the blood.
struct Rates {
    double k1;
    double k2;
    double k3;
    double k4;
    double bolus_at_s;
    double bolus_s;
};

/// A tracer in blood and in a tissue of two compartments.
struct Tracer {
    static constexpr double step_s = 0.05;
    std::vector<double> blood;
    std::vector<double> tissue;

    Tracer(const Rates& k, double seconds) {
        double free = 0;
        double bound = 0;
        for (double t = 0; t < seconds + step_s; t += step_s) {
            const double since = t - k.bolus_at_s;
            const double input = since > 0 ? 2.2 * since * std::exp(-since / k.bolus_s) + 0.25 : 0;
            blood.push_back(input);
            tissue.push_back(free + bound);
            const double to_bound = k.k3 * free - k.k4 * bound;
            free += step_s * (k.k1 * input - k.k2 * free - to_bound);
            bound += step_s * to_bound;
        }
    }
    static double at(const std::vector<double>& curve, double t) {
        const auto i = static_cast<std::size_t>(t / step_s);
        const double part = t / step_s - static_cast<double>(i);
        return curve.at(i) + part * (curve.at(i + 1) - curve.at(i));
    }
    /// The mean of a curve that decays, in an interval, corrected to the start as for an even activity.
    static double mean(const std::vector<double>& curve, double from, double to, double half_life_s) {
        double activity = 0;
        double decay = 0;
        constexpr int parts = 2000;
        for (int i = 0; i < parts; ++i) {
            const double t = from + (to - from) * (i + 0.5) / parts;
            const double left = std::exp2(-t / half_life_s);
            activity += at(curve, t) * left;
            decay += left;
        }
        return activity / decay;
    }
    static json points(const std::vector<double>& curve) {
        json out = json::array();
        for (std::size_t i = 0; i < curve.size(); ++i)
            out.push_back({step_s * static_cast<double>(i), curve[i]});
        return out;
    }
};

/// Two cylinders beside each other.
json sources(double blood_mbq, const json& blood, double tissue_mbq, const json& tissue, double half_life_s) {
    const auto source = [&](double x, double mbq, const json& curve) {
        return json{{"type", "cylinder"},     {"centre_mm", {x, 0, 0}}, {"radius_mm", 6},
                    {"length_mm", 20},        {"activity_MBq", mbq},    {"half_life_s", half_life_s},
                    {"activity_curve", curve}};
    };
    return {{"sources", {source(-14, blood_mbq, blood), source(14, tissue_mbq, tissue)}}};
}

/// A scan of the tracer by one of several scanners.
struct TracerScan {
    json scanner;  ///< changes
    Rates rates;
    double blood_mbq;
    double tissue_mbq;
    unsigned dead_time_ticks;
    unsigned seed;
};

const TracerScan usual{json::object(), {0.25, 0.30, 0.10, 0.02, 2, 1.5}, 1.05, 2.1, 660000, 45};
const TracerScan wider{{{"dimensions",
                         {{"ring_radius_mm", 36},
                          {"crystal_pitch_y_mm", 1.8},
                          {"crystal_pitch_z_mm", 3.4},
                          {"crystal_length_mm", 10}}}},
                       {0.15, 0.20, 0.05, 0.01, 3, 1.2},
                       1.3,
                       2.6,
                       700000,
                       71};
const TracerScan more_channels{
    {{"geometry", {{"channels", 8}, {"crystals", {{"y", 4}, {"z", 5}}}, {"bdm_count", 32}}},
     {"dimensions",
      {{"ring_radius_mm", 38},
       {"crystal_pitch_y_mm", 1.75},
       {"crystal_pitch_z_mm", 2.6},
       {"crystal_length_mm", 13}}}},
    {0.4, 0.5, 0.2, 0.05, 1, 2.0},
    0.9,
    1.4,
    520000,
    81};

/// Checks each mean, and returns the differences from the model in standard errors.
std::vector<double> pulls_of(const TracerScan& scan, unsigned replicates) {
    constexpr double half_life_s = 75.45;
    constexpr double seconds = 20;
    constexpr double even_mbq = 0.5;
    const Scans scans("75.45", scan.scanner);
    const std::string physics = "--scatter 0 --tag-dead-time 3:0.05 ";
    flood(scans);
    const Tracer tracer(scan.rates, seconds);
    const json even = json::array({{0, 1}});
    write_file(scans.dir / "even.json", sources(even_mbq, even, even_mbq, even, half_life_s).dump());
    write_file(scans.dir / "tracer.json", sources(scan.blood_mbq, Tracer::points(tracer.blood),
                                                  scan.tissue_mbq, Tracer::points(tracer.tissue), half_life_s)
                                              .dump());
    const std::string seed = std::to_string(scan.seed);
    scans.acquire("even", "--source even.json --duration-s 20 --seed 1" + seed + " " + physics);
    // Units that are blind for about 10 us after each hit.
    scans.acquire("tracer", "--source tracer.json --duration-s 20 --seed " + seed + " --dead-time-ticks " +
                                std::to_string(scan.dead_time_ticks) + " " + physics);
    const std::string options =
        "--region blood=sphere:-14,0,0,4.5 --region tissue=sphere:14,0,0,4.5 --smooth-mm 0 --nuclide Rb-82 "
        "--normalisation n.h5 --backend cpu --voxel-mm 2 --fov-mm 48 --subsets 4 --iterations 12 "
        "--replicates " +
        std::to_string(replicates) + " ";
    scans.good(PETLM_PROGRAM, "frames data/even -o even --schedule 19.9s " + options);
    scans.good(PETLM_PROGRAM, "frames data/tracer -o f --schedule 5x1s,2x2s,2x3s,4.9s " + options);
    const json about = json::parse(read_file(scans.dir / "f/frames.json"));
    const auto in_s = [](const json& ticks) { return ticks.get<double>() * 15.625e-12; };
    double most = 0;
    for (const json& frame : about["Frames"])
        most = std::max(most, frame["corrections"]["dead time"]["largest_factor"].get<double>());
    CHECK(most > 1.2);
    auto flat = curves(scans.dir / "even/curves.csv");
    auto found = curves(scans.dir / "f/curves.csv");
    std::vector<double> pulls;
    for (const auto& [name, curve, mbq] :
         {std::tuple{"blood", &tracer.blood, scan.blood_mbq}, {"tissue", &tracer.tissue, scan.tissue_mbq}}) {
        CAPTURE(name);
        // The scan of the even source gives the value that the image has for a concentration of 1.
        const double read = std::stod(flat[name].at(0).at(6)) / even_mbq;
        const double read_error = std::stod(flat[name].at(0).at(7)) / even_mbq / read;
        REQUIRE(found[name].size() == 10);
        double peak = 0;
        for (const auto& row : found[name])
            peak = std::max(peak, std::stod(row[6]));
        for (const auto& row : found[name]) {
            // The time of the simulation is that of the detector.
            const double from = in_s(about["Frames"][std::stoul(row[1]) - 1]["from_ticks"]);
            const double expected =
                mbq * read * Tracer::mean(*curve, from, from + std::stod(row[3]), half_life_s);
            CAPTURE(from, expected, row[6], row[7]);
            const double error = std::hypot(row[7].empty() ? 0 : std::stod(row[7]), read_error * expected);
            const double difference = std::stod(row[6]) - expected;
            CHECK(std::abs(difference) <= std::max({0.03 * expected, 3 * error, 0.001 * peak}));
            // With a few counts the spread of the replicates is no measure of the error.
            if (expected > 0.002 * peak) pulls.push_back(difference / error);
        }
    }
    return pulls;
}

}  // namespace

TEST_CASE("curves: a tracer that moves in, decays and blinds the detector units is that of its model",
          "[.long]") {
    CHECK(pulls_of(usual, 8).size() > 15);
}

TEST_CASE("curves: with other scanners and tracers, too, and errors are as large as they are said to be",
          "[.long]") {
    std::vector<double> pulls;
    for (const TracerScan* scan : {&usual, &wider, &more_channels}) {
        const std::vector<double> more = pulls_of(*scan, 16);
        pulls.insert(pulls.end(), more.begin(), more.end());
    }
    double sum = 0;
    double squares = 0;
    for (const double pull : pulls) {
        sum += pull;
        squares += pull * pull;
    }
    const auto count = static_cast<double>(pulls.size());
    CAPTURE(count, sum / count, squares / count);
    CHECK(count > 45);
    // Means of a curve share the error of the even source.
    CHECK(std::abs(sum / count) < 0.5);
    CHECK(squares / count > 0.4);
    CHECK(squares / count < 1.8);
}

}  // namespace petacq::test
