// What a drawing of a scanner shows: a box for each layer of crystals of each detector unit.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "config/scanner/arrangement.hpp"

namespace petacq::petcal {

/// The crystals of one detector unit in one layer of a module: all of some columns and rows.
struct SceneBox {
    std::uint32_t module = 0;
    std::uint32_t layer = 0;
    std::uint32_t bdm = 0;
    std::uint32_t du = 0;
    std::optional<std::uint32_t> board{};  ///< index of the source that carries the BDM; absent: not listed
    std::uint32_t first_column = 0;
    std::uint32_t last_column = 0;
    std::uint32_t first_row = 0;
    std::uint32_t last_row = 0;
    std::array<config::Vector3, 8>
        corners{};  ///< corner i: bit 0 high along y, bit 1 along z, bit 2 the back
};

struct Scene {
    std::vector<SceneBox> boxes;
    double reach_mm = 0;  ///< of the corner that is furthest from the origin
};
Scene scene_of(const config::Scanner& scanner);

/// What the boxes of a drawing can be coloured by.
enum class SceneColour : std::uint8_t { module, bdm, board, type, layer };
/// Absent where it is not known.
std::optional<std::uint32_t> number_of(const SceneBox& box, const config::Arrangement& arrangement,
                                       SceneColour by);
/// 0xRRGGBB; neighbouring numbers have colours that differ.
std::uint32_t colour_of(std::optional<std::uint32_t> number);

/// All that the page needs to draw boxes and crystals and to number them. Crystals follow from their layer,
/// so that it stays small.
nlohmann::json json_of(const Scene& scene, const config::Scanner& scanner);

}  // namespace petacq::petcal
