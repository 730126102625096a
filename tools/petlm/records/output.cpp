#include "tools/petlm/records/output.hpp"

#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "tools/petlm/base/status.hpp"

namespace petacq::petlm {

std::filesystem::path Outputs::partial(const std::filesystem::path& file) {
    return file.string() + ".partial";
}

std::filesystem::path Outputs::final_name(std::filesystem::path partial) {
    return partial.replace_extension();
}

Outputs::~Outputs() {
    if (done_) return;
    std::error_code ignored;
    for (const auto& file : claimed_)
        std::filesystem::remove(partial(file), ignored);
    if (!made_.empty()) std::filesystem::remove(made_, ignored);  // only if it is empty
}

void Outputs::make_directory(const std::filesystem::path& path) {
    if (std::filesystem::is_directory(path)) {
        // Fail before hours of reading, not after.
        if (::access(path.c_str(), W_OK | X_OK) == 0) return;
        throw std::system_error(errno, std::generic_category(), path.string() + ": cannot be written to");
    }
    if (std::filesystem::exists(std::filesystem::symlink_status(path))) {
        throw UsageError(path.string() + " exists and is not a directory");
    }
    std::error_code failed;
    std::filesystem::create_directories(path, failed);
    if (failed) throw std::system_error(failed, path.string() + ": cannot create the directory");
    made_ = path;
}

void Outputs::claim(const std::filesystem::path& file) {
    if (std::filesystem::exists(std::filesystem::symlink_status(file))) {
        if (!force_) {
            throw UsageError(file.string() +
                             " exists, nothing was written; name another place or use --force");
        }
        if (!std::filesystem::is_regular_file(file)) {
            throw UsageError(file.string() + " is not a regular file and was not replaced");
        }
    }
    claimed_.push_back(file);
}

void Outputs::commit() {
    for (const auto& file : claimed_) {
        if (std::filesystem::exists(partial(file))) {
            daemon::rename_file(partial(file), file,
                                force_ ? daemon::IfExists::overwrite : daemon::IfExists::fail);
            written_.push_back(file);
        } else if (force_) {
            // A file of an earlier export would be taken for a part of this one.
            std::filesystem::remove(file);
        }
    }
    done_ = true;
}

OutputFile::OutputFile(const std::filesystem::path& file)
    : file_(Outputs::partial(file), daemon::IfExists::discard),
      buffer_(new char[capacity]),  // NOLINT(modernize-make-unique): left uninitialised
      at_(buffer_.get()) {}

void OutputFile::flush() {
    file_.append(std::string_view(buffer_.get(), static_cast<std::size_t>(at_ - buffer_.get())));
    at_ = buffer_.get();
}

void OutputFile::text(std::string_view text) {
    if (room() < text.size()) flush();
    if (room() < text.size()) return file_.append(text);
    std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
}

void OutputFile::close() {
    flush();
    file_.close();
}

void write_text(const std::filesystem::path& file, std::string_view text) {
    OutputFile out(file);
    out.text(text);
    out.close();
}

}  // namespace petacq::petlm
