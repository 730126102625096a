// Files that an export writes. Until the whole export is there they have ".partial" behind their names; what
// an error leaves behind is removed, and what a kill leaves behind is known by its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

namespace petacq::petlm {

/// Not for use by several threads at a time.
class ExportOutputs {
  public:
    explicit ExportOutputs(bool force) : force_(force) {}
    /// Removes what was written unless commit() was called.
    ~ExportOutputs();
    ExportOutputs(const ExportOutputs&) = delete;
    ExportOutputs& operator=(const ExportOutputs&) = delete;

    /// Makes the directory where there is none. Throws UsageError when a file is there, std::system_error
    /// also for one that cannot be written to.
    void make_directory(const std::filesystem::path& path);
    /// A file that this export may write. Throws UsageError when it exists, unless forced; with force it is
    /// replaced, and removed when this export does not write it after all.
    void claim(const std::filesystem::path& file);
    /// Where to write a file until commit().
    [[nodiscard]] static std::filesystem::path partial(const std::filesystem::path& file);
    /// Gives every file that was written its name. Throws std::system_error.
    void commit();

  private:
    bool force_;
    bool done_ = false;
    std::filesystem::path made_;  ///< directory
    std::vector<std::filesystem::path> claimed_;
};

/// Writes through a large buffer. Every failure is a std::system_error that names the file.
class OutputFile {
  public:
    /// Makes the partial file of `file`.
    explicit OutputFile(const std::filesystem::path& file);
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    /// Room for `bytes` (at most 64 KiB), to be filled in by the caller and then given to wrote().
    char* room(std::size_t bytes) {
        if (static_cast<std::size_t>(buffer_.get() + capacity - at_) < bytes) flush();
        return at_;
    }
    void wrote(std::size_t bytes) { at_ += bytes; }
    /// Values one behind the other, as they stand in memory.
    template <class... Value>
    void put(const Value&... values) {
        char* to = room((sizeof(Value) + ...));
        ((std::memcpy(to, &values, sizeof(Value)), to += sizeof(Value)), ...);
        at_ = to;
    }
    void text(std::string_view text);
    /// Bytes given to it so far.
    [[nodiscard]] std::uint64_t bytes() const {
        return flushed_ + static_cast<std::uint64_t>(at_ - buffer_.get());
    }
    void close();

  private:
    static constexpr std::size_t capacity = std::size_t{4} << 20U;
    void flush();
    [[noreturn]] void fail(int error) const;

    std::filesystem::path path_;
    int file_ = -1;
    std::unique_ptr<char[]> buffer_;  // NOLINT(modernize-avoid-c-arrays): left uninitialised
    char* at_;
    std::uint64_t flushed_ = 0;
};

/// A whole file of text.
void write_text(const std::filesystem::path& file, std::string_view text);

}  // namespace petacq::petlm
