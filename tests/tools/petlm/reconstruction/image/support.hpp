// Shared by the tests of the quick-look image: records of a cylinder, input of EM, and a reader of NIfTI.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tests/tools/petlm/support.hpp"
#include "tools/petlm/reconstruction/em/sensitivity.hpp"
#include "tools/petlm/reconstruction/image/quick_look.hpp"

namespace petacq::test {

template <class T>
T at_byte(const std::string& bytes, std::size_t offset) {
    T value;
    REQUIRE(offset + sizeof(T) <= bytes.size());
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
}

/// A NIfTI-1 file, by the offsets of nifti1.h.
struct Volume {
    std::array<std::size_t, 3> n{};
    std::array<double, 3> voxel_mm{};
    std::array<double, 3> origin_mm{};  ///< of voxel (0, 0, 0), by sform
    std::string description;
    std::vector<float> values;

    explicit Volume(const std::filesystem::path& file) {
        const std::string bytes = read_file(file);
        REQUIRE(at_byte<std::int32_t>(bytes, 0) == 348);
        REQUIRE(std::string(bytes.data() + 344, 4) == std::string("n+1\0", 4));
        REQUIRE(at_byte<std::int16_t>(bytes, 40) == 3);
        REQUIRE(at_byte<std::int16_t>(bytes, 70) == 16);  // float
        REQUIRE(at_byte<std::int16_t>(bytes, 72) == 32);
        REQUIRE(at_byte<float>(bytes, 108) == 352);
        REQUIRE(at_byte<char>(bytes, 123) == 2);  // mm
        REQUIRE(at_byte<std::int16_t>(bytes, 252) == 1);
        REQUIRE(at_byte<std::int16_t>(bytes, 254) == 1);
        for (std::size_t axis = 0; axis < 3; ++axis) {
            n[axis] = static_cast<std::size_t>(at_byte<std::int16_t>(bytes, 42 + 2 * axis));
            voxel_mm[axis] = at_byte<float>(bytes, 80 + 4 * axis);
            origin_mm[axis] = at_byte<float>(bytes, 280 + 16 * axis + 12);
            // qform and sform agree, without rotation.
            REQUIRE(at_byte<float>(bytes, 268 + 4 * axis) == at_byte<float>(bytes, 280 + 16 * axis + 12));
            REQUIRE(at_byte<float>(bytes, 256 + 4 * axis) == 0);
            for (std::size_t column = 0; column < 3; ++column) {
                REQUIRE(at_byte<float>(bytes, 280 + 16 * axis + 4 * column) ==
                        (axis == column ? static_cast<float>(voxel_mm[axis]) : 0));
            }
        }
        description = std::string(bytes.data() + 148);
        values.resize(n[0] * n[1] * n[2]);
        REQUIRE(bytes.size() == 352 + 4 * values.size());
        std::memcpy(values.data(), bytes.data() + 352, 4 * values.size());
    }

    [[nodiscard]] config::Vector3 place(std::size_t index) const {
        const std::array<std::size_t, 3> i = {index % n[0], index / n[0] % n[1], index / n[0] / n[1]};
        config::Vector3 mm{};
        for (std::size_t axis = 0; axis < 3; ++axis)
            mm[axis] = origin_mm[axis] + static_cast<double>(i[axis]) * voxel_mm[axis];
        return mm;
    }
    static double distance(const config::Vector3& a, const config::Vector3& b) {
        return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
    }
    /// The place of the largest value within a sphere.
    [[nodiscard]] config::Vector3 peak(const config::Vector3& middle, double radius) const {
        std::size_t best = 0;
        float largest = -1;
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (values[i] <= largest || distance(place(i), middle) > radius) continue;
            largest = values[i];
            best = i;
        }
        return place(best);
    }
    /// Centre of mass within a sphere.
    [[nodiscard]] config::Vector3 centre(const config::Vector3& middle, double radius) const {
        config::Vector3 sum{};
        double all = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
            const auto mm = place(i);
            if (distance(mm, middle) > radius) continue;
            all += values[i];
            for (std::size_t axis = 0; axis < 3; ++axis)
                sum[axis] += values[i] * mm[axis];
        }
        for (double& x : sum)
            x /= all;
        return sum;
    }
};

