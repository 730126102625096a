// Lines and numbers of text files from outside.
#pragma once

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/base/file.hpp"

namespace petacq::petlm {

/// The whole text as a number; nothing if it is none.
template <class Number>
std::optional<Number> number_from(std::string_view text) {
    Number number{};
    const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
    if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
    return number;
}

/// Reads a file line by line. Not thread-safe.
class LineReader {
  public:
    /// Throws config::IoError.
    explicit LineReader(const std::filesystem::path& file);

    /// Reads the next line that is not empty, without its end. False at the end of the file. Throws BadInput
    /// for a line that is too long to be a record, std::system_error.
    bool next();
    [[nodiscard]] const std::string& line() const { return line_; }
    /// Its parts, without blanks around them; valid until next().
    [[nodiscard]] const std::vector<std::string_view>& fields(char separator);
    /// Throws BadInput with file and line in front.
    [[noreturn]] void refuse(const std::string& what) const;
    [[nodiscard]] std::uint64_t size() const { return size_; }
    [[nodiscard]] std::uint64_t done() const { return done_; }

  private:
    static constexpr std::size_t longest_line = 65536;
    bool fill();

    std::filesystem::path path_;
    config::FilePointer file_;
    std::uint64_t size_;
    std::uint64_t done_ = 0;
    std::uint64_t number_ = 0;
    std::vector<char> buffer_;
    std::size_t at_ = 0;
    std::size_t end_ = 0;
    std::string line_;
    std::vector<std::string_view> fields_;
};

}  // namespace petacq::petlm
