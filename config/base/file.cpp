#include "config/base/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <string>
#include <system_error>

#include "config/base/error.hpp"

namespace petacq::config {

FilePointer open_for_reading(const std::filesystem::path& file) {
    std::error_code ignored;
    if (std::filesystem::is_directory(file, ignored))
        throw IoError(file.string() + ": is a directory; expected a file");
    const auto reason = [] { return std::generic_category().message(errno); };
    // Opening a pipe would wait for somebody who writes into it.
    const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0) throw IoError(file.string() + ": cannot be opened for reading: " + reason());
    struct stat status {};
    if (::fstat(descriptor, &status) == 0 && !S_ISREG(status.st_mode)) {
        ::close(descriptor);
        throw IoError(file.string() + ": is not a regular file");
    }
    FilePointer f(::fdopen(descriptor, "rb"));
    if (!f) {
        const std::string why = reason();
        ::close(descriptor);
        throw IoError(file.string() + ": cannot be opened for reading: " + why);
    }
    return f;
}

std::filesystem::path temporary_name(const std::filesystem::path& file) {
    std::random_device random;
    std::string name = file.string() + ".tmp-";
    for (int i = 0; i < 16; ++i)
        name += "0123456789abcdef"[random() % 16];
    return name;
}

}  // namespace petacq::config
