#include "tools/petlm/mpi/job_directory.hpp"

#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>

#include "daemon/run/directory.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/resort/parts/job_file.hpp"

namespace petacq::petlm {
namespace {

constexpr const char* lock_suffix = ".lock";

}  // namespace

JobDirectory::JobDirectory(std::filesystem::path directory, bool force, Communicator& ranks)
    : directory_(std::move(directory)), force_(force), ranks_(ranks) {
    if (std::filesystem::exists(directory_ / daemon::run_file) && !force_)
        throw UsageError(directory_.string() + ": exists; --force replaces it");
    std::filesystem::create_directories(directory_);
    (void)ranks_.gather(0);
    const auto left = locks();
    if (!left.empty() && ranks_.rank() == 0) {
        std::cerr << fmt::format(
            "petlm-mpi: {}: a job was not finished; waiting until its ranks have ended\n",
            directory_.string());
    }
    for (const std::filesystem::path& file : left)
        daemon::File(file, daemon::IfExists::overwrite).lock();
    (void)ranks_.gather(0);
    lock_.emplace(directory_ / fmt::format("rank{}{}", ranks_.rank(), lock_suffix),
                  daemon::IfExists::overwrite);
    lock_->lock();
}

JobDirectory::~JobDirectory() {
    if (lock_) lock_->discard();
}

void JobDirectory::begin(const nlohmann::json& identity) {
    // Ranks that share the directory must not prepare it at once.
    for (int turn = 0; turn < ranks_.size(); ++turn) {
        const bool writes = ranks_.rank_on_host() == 0;
        if (turn == ranks_.rank()) prepare(identity, writes);
        (void)ranks_.gather(0);
    }
}

void JobDirectory::prepare(const nlohmann::json& identity, bool writes) const {
    const std::filesystem::path job = directory_ / job_file;
    if (std::filesystem::exists(job) && !force_) check_job(directory_, identity, "--force starts again");
    if (!writes) return;
    if (force_) {
        for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
            const std::string name = entry.path().filename().string();
            if (name.starts_with("coincidences") || name.starts_with("triples") || name == daemon::run_file ||
                name == daemon::tags_file || name == daemon::seconds_file)
                std::filesystem::remove(entry.path());
        }
    }
    daemon::write_json_atomically(job, identity);
}

void JobDirectory::end() {
    lock_.reset();
    (void)ranks_.gather(0);
    std::error_code gone;  // removed by a rank that shares the directory
    for (const std::filesystem::path& file : locks())
        std::filesystem::remove(file, gone);
}

std::vector<std::filesystem::path> JobDirectory::locks() const {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(directory_))
        if (entry.path().extension() == lock_suffix) files.push_back(entry.path());
    return files;
}

}  // namespace petacq::petlm
