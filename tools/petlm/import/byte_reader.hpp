// Values of binary files from outside, one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "config/base/file.hpp"

namespace petacq::petlm {

/// Not thread-safe.
class ByteReader {
  public:
    /// Throws config::IoError.
    explicit ByteReader(const std::filesystem::path& file);

    [[nodiscard]] bool at_end() const { return done_ == size_; }
    /// The next value as it is in memory. Throws BadInput where the file ends before it, std::system_error.
    template <class Value>
    Value take() {
        Value value;
        take(&value, sizeof value);
        return value;
    }
    /// Throws as take() does.
    void skip(std::size_t bytes);
    [[nodiscard]] std::uint64_t size() const { return size_; }
    [[nodiscard]] std::uint64_t done() const { return done_; }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    /// Throws BadInput with file and offset in front.
    [[noreturn]] void refuse(const std::string& what) const;

  private:
    void take(void* to, std::size_t bytes);

    std::filesystem::path path_;
    config::FilePointer file_;
    std::uint64_t size_;
    std::uint64_t done_ = 0;
    std::vector<std::byte> buffer_;
    std::size_t at_ = 0;
    std::size_t end_ = 0;
};

}  // namespace petacq::petlm
