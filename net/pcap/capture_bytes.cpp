#include "net/pcap/capture_bytes.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "net/pcap/packet_file.hpp"

namespace petacq::net {

namespace {

// Stays in the cache of a core between reading and parsing.
constexpr std::size_t window_bytes = 1U << 19;
// zlib passes plain files on without a copy if more than twice this is asked for.
constexpr unsigned compressed_bytes = 1U << 17;

}  // namespace

CaptureBytes::CaptureBytes(const std::string& file) : name_(file), window_(window_bytes) {
    descriptor_ = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0) {
        const int error = errno;
        if (descriptor_ >= 0) ::close(descriptor_);
        throw std::system_error(error, std::generic_category(), file);
    }
    size_ = S_ISREG(status.st_mode) ? static_cast<std::uint64_t>(status.st_size) : 0;
    ended_ = size_ == 0;
    ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_SEQUENTIAL);
    file_.reset(gzdopen(descriptor_, "rb"));
    if (!file_) {
        ::close(descriptor_);
        throw std::system_error(ENOMEM, std::generic_category(), file);
    }
    gzbuffer(file_.get(), compressed_bytes);
    compressed_ = !ended_ && gzdirect(file_.get()) == 0;
}

std::uint64_t CaptureBytes::size_now() const {
    struct stat status {};
    return ::fstat(descriptor_, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

std::uint64_t CaptureBytes::position() const {
    if (!compressed_) return passed_;
    const auto offset = gzoffset(file_.get());
    return offset < 0 ? 0 : std::min(static_cast<std::uint64_t>(offset), size_);
}

/// Fewer bytes than asked for only at the end.
std::size_t CaptureBytes::read(std::byte* to, std::size_t bytes) {
    // What another program appends meanwhile is not read.
    if (!compressed_) bytes = std::min<std::uint64_t>(bytes, size_ - read_);
    const int got = bytes == 0 ? 0 : gzread(file_.get(), to, static_cast<unsigned>(bytes));
    int error = Z_OK;
    const char* const why = gzerror(file_.get(), &error);
    if (const std::uint64_t now = size_now(); now < size_) {
        throw PcapError(name_ + ": the capture became shorter while it was read: " + std::to_string(now) +
                        " bytes, " + std::to_string(size_) +
                        " when it was opened; another program replaces or truncates it");
    }
    if (error == Z_ERRNO) throw std::system_error(errno, std::generic_category(), name_);
    if (error == Z_BUF_ERROR)
        throw PcapError(name_ + ": ends within its compressed data: the capture was cut");
    if (got < 0 || error != Z_OK) throw PcapError(name_ + ": its compressed data are damaged: " + why);
    const auto read = static_cast<std::size_t>(got);
    if (!compressed_ && read < bytes)
        throw PcapError(name_ + ": the capture became shorter while it was read");
    read_ += read;
    return read;
}

/// Until `bytes` are ahead, or the end is reached.
void CaptureBytes::fill(std::size_t bytes) {
    if (ended_) return;
    std::copy(window_.begin() + static_cast<std::ptrdiff_t>(at_),
              window_.begin() + static_cast<std::ptrdiff_t>(filled_), window_.begin());
    filled_ -= at_;
    at_ = 0;
    // A packet may be longer than a window.
    if (window_.size() < bytes + window_bytes / 2) window_.resize(bytes + window_bytes / 2);
    while (filled_ < bytes && !ended_) {
        const std::size_t wanted = window_.size() - filled_;
        const std::size_t got = read(window_.data() + filled_, wanted);
        filled_ += got;
        ended_ = got < wanted;
    }
}

}  // namespace petacq::net
