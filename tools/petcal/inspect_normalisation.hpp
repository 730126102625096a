// The contents of a normalisation in figures, and how two differ.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "config/scanner/scanner.hpp"
#include "tools/normalisation/normalisation.hpp"

namespace petacq::petcal {

/// Whether the file holds a normalisation rather than a calibration. Throws as config::read_hdf5_file.
bool is_normalisation(const std::filesystem::path& file);

/// Hash, statistics of efficiencies and factors, dead units and crystals
/// (docs/reference/normalisation-format.md lists the members).
nlohmann::json inspect_normalisation(const config::Geometry& geometry,
                                     const normalisation::Normalisation& normalisation);
/// The same as text.
std::string inspect_normalisation_text(const nlohmann::json& figures);

/// Relative differences of efficiencies and factors, B to A, and crystals that are dead in one of them.
nlohmann::json compare_normalisations(const normalisation::Normalisation& a,
                                      const normalisation::Normalisation& b);
std::string compare_normalisations_text(const nlohmann::json& figures);

}  // namespace petacq::petcal
