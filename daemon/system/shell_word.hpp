// Text for a shell.
#pragma once

#include <string>

namespace petacq::daemon {

/// The text, quoted so that a shell reads it as one word. Harmless text stays as it is.
std::string shell_word(const std::string& text);

}  // namespace petacq::daemon
