// What attenuates: cylinders against a map of the same, and input that is refused.
#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "config/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/petlm/support.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/reconstruction/corrections/line_factors.hpp"

using namespace petacq;
using namespace petacq::test;
using corrections::AttenuatingObject;
using corrections::Vector3;

namespace {

/// Voxels of a cylinder with its axis along z: the share of 4 x 4 x 4 points that lies in it.
nifti::Volume map_of(const Vector3& at, double radius, double length, double per_cm,
                     const std::array<Vector3, 3>& step, const Vector3& first,
                     const std::array<std::uint32_t, 3>& n) {
    nifti::Volume map{n, step, first, {}};
    constexpr int fine = 4;
    for (std::uint32_t z = 0; z < n[2]; ++z) {
        for (std::uint32_t y = 0; y < n[1]; ++y) {
            for (std::uint32_t x = 0; x < n[0]; ++x) {
                int inside = 0;
                for (int i = 0; i < fine * fine * fine; ++i) {
                    Vector3 p = map.at(x, y, z);
                    const std::array<int, 3> f = {i % fine, i / fine % fine, i / fine / fine};
                    for (std::size_t k = 0; k < 3; ++k) {
                        for (std::size_t axis = 0; axis < 3; ++axis)
                            p[axis] += step[k][axis] * ((f[k] + 0.5) / fine - 0.5);
                    }
                    const bool in = std::hypot(p[0] - at[0], p[1] - at[1]) <= radius &&
                                    std::abs(p[2] - at[2]) <= length / 2;
                    inside += in ? 1 : 0;
                }
                map.values.push_back(static_cast<float>(per_cm * inside / (fine * fine * fine)));
            }
        }
    }
    return map;
}

std::string map_file(const nifti::Volume& map) {
    std::string bytes = nifti::header(map, "");
    bytes.append(reinterpret_cast<const char*>(map.values.data()), 4 * map.values.size());
    return bytes;
}

}  // namespace

TEST_CASE("corrections: a map of a cylinder attenuates as the cylinder does", "[petlm][corrections]") {
    const auto cylinder = AttenuatingObject::of({"3,-4,5,15,40,0.2"});
    // The chord through the middle, across and along the axis, and outside.
    CHECK(cylinder.integral({-50, -4, 5}, {50, -4, 5}) == Approx(0.6));
    CHECK(cylinder.integral({3, -4, 60}, {3, -4, -60}) == Approx(0.8));
    CHECK(cylinder.integral({-50, 12, 5}, {50, 12, 5}) == 0);
    AttenuatingObject straight;
    straight.add(map_of({3, -4, 5}, 15, 40, 0.2, {{{1, 0, 0}, {0, 0.8, 0}, {0, 0, 2}}}, {-20, -22, -20.5},
                        {48, 48, 26}),
                 "straight");
    // Turned about z, and running downwards along z.
    AttenuatingObject turned;
    turned.add(map_of({3, -4, 5}, 15, 40, 0.2, {{{0.6, 0.8, 0}, {-0.8, 0.6, 0}, {0, 0, -1}}}, {3, -40, 30.5},
                      {52, 52, 52}),
               "turned");
    std::mt19937 random(1);
    std::uniform_real_distribution<double> angle(0, 2 * std::numbers::pi);
    std::uniform_real_distribution<double> z(-40, 40);
    double largest = 0;
    double squares = 0;
    for (int i = 0; i < 500; ++i) {
        const double phi = angle(random);
        const double psi = angle(random);
        const Vector3 a = {60 * std::cos(phi), 60 * std::sin(phi), z(random)};
        const Vector3 b = {60 * std::cos(psi), 60 * std::sin(psi), z(random)};
        const double expected = cylinder.integral(a, b);
        largest = std::max(largest, expected);
        // Lines that graze a face see steps of voxels.
        CHECK(straight.integral(a, b) == Approx(expected).margin(0.15));
        CHECK(turned.integral(a, b) == Approx(expected).margin(0.15));
        squares +=
            std::pow(straight.integral(a, b) - expected, 2) + std::pow(turned.integral(a, b) - expected, 2);
        CHECK(cylinder.integral(b, a) == Approx(expected).margin(1e-9));
        CHECK(turned.integral(b, a) == Approx(turned.integral(a, b)).margin(1e-5));
    }
    CHECK(largest > 0.5);
    CHECK(std::sqrt(squares / 1000) < 0.01);
}

