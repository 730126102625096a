#include "tests/support/temporary_directory.hpp"

#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace petacq::test {

TemporaryDirectory::TemporaryDirectory(const std::filesystem::path& parent) {
    std::string name = (parent / "petacq-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
        throw std::system_error(errno, std::generic_category(), "mkdtemp " + name);
    }
    path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

}  // namespace petacq::test
