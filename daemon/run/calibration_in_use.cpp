#include "daemon/run/calibration_in_use.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "config/factor_spread.hpp"
#include "daemon/system/utc.hpp"

namespace petacq::daemon {

namespace {

std::string said(const config::Calibration& calibration, const char* name) {
    const auto found = calibration.origin.find(name);
    return found == calibration.origin.end() ? std::string() : found->second;
}

nlohmann::json text_or_null(const std::string& text) {
    return text.empty() ? nlohmann::json() : nlohmann::json(text);
}

}  // namespace

CalibrationInUse in_use_now(const config::Calibration& calibration, const std::filesystem::path& file) {
    return {file,
            calibration.sha256,
            said(calibration, "made_by"),
            said(calibration, "created_utc"),
            calibration.coincidence_fwhm_ps(),
            config::factor_spread(calibration),
            std::chrono::system_clock::now()};
}

nlohmann::json to_json(const CalibrationInUse& calibration) {
    return {{"file", calibration.file.string()},
            {"sha256", calibration.sha256},
            {"made_by", text_or_null(calibration.made_by)},
            {"created_utc", text_or_null(calibration.created_utc)},
            {"taken_utc", utc_text(calibration.taken)}};
}

std::string described(const CalibrationInUse& calibration) {
    std::string text = fmt::format("{} (SHA-256 {:.12}", calibration.file.string(), calibration.sha256);
    if (!calibration.made_by.empty()) text += ", " + calibration.made_by;
    if (!calibration.created_utc.empty()) text += " of " + calibration.created_utc;
    return text + ")";
}

}  // namespace petacq::daemon
