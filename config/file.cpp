#include "config/file.hpp"

#include <cerrno>
#include <system_error>

#include "config/error.hpp"

namespace petacq::config {

FilePointer open_for_reading(const std::filesystem::path& file) {
    std::error_code ignored;
    if (std::filesystem::is_directory(file, ignored))
        throw IoError(file.string() + ": is a directory; expected a file");
    FilePointer f(std::fopen(file.c_str(), "rbe"));
    if (!f) {
        throw IoError(file.string() +
                      ": cannot be opened for reading: " + std::generic_category().message(errno));
    }
    return f;
}

}  // namespace petacq::config
