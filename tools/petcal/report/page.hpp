// The page that the reports share.
#pragma once

#include <filesystem>
#include <string>

namespace petacq::petcal {

/// Writes a page with the title as its heading and this body. Throws std::system_error; what the file had
/// before then stays.
void write_page(const std::filesystem::path& file, const std::string& title, const std::string& body);

}  // namespace petacq::petcal
