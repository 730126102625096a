#include "tools/petlm/resort/parts/job_file.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "config/base/json_file.hpp"
#include "daemon/run/directory.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/resort/parts/part.hpp"

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
    check_job(directory, identity, "remove it, or name another one");
}

void check_job(const std::filesystem::path& directory, const nlohmann::json& identity,
               const std::string& remedy) {
    if (config::read_json_file(directory / job_file, config::max_run_json_bytes) == identity) return;
    throw UsageError(
        fmt::format("{}: holds parts of a job with other runs or settings; {}", directory.string(), remedy));
}

}  // namespace petacq::petlm