/// Half as long as export_scanner(): its image takes a quarter of the time.
inline config::Scanner short_scanner() {
    config::Scanner scanner = export_scanner();
    scanner.geometry.modules.z = 1;
    scanner.geometry.bdm_count /= 2;
    return scanner;
}

inline Outcome imaged(const std::filesystem::path& from, const std::filesystem::path& to,
                      const std::string& options = "") {
    return run_petlm("image" + quoted(from) + "--output" + quoted(to) +
                     "--depth-mm 0 --backend cpu --no-cache " + options);
}

/// Records of a cylinder along the axis around a place, nearly all on different pairs of crystals; every
/// third is a delayed.
inline gpu::RecordVector<gpu::Coincidence> cylinder_source(const config::Scanner& scanner,
                                                           const config::Vector3& middle, double radius,
                                                           double length, std::size_t count) {
    const geometry::HitFinder finder(scanner);
    std::mt19937_64 random(8);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform(-1, 1);
    gpu::RecordVector<gpu::Coincidence> out;
    while (out.size() < count) {
        config::Vector3 u = {normal(random), normal(random), normal(random)};
        const double norm = std::hypot(u[0], u[1], u[2]);
        for (double& x : u)
            x /= norm;
        config::Vector3 from = {uniform(random), uniform(random), uniform(random)};
        if (std::hypot(from[0], from[1]) > 1) continue;
        from = {middle[0] + radius * from[0], middle[1] + radius * from[1], middle[2] + length / 2 * from[2]};
        const auto a = finder.find(from, u);
        const auto b = finder.find(from, {-u[0], -u[1], -u[2]});
        if (!a || !b) continue;
        gpu::Coincidence c;
        c.time = run_start + 1000 * out.size();
        c.crystal_a = a->crystal;
        c.crystal_b = b->crystal;
        c.kind = out.size() % 3 == 2 ? gpu::Kind::delayed : gpu::Kind::prompt;
        out.push_back(c);
    }
    return out;
}

/// The input of EM from the prompts and delayeds of records, in `subsets` subsets.
struct EmInput {
    config::Scanner scanner = export_scanner();
    gpu::PairRule rule = gpu::PairRule::of(scanner.geometry, {});
    image::Grid grid{{33, 33, 27}, 1.9};
    net::WorkerPool pool;
    corrections::LineFactors factors{scanner, config::DepthOfInteraction::fixed(0)};
    const config::LineGeometry& geometry = factors.geometry();
    const std::vector<float>& sensitivity;
    image::Lines lines;

    EmInput(const gpu::RecordVector<gpu::Coincidence>& records, std::size_t subsets,
            std::uint32_t threads = 2, const image::TofBins& tof = {})
        : pool(threads), sensitivity(once(*this)) {
        image::PairCounts counts(scanner.geometry.crystal_count(), 1U << 20U, pool, tof);
        counts.add(records);
        counts.finish();
        image::RandomsByModules randoms(scanner.geometry, rule);
        for (const auto& c : of_kind(records, gpu::Kind::delayed))
            randoms.add(c.crystal_a, c.crystal_b);
        const auto expected = [&](image::Pair pair) { return randoms.expected(pair); };
        lines = image::make_lines(factors, grid, counts.measured(), {expected, {}, {}}, subsets);
    }
    /// Computed once: it is the same for all inputs.
    static const std::vector<float>& once(EmInput& of) {
        static const auto all = image::sensitivity(of.factors, of.scanner, of.rule, of.grid, of.pool);
        return all;
    }
    image::EmResult run(std::uint32_t iterations, image::Projector& projector, double psf_mm = 0) {
        image::EmOptions options;
        options.iterations = iterations;
        options.psf_mm = psf_mm;
        return image::reconstruct(projector, grid, lines, sensitivity, pool, options);
    }
    image::EmResult run(std::uint32_t iterations, double psf_mm = 0) {
        return run(iterations, *image::make_host_projector(grid, geometry, pool), psf_mm);
    }
};

}  // namespace petacq::test