TEST_CASE("corrections: parts of the object add up", "[petlm][corrections]") {
    const TemporaryDirectory directory;
    const auto file = directory / "map.nii";
    write_file(file, map_file(map_of({0, 0, 0}, 10, 20, 0.1, {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
                                     {-11.5, -11.5, -11.5}, {24, 24, 24})));
    const auto object = AttenuatingObject::of({"0,0,0,10,20", "0,0,0,5,20,0.1", file.string()});
    CHECK(object.integral({-50, 0.1, 0.1}, {50, 0.1, 0.1}) == Approx(0.192 + 0.1 + 0.2).epsilon(0.01));
    CHECK(object.text() == "2 cylinders, map " + file.string());
    CHECK(AttenuatingObject().empty());
    CHECK_FALSE(object.empty());
}

TEST_CASE("corrections: objects that make no sense are refused", "[petlm][corrections]") {
    for (const char* part :
         {"1,2,3", "0,0,0,10,20,0.1,7", "0,0,0,0,20", "0,0,0,10,-1", "0,0,0,10,20,0", "0,0,0,10,20,-0.1",
          "0,0,0,10,20,96", "0,0,0,nan,20", "0,0,0,10,inf", "", ",", "0,0,0,10,20,", "no/such/map.nii"}) {
        CAPTURE(part);
        CHECK_THROWS_WITH(AttenuatingObject::of({part}), contains("--attenuation " + std::string(part)));
        CHECK_THROWS_AS(AttenuatingObject::of({part}), petacq::petlm::UsageError);
    }
    nifti::Volume map{{1, 1, 1}, {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}, {}, {0}};
    for (const float value : {-0.1F, 30.0F, -1000.0F}) {
        map.values[0] = value;
        AttenuatingObject object;
        CHECK_THROWS_WITH(object.add(map, "ct.nii"), contains("ct.nii") && contains("Hounsfield"));
    }
}

TEST_CASE("corrections: the factors of a line", "[petlm][corrections]") {
    const TemporaryDirectory directory;
    const config::Scanner scanner = export_scanner();
    const auto& g = scanner.geometry;
    auto normalisation = normalisation::Normalisation::even(g);
    normalisation.efficiency[3] = 0;
    normalisation.efficiency[5] = 1.5F;
    save(directory / "norm.h5", g, normalisation);
    const corrections::LineFactors none(scanner, config::DepthOfInteraction::fixed(2));
    const corrections::LineFactors all(scanner, config::DepthOfInteraction::fixed(2),
                                       {directory / "norm.h5", {"0,0,0,10,1000,0.1"}});
    const std::uint32_t across = g.crystals_in_ring() / 2;
    CHECK_FALSE(none.normalised());
    CHECK(none.normalisation(3, across) == 1);
    CHECK(none.attenuation(3, across) == 1);
    CHECK(all.normalisation(3, across) == 0);
    CHECK(all.normalisation(across, 5) == 1.5);
    CHECK(all.file().sha256.size() == 64);
    // Through the middle.
    CHECK(all.attenuation(0, across) == Approx(std::exp(-0.2)).epsilon(0.05));
    CHECK(all.attenuation(0, across) == all.attenuation(across, 0));
    const double d = 2 * std::hypot(scanner.dimensions.ring_radius_mm, 0.0);
    CHECK(all.solid_angle(0, across) == Approx(1 / (d * d)).epsilon(0.3));
    CHECK(all.solid_angle(0, across, 7) == Approx(7 * all.solid_angle(across, 0)));
    CHECK_THROWS_AS(
        corrections::LineFactors(scanner, config::DepthOfInteraction::fixed(2), {directory / "none.h5", {}}),
        config::IoError);
}
