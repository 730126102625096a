// The bytes of a capture, from its beginning to its end, also of one compressed with gzip. Internal to net/.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace petacq::net {

/// Reads through a window instead of mapping the file: a file that becomes shorter meanwhile is an error
/// then, and not a signal. For one thread at a time.
class CaptureBytes {
  public:
    /// Throws std::system_error if the file cannot be opened. What is not a regular file is empty.
    explicit CaptureBytes(const std::string& file);

    /// The next `bytes` bytes, or all that are left if these are fewer; valid until the next call. Throws
    /// PcapError if the file has become shorter or its compressed data are damaged or cut, std::system_error
    /// if it cannot be read.
    std::span<const std::byte> ahead(std::size_t bytes) {
        if (filled_ - at_ < bytes) fill(bytes);
        return std::span(window_).subspan(at_, std::min(bytes, filled_ - at_));
    }
    /// Goes on behind bytes that were ahead.
    void pass(std::size_t bytes) {
        at_ += bytes;
        passed_ += bytes;
    }

    [[nodiscard]] std::uint64_t size() const { return size_; }  ///< of the file, when it was opened
    [[nodiscard]] std::uint64_t passed() const { return passed_; }
    /// Bytes of the file that have been used, about; in a compressed one, those that have been read.
    [[nodiscard]] std::uint64_t position() const;

  private:
    struct Close {
        void operator()(gzFile_s* file) const { gzclose_r(file); }
    };

    void fill(std::size_t bytes);
    [[nodiscard]] std::uint64_t size_now() const;
    std::size_t read(std::byte* to, std::size_t bytes);

    std::string name_;
    int descriptor_ = -1;  // of file_
    std::unique_ptr<gzFile_s, Close> file_;
    bool compressed_ = false;
    bool ended_ = false;
    std::uint64_t size_ = 0;
    std::uint64_t read_ = 0;
    std::uint64_t passed_ = 0;
    std::vector<std::byte> window_;
    std::size_t at_ = 0;
    std::size_t filled_ = 0;
};

}  // namespace petacq::net
