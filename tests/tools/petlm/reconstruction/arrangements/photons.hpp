// Decays in any scanner, photon by photon: what its crystals absorb, without scatter and with certainty of
// place. Slow and obvious, from the description alone.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "config/scanner/arrangement.hpp"
#include "config/scanner/scanner.hpp"
#include "gpu/rules/pair_rule.hpp"

namespace petacq::test {

config::Scanner example_scanner(const std::string& name);

/// Two crystals that absorb the photons of one decay.
struct FoundPair {
    std::uint32_t a;
    std::uint32_t b;
};

class Photons {
  public:
    Photons(const config::Scanner& scanner, std::uint64_t seed);

    double uniform() { return uniform_(random_); }
    config::Vector3 direction();
    config::Vector3 in_cylinder(double radius, double length);
    /// The crystal that absorbs a photon.
    std::optional<std::uint32_t> absorbed(const config::Vector3& from, const config::Vector3& direction);
    /// The pairs that the rule takes of so many decays.
    std::vector<FoundPair> pairs(std::size_t decays, const gpu::PairRule& rule,
                                 const std::function<config::Vector3()>& place);

  private:
    struct Solid {
        config::Vector3 middle;
        double radius;
        std::vector<double> per_mm;  // [layer]
    };
    /// Of a ray in a layer of a module.
    struct Part {
        double begin;
        double end;
        double per_mm;
        std::uint32_t module;
        std::uint32_t layer;
    };
    void cross(std::uint32_t m, const config::Vector3& from, const config::Vector3& u);
    [[nodiscard]] std::optional<std::uint32_t> crystal_at(const Part& part, const config::Vector3& from,
                                                          const config::Vector3& u, double distance) const;

    const config::Arrangement& arrangement_;
    std::vector<Solid> solids_;
    std::vector<Part> parts_;
    std::mt19937_64 random_;
    std::uniform_real_distribution<double> uniform_{0, 1};
};

}  // namespace petacq::test
