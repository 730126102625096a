#include "tools/petcal/outputs.hpp"

#include <unistd.h>

#include <string>
#include <system_error>

#include "tools/petlm/base/status.hpp"

namespace petacq::petcal {

namespace {

[[noreturn]] void refuse(const std::filesystem::path& file) {
    throw petlm::UsageError(file.string() + " exists and was not replaced; name another file or use --force");
}

}  // namespace

void Outputs::claim(std::filesystem::path& file) {
    if (if_exists_ == daemon::IfExists::fail && exists(symlink_status(file))) refuse(file);
    outputs_.push_back({file, file.string() + ".partial-" + std::to_string(::getpid())});
    file = outputs_.back().temporary;
}

void Outputs::publish() {
    for (const Output& output : outputs_) {
        if (!exists(output.temporary)) continue;
        try {
            daemon::rename_file(output.temporary, output.file, if_exists_);
        } catch (const std::system_error& e) {
            std::error_code ignored;
            std::filesystem::remove(output.temporary, ignored);
            if (e.code() == std::errc::file_exists) refuse(output.file);
            throw;
        }
        daemon::sync_directory_of(output.file);
        written_.push_back(output.file);
    }
}

}  // namespace petacq::petcal
