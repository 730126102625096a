#include "daemon/system/sockets/listening_socket.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "daemon/system/logging.hpp"

namespace petacq::daemon {

namespace {

constexpr mode_t lock_mode = 0660;

std::string reason(int error) {
    return std::generic_category().message(error);
}

sockaddr_un address_of(const std::filesystem::path& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.native().size());  // length checked by the constructor
    return address;
}

}  // namespace

ListeningSocket::ListeningSocket(const char* name, std::filesystem::path path, mode_t mode,
                                 std::optional<gid_t> group)
    : name_(name), path_(std::move(path)), mode_(mode), group_(group) {
    constexpr std::size_t longest = sizeof(sockaddr_un::sun_path) - 1;
    if (path_.empty())
        throw std::runtime_error(std::string(name_) + ": expected a path, found an empty string");
    if (path_.native().size() > longest) {
        throw failure("path of " + std::to_string(path_.native().size()) +
                      " bytes is too long for a socket, expected at most " + std::to_string(longest));
    }
    const std::filesystem::path directory = path_.has_parent_path() ? path_.parent_path() : ".";
    std::error_code ignored;
    if (!std::filesystem::is_directory(directory, ignored)) {
        throw failure("directory " + directory.string() + " does not exist");
    }
    try {
        lock();
        remove_stale();
        listen();
    } catch (...) {
        release();
        throw;
    }
}

int ListeningSocket::duplicate() const {
    const int descriptor = ::fcntl(descriptor_, F_DUPFD_CLOEXEC, 0);
    if (descriptor < 0) throw failure("cannot duplicate it: " + reason(errno));
    return descriptor;
}

ListeningSocket::~ListeningSocket() {
    release();
}

std::runtime_error ListeningSocket::failure(const std::string& message) const {
    return std::runtime_error(name_ + (" " + path_.string()) + ": " + message);
}

int ListeningSocket::stream_socket() const {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) throw failure("cannot create a socket: " + reason(errno));
    return fd;
}

/// The errno of a connection attempt; 0 if a program listens.
int ListeningSocket::try_connect() const {
    const int fd = stream_socket();
    const sockaddr_un address = address_of(path_);
    const int result = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    const int error = result == 0 ? 0 : errno;
    ::close(fd);
    return error;
}

void ListeningSocket::lock() {
    const std::string file = path_.string() + ".lock";
    lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, lock_mode);
    if (lock_ < 0) throw failure("cannot open the lock file " + file + ": " + reason(errno));
    if (::flock(lock_, LOCK_EX | LOCK_NB) == 0) return;
    if (errno == EWOULDBLOCK) {
        throw failure("another petacqd is listening on " + path_.string() + " (it holds " + file + ")");
    }
    throw failure("cannot lock " + file + ": " + reason(errno));
}

void ListeningSocket::remove_stale() {
    struct stat found {};
    if (::lstat(path_.c_str(), &found) != 0) {
        if (errno == ENOENT) return;
        throw failure("cannot examine it: " + reason(errno));
    }
    if (!S_ISSOCK(found.st_mode)) {
        throw failure("something that is not a socket is there; move it away");
    }
    const int error = try_connect();
    // EAGAIN: a program listens, and its queue of connections is full.
    if (error == 0 || error == EAGAIN) {
        throw failure("another petacqd is listening on " + path_.string());
    }
    if (error != ECONNREFUSED) {
        throw failure("cannot test the socket that is there: " + reason(error));
    }
    if (::unlink(path_.c_str()) != 0) throw failure("cannot remove the stale socket: " + reason(errno));
    log_warning("{} {}: removed the stale socket of an earlier daemon", name_, path_.string());
}

void ListeningSocket::listen() {
    descriptor_ = stream_socket();
    // bind() gives the file the mode of the descriptor, less the umask. So the file is never open to others,
    // not even for a moment, and the umask of the process stays as it is. chmod() then adds what the umask
    // took away.
    if (::fchmod(descriptor_, mode_) != 0) throw failure("cannot set its mode: " + reason(errno));
    const sockaddr_un address = address_of(path_);
    if (::bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        throw failure("cannot create it: " + reason(errno));
    }
    struct stat made {};
    if (::lstat(path_.c_str(), &made) != 0) throw failure("cannot examine it: " + reason(errno));
    device_ = made.st_dev;
    inode_ = made.st_ino;
    bound_ = true;
    // A service that runs in that group may not be allowed to change owners.
    if (group_ && made.st_gid != *group_) give_to_group();
    if (::chmod(path_.c_str(), mode_) != 0) throw failure("cannot set its mode: " + reason(errno));
    if (::listen(descriptor_, SOMAXCONN) != 0) throw failure("cannot listen: " + reason(errno));
}

void ListeningSocket::give_to_group() {
    if (::chown(path_.c_str(), static_cast<uid_t>(-1), *group_) == 0) return;
    log_warning("{} {}: cannot give it to group {}: {}", name_, path_.string(), *group_, reason(errno));
}

void ListeningSocket::release() noexcept {
    // While the descriptor is open, no other file can get its inode number: compare before closing it.
    struct stat found {};
    if (bound_ && ::lstat(path_.c_str(), &found) == 0 && found.st_dev == device_ && found.st_ino == inode_) {
        ::unlink(path_.c_str());
    }
    bound_ = false;
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
    // Keep the lock file: another daemon may just have opened it.
    if (lock_ >= 0) ::close(std::exchange(lock_, -1));
}

}  // namespace petacq::daemon
