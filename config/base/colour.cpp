#include "config/base/colour.hpp"

#include <unistd.h>

#include <cstdlib>

namespace petacq::config {

bool colour_wanted(int descriptor) {
    const char* const no_colour = std::getenv("NO_COLOR");
    const char* const terminal = std::getenv("TERM");
    return ::isatty(descriptor) == 1 && (no_colour == nullptr || *no_colour == '\0') &&
           !(terminal != nullptr && std::string_view(terminal) == "dumb");
}

}  // namespace petacq::config
