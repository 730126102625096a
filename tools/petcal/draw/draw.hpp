// petcal draw: a drawing of a scanner in three dimensions, as a page or as a picture.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "config/scanner/scanner.hpp"
#include "tools/petcal/draw/scene.hpp"

namespace petacq::petcal {

struct DrawOptions {
    std::filesystem::path output;
    std::string suffix;  ///< .html or .png: of the name that the file has in the end
    std::string colour = "module";
};

/// Writes a page that needs nothing else, or a picture with a parallel projection. Throws petlm::UsageError
/// for another suffix or colour, a picture without cairo included; std::system_error when it cannot be
/// written.
void draw(const config::Scanner& scanner, const DrawOptions& options);

/// Absent for a name that there is not: module, bdm, board, type, layer.
std::optional<SceneColour> scene_colour(std::string_view name);
std::string page_of(const config::Scanner& scanner, std::string_view colour);
/// The contents of a PNG file. Only in programs with cairo.
std::string picture_of(const config::Scanner& scanner, SceneColour colour);
/// The script of the page.
std::string_view drawing_script();

}  // namespace petacq::petcal
