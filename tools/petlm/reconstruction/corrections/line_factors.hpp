// What multiplies the true pairs of each line: solid angle, normalisation, attenuation.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/scanner/depth_of_interaction.hpp"
#include "tools/geometry/pair_response.hpp"
#include "tools/normalisation/normalisation.hpp"
#include "tools/petlm/reconstruction/corrections/attenuation.hpp"
#include "tools/petlm/reconstruction/corrections/axial_columns.hpp"

namespace petacq::corrections {

/// The files and objects that a user names.
struct LineOptions {
    std::optional<std::filesystem::path> normalisation;
    std::vector<std::string> attenuation;  ///< as AttenuatingObject::of takes them
    double object_mm = 0;                  ///< by which the object is moved along the axis
};

/// `scatter`: simulation, none, or absent. Throws petlm::UsageError for another word, and for a simulation
/// without anything that scatters.
void check_scatter(const std::optional<std::string>& scatter, const LineOptions& options);

/// The model of a line is
///     true pairs = weight * normalisation * attenuation * live * activity along the line,
/// where the weight goes with solid_angle(). No function depends on the order of the crystals. Thread-safe.
class LineFactors {
  public:
    /// `radians`: the angles of a scanner that turns. Its crystals then have numbers, those of each angle
    /// after those of the one before (config::LineGeometry::turn_to), and functions of two crystals take
    /// numbers of one angle. Empty: it stands still, and the numbers are those of the crystals. Throws as
    /// normalisation::load and AttenuatingObject::of do.
    LineFactors(const config::Scanner& scanner, const config::DepthOfInteraction& depth,
                const LineOptions& options = {}, const std::vector<double>& radians = {});

    /// The crystal with this number.
    [[nodiscard]] std::uint32_t crystal(std::uint32_t number) const { return number % crystals_; }
    [[nodiscard]] std::uint32_t crystals() const { return crystals_; }
    /// At how many angles the crystals are.
    [[nodiscard]] std::uint32_t angles() const {
        return static_cast<std::uint32_t>(lines_.places.size()) / crystals_;
    }

    /// scale * cos * cos / distance^2, with the angles at which the line meets the front faces and the
    /// distance between these (mm): the chance that a pair of photons flies along the line is in this
    /// proportion. In the long form, where crystals may differ, this is multiplied by
    /// geometry::PairResponse, and the distance is that of the ends of the line.
    [[nodiscard]] double solid_angle(std::uint32_t a, std::uint32_t b, double scale = 1) const;
    /// What solid_angle() with the scale 1 is multiplied by, mm^4: the square of the area that all front
    /// faces of a ring have. In the long form 1, as solid_angle() has the areas.
    [[nodiscard]] double face_squared() const { return face_squared_; }
    /// Of a ring. solid_angle() divided by the same of the ends of the line, which are further apart: weighs
    /// lines through the ends as those through the front faces.
    [[nodiscard]] double face_share(std::uint32_t a, std::uint32_t b) const;
    /// How well the pair is found, relative to the mean of all pairs; 1 if unknown, 0: one of them is dead.
    [[nodiscard]] double normalisation(std::uint32_t a, std::uint32_t b) const {
        return normalisation_ ? normalisation::factor_of(geometry_, *normalisation_, crystal(a), crystal(b))
                              : 1;
    }
    /// The same of photons that do not fly along the line of the pair: without the factors by place.
    [[nodiscard]] double efficiencies(std::uint32_t a, std::uint32_t b) const {
        if (!normalisation_) return 1;
        const std::vector<float>& efficiency = normalisation_->efficiency;
        return static_cast<double>(efficiency[crystal(a)]) * static_cast<double>(efficiency[crystal(b)]);
    }
    /// The share of pairs that leave the object without interaction; 1 without an object.
    [[nodiscard]] double attenuation(std::uint32_t a, std::uint32_t b) const {
        const config::LineEnds line = ends(a, b);
        return attenuation(line.a, line.b);
    }
    [[nodiscard]] double attenuation(const Vector3& from, const Vector3& to) const;

    /// All that these functions depend on.
    void add_to(config::Sha256& digest) const;

    [[nodiscard]] bool normalised() const { return normalisation_.has_value(); }
    /// The file as read; only if normalised().
    [[nodiscard]] const normalisation::Normalisation& file() const { return *normalisation_; }
    [[nodiscard]] const AttenuatingObject& object() const { return object_; }
    [[nodiscard]] config::LineEnds ends(std::uint32_t a, std::uint32_t b) const { return lines_.ends(a, b); }
    [[nodiscard]] const config::LineGeometry& geometry() const { return lines_; }
    [[nodiscard]] const AxialColumns& columns() const { return columns_; }
    [[nodiscard]] const config::DepthOfInteraction& depth() const { return lines_.depth; }

  private:
    config::Geometry geometry_;
    std::uint32_t crystals_;
    config::LineGeometry lines_;
    AxialColumns columns_;
    std::optional<geometry::PairResponse> response_;  ///< of the long form
    double face_squared_;
    std::optional<normalisation::Normalisation> normalisation_;
    AttenuatingObject object_;
};

}  // namespace petacq::corrections
