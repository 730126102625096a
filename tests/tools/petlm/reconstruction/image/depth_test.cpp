// Where an image shows what crystals that absorb photons at a depth have found, without --depth-mm.
#include <cmath>
#include <nlohmann/json.hpp>

#include "config/scanner/scanner.hpp"
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
            // Little memory: clearing it takes most of the time of a short replay.
            {"receive",
             {{"sockets", {{{"address", "127.0.0.1"}, {"port", 9601}}}},
              {"batch_count", 32},
              {"batch_bytes", 262144},
              {"lock_memory", false}}},
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

/// A point on the plane across the middle of the axis, by its distance from the axis and its angle.
struct PlacedPoint {
    double radius_mm;
    double angle;

    [[nodiscard]] double x() const { return radius_mm * std::cos(angle); }
    [[nodiscard]] double y() const { return radius_mm * std::sin(angle); }
    [[nodiscard]] std::string option(const char* mbq) const {
        return " --point " + std::to_string(x()) + ',' + std::to_string(y()) + ",0," + mbq;
    }
};

/// The distance of the centre of gravity near a point from it: outwards, and in any direction.
struct Displacement {
    double outwards;
    double any;
};
Displacement displacement(const ImageFile& image, const PlacedPoint& point, double near_mm) {
    double sum = 0;
    config::Vector3 moment{};
    image.each([&](float value, double x, double y, double z) {
        const config::Vector3 from = {x - point.x(), y - point.y(), z};
        if (std::hypot(from[0], from[1], from[2]) > near_mm) return;
        sum += value;
        for (std::size_t axis = 0; axis < 3; ++axis)
            moment[axis] += value * from[axis];
    });
    return {(moment[0] * std::cos(point.angle) + moment[1] * std::sin(point.angle)) / sum,
            std::hypot(moment[0], moment[1], moment[2]) / sum};
}

}  // namespace

TEST_CASE("image: points at several radii of a scanner with long crystals appear at their places",
          "[petlm][image][depth]") {
    PointScan scan(long_crystals);
    const PlacedPoint points[] = {{10, 0.3}, {26, 3.6}, {34, 5.2}};  // NOLINT(modernize-avoid-c-arrays)
    std::string options = " --duration-s 0.6";
    for (const PlacedPoint& point : points)
        options += point.option("0.25");
    scan.acquire(options);
    const ImageFile image = scan.image("--fov-mm 100 --voxel-mm 1.3 --iterations 4");
    CHECK_THAT(scan.said(), contains("mm behind the front face on lines through the axis"));
    const ImageFile half = scan.image("--fov-mm 100 --voxel-mm 1.3 --iterations 4 --depth-mm 10");
    CHECK_THAT(scan.said(), contains("photons interact 10 mm behind the front face."));
    for (const PlacedPoint& point : points) {
        CAPTURE(point.radius_mm);
        CHECK(std::abs(displacement(image, point, 5).outwards) < 0.15);
        CHECK(displacement(half, point, 5).outwards > 0.2);
    }
}

TEST_CASE("image: points in long crystals appear within 0.1 mm of their places, and are no wider far out",
          "[petlm][image][depth][.long]") {
    PointScan scan(long_crystals);
    const PlacedPoint points[] = {// NOLINT(modernize-avoid-c-arrays)
                                  {0, 0},
                                  {14, 2.4},
                                  {27, 4.1},
                                  {38, 0.9}};
    std::string options = " --duration-s 1.5";
    for (const PlacedPoint& point : points)
        options += point.option("0.25");
    scan.acquire(options);
    const ImageFile image = scan.image("--fov-mm 92 --voxel-mm 0.8 --iterations 6");
    for (const PlacedPoint& point : points) {
        for (const double near_mm : {2.5, 3.5, 5.0}) {
            CAPTURE(point.radius_mm, near_mm);
            CHECK(displacement(image, point, near_mm).any < 0.1);
        }
    }
}

}  // namespace petacq::test
