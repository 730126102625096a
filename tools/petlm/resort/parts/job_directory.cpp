#include "tools/petlm/resort/parts/job_directory.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "config/base/json_file.hpp"
#include "daemon/run/directory.hpp"
#include "tools/petlm/base/status.hpp"

namespace petacq::petlm {
namespace {

/// One spelling for a directory, with and without a slash at its end.
std::string place_of(const std::filesystem::path& directory) {
    return (std::filesystem::absolute(directory) / "").lexically_normal().string();
}

}  // namespace

nlohmann::json job_identity(const Inputs& inputs, const Engines& engines, std::size_t shards) {
    nlohmann::json runs = nlohmann::json::array();
    for (std::size_t i = 0; i < inputs.runs.size(); ++i)
        runs.push_back({place_of(inputs.runs[i]), inputs.singles[i].blocks().size()});
    return {{"settings", engines.settings()},
            {"runs", runs},
            {"shards", shards},
            {"from_ticks", inputs.interval.start},
            {"to_ticks", inputs.interval.end}};
}

void agree_on_job(const std::filesystem::path& directory, const nlohmann::json& identity) {
    const std::filesystem::path job = directory / job_file;
    if (!std::filesystem::exists(job)) {
        const std::filesystem::path own = own_partial(job);
        daemon::write_json_atomically(own, identity);
        // Unlike a rename, it never replaces the file of a process that was faster.
        std::error_code failed;
        std::filesystem::create_hard_link(own, job, failed);
        std::filesystem::remove(own);
        if (failed && failed != std::errc::file_exists)
            throw std::system_error(failed, job.string() + ": cannot create the file");
    }
    if (config::read_json_file(job, config::max_run_json_bytes) != identity) {
        throw UsageError(
            directory.string() +
            ": holds parts of a job with other runs or settings; remove it, or name another one");
    }
}

std::filesystem::path own_partial(const std::filesystem::path& file) {
    std::array<char, 256> host{};
    ::gethostname(host.data(), host.size() - 1);
    return fmt::format("{}.{}-{}.partial", file.string(), host.data(), ::getpid());
}

void remove_partial_parts(const std::filesystem::path& directory) {
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with("coincidences-") && name.ends_with(".partial"))
            std::filesystem::remove(entry.path());
    }
}

}  // namespace petacq::petlm
