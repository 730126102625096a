#include "daemon/space/reserve.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

namespace petacq::daemon {

RunReserve::RunReserve(const std::filesystem::path& directory)
    : file_(directory / reserve_file, IfExists::fail, 0640) {
    file_.lock();
    file_.allocate(room);
}

bool is_being_written(const std::filesystem::path& directory) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-vararg)
    const int descriptor = ::open((directory / reserve_file).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return errno == EACCES;  // another user's: who knows
    const bool locked = ::flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    ::close(descriptor);
    return locked;
}

}  // namespace petacq::daemon
