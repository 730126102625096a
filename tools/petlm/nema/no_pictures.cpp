// Stands in for pictures.cpp in a program built without cairo.
#include "tools/petlm/nema/pictures.hpp"

namespace petacq::nema {

std::optional<std::string> no_pictures_reason() {
    return "this program was built without cairo";
}
void draw(const Chart& /*chart*/, const std::filesystem::path& /*file*/) {}

}  // namespace petacq::nema
