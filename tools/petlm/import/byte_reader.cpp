#include "tools/petlm/import/byte_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "tools/petlm/base/status.hpp"

namespace petacq::petlm {

ByteReader::ByteReader(const std::filesystem::path& file)
    : path_(file),
      file_(config::open_for_reading(file)),
      size_(std::filesystem::file_size(file)),
      buffer_(1U << 18U) {}

void ByteReader::take(void* to, std::size_t bytes) {
    if (size_ - done_ < bytes) {
        refuse(fmt::format(
            "{} bytes are left; expected a record of {}: the file is truncated, or of another format",
            size_ - done_, bytes));
    }
    auto* out = static_cast<std::byte*>(to);
    done_ += bytes;
    while (bytes != 0) {
        if (at_ == end_) {
            at_ = 0;
            end_ = std::fread(buffer_.data(), 1, buffer_.size(), file_.get());
            if (end_ == 0)
                throw std::system_error(EIO, std::generic_category(), path_.string() + ": cannot be read");
        }
        const std::size_t part = std::min(bytes, end_ - at_);
        std::memcpy(out, buffer_.data() + at_, part);
        at_ += part;
        out += part;
        bytes -= part;
    }
}

void ByteReader::skip(std::size_t bytes) {
    std::array<std::byte, 64> ignored;
    while (bytes != 0) {
        const std::size_t part = std::min(bytes, ignored.size());
        take(ignored.data(), part);
        bytes -= part;
    }
}

void ByteReader::refuse(const std::string& what) const {
    throw BadInput(fmt::format("{}: byte {}: {}", path_.string(), done_, what));
}

}  // namespace petacq::petlm
