// A scanner of which only the description is known: calibrated from simulated scans, by the commands of
// docs/how-to/calibrate.md.
#pragma once

#include <array>
#include <cmath>
#include <filesystem>
#include <numbers>
#include <string>
#include <vector>

#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/image_file.hpp"

namespace petacq::test {

/// Even activity in a cylinder along z. In mm and MBq.
struct EvenCylinder {
    std::array<double, 3> at;
    double radius;
    double length;
    double mbq;

    /// X,Y,Z,RADIUS,LENGTH.
    [[nodiscard]] std::string text() const;
    [[nodiscard]] double kbq_per_ml() const {
        return 1e6 * mbq / (std::numbers::pi * radius * radius * length);
    }
};

/// How petlm image makes images of a scanner.
struct ImageSize {
    double voxel_mm;
    double fov_mm;
};

class Chain {
  public:
    /// Draws the true detector, and makes a calibration that tells nothing of it.
    Chain(const nlohmann::json& scanner, const nlohmann::json& configuration);

    /// petsim with these sources, to NAME.pcap.
    void simulate(const std::string& name, double seconds, const std::vector<std::string>& sources);
    /// Makes the run NAME of CAPTURE.pcap under the calibration in use.
    void replay(const std::string& capture, const std::string& name);
    /// Sends CAPTURE.pcap to a daemon, which makes the run NAME.
    void send(const std::string& capture, const std::string& name);

    /// The true map, as a table that the makers of the boards give: petcal import.
    void import_true_map();
    /// Derived from the spectra of a run, and applied.
    void derive_crystals(const std::string& run);
    void derive_energy(const std::string& run);
    void derive_time(const std::string& run, const EvenCylinder& source);
    /// To normalisation.h5; `medium` is what the cylinder is filled with.
    enum class Medium { air, water };
    void derive_normalisation(const std::string& run, const EvenCylinder& source,
                              Medium medium = Medium::air);
    /// Into quantitative.h5, of the latest image.
    void derive_activity(const EvenCylinder& source, double length_mm);

    /// petlm image with these options more.
    ImageFile image(const std::string& run, const ImageSize& size, const std::string& normalisation,
                    const std::vector<std::string>& more);

    /// petcal compare, of the best calibration there is and the one in use.
    [[nodiscard]] nlohmann::json compare() const;
    /// petcal inspect of the calibration in use.
    [[nodiscard]] nlohmann::json inspect() const;

    [[nodiscard]] std::string path(const std::string& name) const {
        return (site_.directory() / name).string();
    }
    [[nodiscard]] const Site& site() const { return site_; }
    [[nodiscard]] config::Scanner scanner() const { return config::load_scanner(site_.scanner()); }

  private:
    /// Runs petcal derive with these arguments and --json, and returns the document that it prints.
    [[nodiscard]] nlohmann::json derived(std::vector<std::string> arguments) const;
    void apply(const std::string& step, const std::string& file);
    void use(const std::string& calibration) const;

    Site site_;
};

/// One of the example scanners of the long form.
std::filesystem::path example_scanner_file(const std::string& name);
nlohmann::json example_scanner(const std::string& name);
/// Its configuration, as a patch for that of a Site: but for the files and addresses, of which each Site has
/// its own.
nlohmann::json example_configuration(const std::string& name);

/// What it prints; fails unless it ends with `status`.
std::string output_of(const char* program, const std::vector<std::string>& arguments, int status = 0);

}  // namespace petacq::test
