#include "tools/petlm/export_output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "tools/petlm/commands.hpp"

namespace petacq::petlm {

std::filesystem::path ExportOutputs::partial(const std::filesystem::path& file) {
    return file.string() + ".partial";
}

ExportOutputs::~ExportOutputs() {
    if (done_) return;
    std::error_code ignored;
    for (const auto& file : claimed_)
        std::filesystem::remove(partial(file), ignored);
    if (!made_.empty()) std::filesystem::remove(made_, ignored);  // when nothing is in it
}

void ExportOutputs::make_directory(const std::filesystem::path& path) {
    if (std::filesystem::is_directory(path)) {
        // To be known before hours of reading, not after.
        if (::access(path.c_str(), W_OK | X_OK) == 0) return;
        throw std::system_error(errno, std::generic_category(), path.string() + ": cannot be written to");
    }
    if (std::filesystem::exists(std::filesystem::symlink_status(path))) {
        throw UsageError(path.string() + " is there and no directory");
    }
    std::error_code failed;
    std::filesystem::create_directories(path, failed);
    if (failed) throw std::system_error(failed, path.string() + ": cannot make the directory");
    made_ = path;
}

void ExportOutputs::claim(const std::filesystem::path& file) {
    if (std::filesystem::exists(std::filesystem::symlink_status(file))) {
        if (!force_) {
            throw UsageError(file.string() +
                             " exists, nothing was written; name another place or use --force");
        }
        if (!std::filesystem::is_regular_file(file)) {
            throw UsageError(file.string() + " is no file, it is not replaced");
        }
    }
    claimed_.push_back(file);
}

void ExportOutputs::commit() {
    for (const auto& file : claimed_) {
        if (std::filesystem::exists(partial(file))) {
            std::filesystem::rename(partial(file), file);
        } else {
            // Left from an earlier export, it would pass for a part of this one.
            std::filesystem::remove(file);
        }
    }
    done_ = true;
}

OutputFile::OutputFile(const std::filesystem::path& file)
    : path_(ExportOutputs::partial(file)),
      buffer_(new char[capacity]),  // NOLINT(modernize-make-unique): left uninitialised
      at_(buffer_.get()) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-vararg)
    file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file_ < 0) fail(errno);
}

OutputFile::~OutputFile() {
    if (file_ >= 0) ::close(file_);
}

void OutputFile::fail(int error) const {
    throw std::system_error(error, std::generic_category(), path_.string() + ": cannot be written");
}

void OutputFile::flush() {
    for (const char* from = buffer_.get(); from != at_;) {
        const ssize_t wrote = ::write(file_, from, static_cast<std::size_t>(at_ - from));
        if (wrote > 0) {
            from += wrote;
        } else if (wrote == 0 || errno != EINTR) {
            fail(wrote == 0 ? EIO : errno);
        }
    }
    flushed_ += static_cast<std::uint64_t>(at_ - buffer_.get());
    at_ = buffer_.get();
}

void OutputFile::text(std::string_view text) {
    constexpr std::size_t piece = 1U << 16U;
    for (std::size_t done = 0; done < text.size(); done += piece) {
        const auto part = text.substr(done, piece);
        std::memcpy(room(part.size()), part.data(), part.size());
        wrote(part.size());
    }
}

void OutputFile::close() {
    flush();
    if (::close(std::exchange(file_, -1)) != 0) fail(errno);
}

void write_text(const std::filesystem::path& file, std::string_view text) {
    OutputFile out(file);
    out.text(text);
    out.close();
}

}  // namespace petacq::petlm
