// A scanner with phantoms in it, simulated, acquired and imaged with the real programs.
#pragma once

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numbers>
#include <string>
#include <vector>

#include "tests/support/image_file.hpp"
#include "tests/support/temporary_directory.hpp"

namespace petacq::test {

/// Even activity or water, along the axis and about the middle of the scanner. In mm.
struct Cylinder {
    double x;
    double y;
    double radius;
    double length;

    [[nodiscard]] double ml() const { return std::numbers::pi * radius * radius * length / 1000; }
    /// X,Y,Z,RADIUS,LENGTH.
    [[nodiscard]] std::string text() const;
    /// At least `margin` from its side, negative: outside; and 4 mm from its ends.
    [[nodiscard]] bool contains(double px, double py, double pz, double margin) const {
        return std::hypot(px - x, py - y) < radius - margin && std::abs(pz) < length / 2 - 4;
    }
};

/// The scanner of a laboratory, the settings of its daemon, and how its scans are simulated.
struct Equipment {
    nlohmann::json scanner;                    ///< its description
    nlohmann::json daemon;                     ///< settings of petacqd
    std::vector<std::string> detector = {};    ///< options of petsim make-detector
    std::vector<std::string> simulation = {};  ///< options of petsim for all that is simulated
    std::vector<std::string> image = {};       ///< options of petlm image for all images

    /// One of the example scanners, whose crystals differ by 14 %, 0.3 % are dead, and a detector unit is.
    /// Photons interact as petsim's `crystals` says.
    static Equipment example(const std::string& name, const std::string& crystals,
                             std::uint64_t dead_time_ticks);
    /// A scanner of ten modules around the ring with 15 mm of LYSO, with the same faults, Lu-176, and a dead
    /// time of 500 ns.
    static Equipment ten_modules(const std::string& crystals);
};

class Laboratory {
  public:
    explicit Laboratory(Equipment equipment);

    void use_policy(const std::string& policy);
    /// Simulates a phantom, options of petsim, to NAME.pcap.
    void simulate(const std::string& name, double seconds, const std::vector<std::string>& phantom);
    /// Makes a run, data/RUN, of NAME.pcap, under the policy in use.
    void replay(const std::string& name, const std::string& run);
    /// Both, without keeping the capture.
    void acquire(const std::string& run, double seconds, const std::vector<std::string>& phantom);

    /// petcal derive normalisation, of a run of an even cylinder that neither attenuates nor scatters.
    void derive_normalisation(const std::string& run, const Cylinder& flood, const std::string& output);
    /// petcal derive activity, of the latest image.
    void derive_activity(const Cylinder& known, double kbq_per_ml, const std::string& normalisation,
                         const std::string& output);

    struct Image {
        ImageFile values;
        nlohmann::json statement;
        std::string output;

        [[nodiscard]] double mean(const Cylinder& in, double margin) const {
            return values.mean([&](double x, double y, double z) { return in.contains(x, y, z, margin); });
        }
    };
    Image image(const std::string& run, const std::vector<std::string>& options);

    [[nodiscard]] std::string path(const std::string& name) const { return (directory_ / name).string(); }
    [[nodiscard]] std::string scanner_file() const { return path("scanner.json"); }

  private:
    TemporaryDirectory directory_;
    Equipment equipment_;
};

}  // namespace petacq::test
