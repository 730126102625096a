// Files that a command writes. Until all of them are complete their names end in ".partial": an error removes
// them, and those that a killed program leaves behind can be told by their names.
#pragma once

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "daemon/system/file.hpp"

namespace petacq::petlm {

/// Not thread-safe.
class Outputs {
  public:
    explicit Outputs(bool force) : force_(force) {}
    /// Removes what was written unless commit() was called.
    ~Outputs();
    Outputs(const Outputs&) = delete;
    Outputs& operator=(const Outputs&) = delete;

    /// Creates the directory if it does not exist. Throws UsageError when the path is something else,
    /// std::system_error when the directory cannot be created or written to.
    void make_directory(const std::filesystem::path& path);
    /// Announces a file that this command may write. An existing file is a UsageError; with force it is
    /// replaced, or removed if the command does not write it after all.
    void claim(const std::filesystem::path& file);
    /// The name under which a file is written until commit().
    [[nodiscard]] static std::filesystem::path partial(const std::filesystem::path& file);
    /// The inverse of partial().
    [[nodiscard]] static std::filesystem::path final_name(std::filesystem::path partial);
    /// Gives every written file its name. Throws std::system_error.
    void commit();
    /// The files that were written, after commit().
    [[nodiscard]] const std::vector<std::filesystem::path>& written() const { return written_; }

  private:
    bool force_;
    bool done_ = false;
    std::filesystem::path made_;  ///< directory
    std::vector<std::filesystem::path> claimed_;
    std::vector<std::filesystem::path> written_;
};

/// Writes through a large buffer. Every failure is a std::system_error that names the file. Not thread-safe.
class OutputFile {
  public:
    /// Creates or overwrites the partial file of `file`.
    explicit OutputFile(const std::filesystem::path& file);

    /// Appends values as they are in memory, without padding between them.
    template <class... Value>
    void put(const Value&... values) {
        constexpr std::size_t bytes = (sizeof(Value) + ...);
        static_assert(bytes <= capacity);
        if (room() < bytes) flush();
        ((std::memcpy(at_, &values, sizeof(Value)), at_ += sizeof(Value)), ...);
    }
    void text(std::string_view text);
    void close();

  private:
    static constexpr std::size_t capacity = std::size_t{4} << 20U;
    [[nodiscard]] std::size_t room() const {
        return static_cast<std::size_t>(buffer_.get() + capacity - at_);
    }
    void flush();

    daemon::File file_;
    std::unique_ptr<char[]> buffer_;  // NOLINT(modernize-avoid-c-arrays): left uninitialised
    char* at_;
};

/// Writes a whole file of text.
void write_text(const std::filesystem::path& file, std::string_view text);

}  // namespace petacq::petlm
