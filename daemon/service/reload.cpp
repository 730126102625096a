#include "daemon/service/reload.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "config/base/error.hpp"
#include "daemon/system/logging.hpp"

namespace petacq::daemon {

namespace {

using nlohmann::json;

constexpr const char* calibration_key = "/calibration";

/// Appends the JSON pointers of the keys that differ. Both documents have every key, since defaults are
/// filled in; an array counts as one value.
void find_differences(const json& a, const json& b, const std::string& path, std::vector<std::string>& out) {
    if (a == b) return;
    if (!a.is_object() || !b.is_object()) {
        out.push_back(path);
        return;
    }
    json keys = a;
    keys.update(b);
    for (const auto& [key, ignored] : keys.items()) {
        const std::string here = fmt::format("{}/{}", path, key);
        if (a.contains(key) && b.contains(key)) {
            find_differences(a.at(key), b.at(key), here, out);
        } else {
            out.push_back(here);
        }
    }
}

bool can_change(const std::string& key) {
    return key == calibration_key || key == "/log_level" || key.rfind("/health/", 0) == 0;
}

/// The calibration that the configuration names; absent: its content is the one in use.
std::optional<NewCalibration> other_calibration(const config::Configuration& configuration,
                                                const config::Geometry& geometry, const std::string& in_use) {
    const std::filesystem::path& file = configuration.calibration;
    const std::string found = config::sha256_of_file(file);
    if (found == in_use) return std::nullopt;
    config::Calibration calibration = config::load_calibration(file, geometry);
    if (calibration.sha256 != found)
        throw config::Error(file.string() + ": changed while it was read; reload when it is complete");
    return NewCalibration{std::make_shared<const config::Calibration>(std::move(calibration)), file,
                          configuration.document->at(json::json_pointer(calibration_key)).get<std::string>()};
}

}  // namespace

Reloaded reload(const std::filesystem::path& file, const config::Configuration& running,
                const config::Geometry& geometry, const std::string& in_use) {
    const config::Configuration found = config::load_configuration(file);
    Reloaded result;
    result.calibration = other_calibration(found, geometry, in_use);
    json document = *running.document;
    std::vector<std::string> differences;
    find_differences(*running.document, *found.document, "", differences);
    for (std::string& key : differences) {
        if (!can_change(key)) {
            result.needs_restart.push_back(std::move(key));
            continue;
        }
        if (key == calibration_key && result.calibration) continue;
        const json::json_pointer at(key);
        document[at] = found.document->at(at);
        result.changed.push_back(std::move(key));
    }
    result.configuration = std::make_shared<const config::Configuration>(
        config::configuration_from_json(document, file.parent_path()));
    return result;
}

void apply(const Reloaded& reloaded, const std::filesystem::path& file, RunSetting& setting) {
    for (const std::string& key : reloaded.changed) {
        log_info("reload: {} is {} now", key,
                 reloaded.configuration->document->at(json::json_pointer(key)).dump());
    }
    for (const std::string& key : reloaded.needs_restart)
        log_warning("reload: {} has changed in {} and needs a restart", key, file.string());
    if (reloaded.changed.empty() && reloaded.needs_restart.empty() && !reloaded.calibration)
        log_info("reload: no changes");
    setting.configuration = reloaded.configuration;
    // Replaces a level that was set over the control socket, too.
    set_log_level(setting.configuration->log_level);
}

}  // namespace petacq::daemon
