// What the reports share: a page with a style, and escaped text.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace petacq::petcal {

/// Text for HTML, whatever it contains.
std::string escaped(std::string_view text);

/// As by printf.
[[gnu::format(printf, 1, 2)]] std::string printed(const char* format, ...);

/// Writes a page with the title as its heading and this body. Throws config::IoError.
void write_page(const std::filesystem::path& file, const std::string& title, const std::string& body);

}  // namespace petacq::petcal
