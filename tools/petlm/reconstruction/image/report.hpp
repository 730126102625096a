// What an image was corrected for, and what its values are, with the sentences that tell the user.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tools/petlm/reconstruction/errors/error_budget.hpp"

namespace petacq::image {

struct Correction {
    const char* name;  ///< "normalisation", ...
    bool made = false;
    std::string sentence;  ///< with its figure, or why it was not made
    std::map<std::string, std::variant<double, std::string>> figures;
};

/// What the values of an image are.
struct Quantity {
    bool activity = false;    ///< concentration, otherwise decays per voxel
    bool calibrated = false;  ///< by an activity factor
    std::string unit = "decays per voxel";
    double scale = 1;               ///< from decays per voxel
    std::optional<double> seconds;  ///< recorded; absent: unknown
    std::optional<std::string> time_of_activity;
    std::string nuclide;    ///< empty: unknown
    bool absorbed = false;  ///< a crystal detects what its material absorbs; else, each photon that meets it
};

struct Report {
    bool asked = false;  ///< a user named something to correct for
    Quantity quantity;
    std::vector<Correction> list;
    ErrorCauses errors;

    [[nodiscard]] std::vector<std::string> sentences() const;
    /// For pictures and the NIfTI description: what was corrected for, and what was not. One line.
    [[nodiscard]] std::string warning() const;
    [[nodiscard]] std::string short_warning() const;

  private:
    [[nodiscard]] std::vector<std::string> names(bool made) const;
};

/// That of one position of the bed.
struct PositionReport {
    double bed_mm;  ///< from the middle of its positions
    Report report;
};

}  // namespace petacq::image
