// Runs of a small simulated scanner, and images of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/image_file.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temporary_directory.hpp"

namespace petacq::test {

using nlohmann::json;

/// A small scanner of four boards, and a normalisation of it.
class Scans {
  public:
    /// `changes`: of the scanner description, as a merge patch.
    explicit Scans(const std::string& half_life_s, const json& changes = json::object())
        : half_life_s_(half_life_s) {
        json scanner = json::parse(R"({"name": "s", "tick_ps": 15.625,
            "geometry": {"channels": 6, "modules": {"y": 2, "z": 2}, "blocks": {"y": 2, "z": 1},
                         "crystals": {"y": 5, "z": 4}, "bdm_count": 24, "du_count": 2, "position_size": 64},
            "dimensions": {"ring_radius_mm": 32, "crystal_pitch_y_mm": 1.6, "crystal_pitch_z_mm": 3,
                           "crystal_length_mm": 12}, "sources": []})");
        scanner.merge_patch(changes);
        const unsigned of_board = scanner["geometry"]["bdm_count"].get<unsigned>() / 4;
        for (unsigned board = 0; board < 4; ++board) {
            json bdms = json::array();
            for (unsigned bdm = 0; bdm < of_board; ++bdm)
                bdms.push_back(of_board * board + bdm);
            scanner["sources"].push_back({{"id", board}, {"bdms", bdms}});
        }
        write_file(dir / "s.json", scanner.dump());
        const json daemon = {
            {"scanner", "s.json"},
            {"calibration", "c.h5"},
            {"data_dir", "data"},
            // Little memory: clearing it takes most of the time of a short replay.
            {"receive",
             {{"sockets", {{{"address", "127.0.0.1"}, {"port", 9601}}}},
              {"batch_count", 32},
              {"batch_bytes", 262144},
              {"lock_memory", false}}},
            {"coincidence",
             {{"window_ticks", 320}, {"delay_ticks", 6400}, {"multiples_policy", "RemoveMultiples"}}},
            {"pipeline", {{"backend", "cpu"}}},
            {"listmode", {{"write_singles", true}}},
            {"http", {{"listen", ""}}},
            {"control", {{"socket", "s.sock"}}}};
        write_file(dir / "d.json", daemon.dump());
        std::filesystem::create_directory(dir / "data");
        good(PETCAL_PROGRAM, "make --scanner s.json --output c.h5");
    }
    void acquire(const std::string& run, const std::string& options) const {
        good(PETSIM_PROGRAM,
             "--crystals surface --scanner s.json --calibration c.h5 --quiet --threads 2 --half-life-s " +
                 half_life_s_ + " --write " + run + ".pcap " + options);
        good(PETACQD_PROGRAM, "--config d.json --replay " + run + ".pcap --run " + run);
        std::filesystem::remove(dir / (run + ".pcap"));
    }
    void normalise(const std::string& run) const {
        good(PETCAL_PROGRAM,
             "derive normalisation --scanner s.json --cylinder 0,0,0,10,20 "
             "--attenuation-per-cm 0 --depth-mm 0 -o n.h5 --run data/" +
                 run);
    }
    struct Image {
        double mean = 0;   ///< in and around the cylinder
        double noise = 0;  ///< relative
        json about;
        std::string out;
    };
    /// Decays as Rb-82 does. That one has gammas, which the runs do not have, and which are followed for each
    /// image.
    static constexpr const char* without_gammas =
        "--nuclide X-82 --half-life-s 75.45 --branching-ratio 0.9543";
    [[nodiscard]] Image image(const std::string& target,
                              const std::string& options = "--voxel-mm 4 --subsets 1 --iterations 10",
                              const std::string& nuclide = without_gammas) const {
        Image out;
        out.out =
            good(PETLM_PROGRAM, "image data/" + target + " -o i --force --normalisation n.h5 --backend cpu " +
                                    nuclide + " " + options);
        out.mean = ImageFile(dir / "i/image.nii").mean([](double x, double y, double z) {
            return std::hypot(x, y) < 13 && std::abs(z) < 12;
        });
        out.about = json::parse(read_file(dir / "i/image.json"));
        const auto prompts = out.out.find(" prompts on ");
        // Somewhat more than that of the counts: what is near the edges is spread by the iterations.
        out.noise = 1.3 / std::sqrt(std::stod(out.out.substr(out.out.find_last_of(" \n", prompts - 1) + 1)));
        return out;
    }
    std::string good(const char* program, const std::string& arguments) const {
        const Outcome outcome = run(program, arguments);
        INFO(arguments << '\n' << outcome.out);
        // A tenth of the data is missing in some runs, whose verdict is bad.
        const bool replayed = arguments.find("--replay") != std::string::npos;
        REQUIRE((outcome.status == 0 || (replayed && outcome.status == 65)));
        return outcome.out;
    }
    [[nodiscard]] Outcome run(const char* program, const std::string& arguments) const {
        return shell("cd" + quoted(dir.path()) + "&&" + quoted(program) + arguments);
    }

    TemporaryDirectory dir;

  private:
    std::string half_life_s_;
};

}  // namespace petacq::test
