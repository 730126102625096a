// Where an image shows what crystals that absorb photons at a depth have found, without --depth-mm.
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/image_file.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temporary_directory.hpp"

namespace petacq::test {
namespace {

using nlohmann::json;

/// Long crystals of BGO in a ring of 13 modules.
const char* const long_crystals = R"({"name": "long", "tick_ps": 40,
    "geometry": {"channels": 13, "modules": {"y": 1, "z": 2}, "blocks": {"y": 2, "z": 1},
                 "crystals": {"y": 5, "z": 5}, "bdm_count": 26, "du_count": 2, "position_size": 64},
    "dimensions": {"ring_radius_mm": 55, "crystal_pitch_y_mm": 2.6, "crystal_pitch_z_mm": 3,
                   "crystal_length_mm": 20, "block_gap_y_mm": 0.4, "module_gap_z_mm": 1,
                   "crystal_material": "BGO"},
    "sources": [{"id": 0, "bdms": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
                                   13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25]}]})";

/// A run of some points without scatter.
class PointScan {
  public:
    explicit PointScan(const char* scanner) {
        write_file(dir_ / "s.json", scanner);
        const json daemon = {
            {"scanner", "s.json"},
            {"calibration", "c.h5"},
            {"data_dir", "data"},
            {"receive", {{"sockets", {{{"address", "127.0.0.1"}, {"port", 9601}}}}}},
            {"coincidence", {{"window_ticks", 90}, {"delay_ticks", 2500}, {"min_module_difference", 2}}},
            {"pipeline", {{"backend", "cpu"}}},
            {"http", {{"listen", ""}}},
            {"control", {{"socket", "s.sock"}}}};
        write_file(dir_ / "d.json", daemon.dump());
        std::filesystem::create_directory(dir_ / "data");
        good(PETCAL_PROGRAM, "make --scanner s.json --output c.h5");
    }
    void acquire(const std::string& points) {
        good(PETSIM_PROGRAM,
             "--scanner s.json --calibration c.h5 --quiet --threads 2 --scatter 0 --efficiency 1 "
             "--seed 7 --write p.pcap" +
                 points);
        good(PETACQD_PROGRAM, "--config d.json --replay p.pcap --run p");
    }
    ImageFile image(const std::string& options) {
        said_ = good(PETLM_PROGRAM, "image data/p -o i --force --smooth-mm 0 --backend cpu " + options);
        return ImageFile(dir_ / "i/image.nii");
    }
    /// What petlm said about the latest image.
    [[nodiscard]] const std::string& said() const { return said_; }

  private:
    std::string good(const char* program, const std::string& arguments) {
        const Outcome outcome = shell("cd" + quoted(dir_.path()) + "&&" + quoted(program) + arguments);
        INFO(arguments << '\n' << outcome.out);
        REQUIRE(outcome.status == 0);
        return outcome.out;
    }

    TemporaryDirectory dir_;
    std::string said_;
};

/// Distance from the axis of the centre of gravity near a point.
double radius_of(const ImageFile& image, double x, double y, double near_mm) {
    double sum = 0;
    double sum_x = 0;
    double sum_y = 0;
    image.each([&](float value, double at_x, double at_y, double at_z) {
        if (std::hypot(at_x - x, at_y - y, at_z) > near_mm) return;
        sum += value;
        sum_x += value * at_x;
        sum_y += value * at_y;
    });
    return std::hypot(sum_x, sum_y) / sum;
}

}  // namespace

TEST_CASE("image: points at several radii of a scanner with long crystals appear at their places",
          "[petlm][image][depth]") {
    PointScan scan(long_crystals);
    constexpr double turns[] = {0.3, 1.9, 3.6, 5.2};  // NOLINT(modernize-avoid-c-arrays): radians
    constexpr double radii[] = {10, 18, 26, 34};      // NOLINT(modernize-avoid-c-arrays)
    std::string points = " --duration-s 1.2";
    const auto at = [&](std::size_t i) {
        return std::pair(radii[i] * std::cos(turns[i]), radii[i] * std::sin(turns[i]));
    };
    for (std::size_t i = 0; i < std::size(radii); ++i)
        points += " --point " + std::to_string(at(i).first) + ',' + std::to_string(at(i).second) + ",0,0.25";
    scan.acquire(points);
    const ImageFile image = scan.image("--fov-mm 100 --voxel-mm 1 --iterations 4");
    CHECK_THAT(scan.said(), contains("mm behind the front face on lines through the axis"));
    const ImageFile half = scan.image("--fov-mm 100 --voxel-mm 1 --iterations 4 --depth-mm 10");
    CHECK_THAT(scan.said(), contains("photons interact 10 mm behind the front face."));
    for (std::size_t i = 0; i < std::size(radii); ++i) {
        const auto [x, y] = at(i);
        const double found = radius_of(image, x, y, 5);
        CAPTURE(radii[i], found);
        // Far out the image of a point is wide, and moves with the place of the modules around it.
        CHECK(std::abs(found - radii[i]) < (radii[i] < 30 ? 0.15 : 0.35));
        CHECK(radius_of(half, x, y, 5) - radii[i] > 0.2);
    }
}

}  // namespace petacq::test
