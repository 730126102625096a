#include "tools/petlm/reconstruction/frames/sidecar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <variant>

#include "config/base/json_file.hpp"
#include "daemon/system/utc.hpp"
#include "daemon/system/version.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/reconstruction/corrections/nuclide.hpp"
#include "tools/petlm/reconstruction/image/statement.hpp"
#include "tools/petlm/records/run.hpp"

namespace petacq::frames {
namespace {

using nlohmann::json;

/// What BIDS takes as the value of a key.
enum class Takes { text, number, number_or_unknown };

/// A required key of BIDS-PET about what petlm does not measure.
struct StatedKey {
    const char* name;
    Takes takes;
};
constexpr std::array may_be_stated = {StatedKey{"Manufacturer", Takes::text},
                                      StatedKey{"ManufacturersModelName", Takes::text},
                                      StatedKey{"TracerName", Takes::text},
                                      StatedKey{"TracerRadionuclide", Takes::text},
                                      StatedKey{"InjectedMass", Takes::number_or_unknown},
                                      StatedKey{"InjectedMassUnits", Takes::text},
                                      StatedKey{"InjectedRadioactivity", Takes::number},
                                      StatedKey{"InjectedRadioactivityUnits", Takes::text},
                                      StatedKey{"SpecificRadioactivity", Takes::number_or_unknown},
                                      StatedKey{"SpecificRadioactivityUnits", Takes::text},
                                      StatedKey{"ModeOfAdministration", Takes::text},
                                      StatedKey{"InjectionStart", Takes::number}};
constexpr const char* unknown_value = "n/a";

bool takes(const StatedKey& key, const json& value) {
    if (key.takes == Takes::text) return value.is_string();
    return value.is_number() || (key.takes == Takes::number_or_unknown && value == unknown_value);
}

/// Keys that say what petlm did: nobody else states them.
constexpr std::array own = {"Units",
                            "TimeZero",
                            "ScanStart",
                            "FrameTimesStart",
                            "FrameDuration",
                            "AcquisitionMode",
                            "ImageDecayCorrected",
                            "ImageDecayCorrectionTime",
                            "ReconMethodName",
                            "ReconMethodParameterLabels",
                            "ReconMethodParameterUnits",
                            "ReconMethodParameterValues",
                            "ReconFilterType",
                            "ReconFilterSize",
                            "AttenuationCorrection",
                            "DecayCorrectionFactor",
                            "SoftwareVersions",
                            "ReconMethodImplementationVersion",
                            "ScaleFactor",
                            "UnknownKeys",
                            "Frames",
                            "Gates",
                            "Input",
                            "Coverage",
                            "Notes",
                            "RadionuclideHalfLife",
                            "RadionuclidePositronFraction",
                            "TimeZeroUTC"};

/// The first frame with data, of which the settings are those of all; or any.
const FrameReport& one_of(const std::vector<FrameReport>& frames) {
    const auto found =
        std::find_if(frames.begin(), frames.end(), [](const FrameReport& f) { return f.data; });
    return found != frames.end() ? *found : frames.front();
}

const image::Correction* correction(const image::Report& report, std::string_view name) {
    for (const image::Correction& c : report.list)
        if (c.name == name) return &c;
    return nullptr;
}

/// The factor of the decay of each frame; that of one without data would have been its.
json decay_factors(const image::Setup& setup, const FramePlan& plan, const std::vector<FrameReport>& frames) {
    const auto nuclide = corrections::nuclide_of(setup.source.coverage(), setup.options);
    json out = json::array();
    for (std::size_t i = 0; i < frames.size(); ++i) {
        daemon::Coverage coverage = setup.source.coverage();
        coverage.intervals = frames[i].data ? frames[i].times : daemon::Intervals(plan.list[i].span);
        out.push_back(coverage.decay_factor(nuclide->half_life_s));
    }
    return out;
}

std::string bids_unit(const image::Quantity& quantity) {
    return quantity.activity && quantity.calibrated ? "kBq/mL" : quantity.unit;
}

void add_reconstruction(json& out, const image::Setup& setup, const image::Report& report) {
    const petlm::ImageOptions& options = setup.options;
    out["AcquisitionMode"] = "list mode";
    out["ReconMethodName"] = options.subsets == 1 ? "MLEM" : "OSEM";
    out["ReconMethodParameterLabels"] = {"iterations", "subsets"};
    out["ReconMethodParameterUnits"] = {"none", "none"};
    out["ReconMethodParameterValues"] = {options.iterations, options.subsets};
    out["ReconFilterType"] = setup.how.smooth_mm > 0 ? "Gaussian" : "none";
    out["ReconFilterSize"] = setup.how.smooth_mm;
    const image::Correction* const attenuation = correction(report, "attenuation");
    out["AttenuationCorrection"] =
        attenuation != nullptr && attenuation->made ? attenuation->sentence : "none";
    const image::Correction* const decay = correction(report, "decay");
    out["ImageDecayCorrected"] = decay != nullptr && decay->made;
    out["ImageDecayCorrectionTime"] = 0;
    out["Units"] = bids_unit(report.quantity);
}

void add_times(json& out, const image::Setup& setup, const FramePlan& plan) {
    const daemon::Coverage& coverage = setup.source.coverage();
    const auto start = coverage.utc_of(coverage.reference_ticks());
    if (coverage.anchor && start) {
        out["TimeZero"] = daemon::utc_text(*start, "%H:%M:%S");
        out["TimeZeroUTC"] = daemon::utc_text(*start);
    }
    out["ScanStart"] = coverage.since_reference_s(coverage.span().start);
    out["FrameTimesStart"] = json::array();
    out["FrameDuration"] = json::array();
    for (const Frame& frame : plan.list) {
        out["FrameTimesStart"].push_back(coverage.since_reference_s(frame.span.start));
        out["FrameDuration"].push_back(plan.gates ? frame.coverage.seconds()
                                                  : static_cast<double>(frame.span.ticks()) *
                                                        coverage.tick_ps * 1e-12);
    }
    if (plan.injection) out["InjectionStart"] = coverage.since_reference_s(*plan.injection);
    if (!plan.gates) return;
    out["Gates"] = {{"channel", plan.gates->channel},   {"phases", plan.list.size()},
                    {"cycles", plan.gates->cycles},     {"cycles_rejected", plan.gates->rejected},
                    {"period_s", plan.gates->period_s}, {"period_spread_s", plan.gates->spread_s}};
}

void add_tracer(json& out, const image::Setup& setup, const FramePlan& plan) {
    const daemon::Coverage& coverage = setup.source.coverage();
    out["ManufacturersModelName"] = setup.scanner.name;
    if (const auto nuclide = corrections::nuclide_of(coverage, setup.options)) {
        std::string name = nuclide->nuclide;
        name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
        out["TracerRadionuclide"] = name;
        out["RadionuclideHalfLife"] = nuclide->half_life_s;
        out["RadionuclidePositronFraction"] = nuclide->branching_ratio;
    }
    const auto activity =
        plan.injection ? coverage.activity_MBq_at(*plan.injection) : std::optional<double>();
    if (!activity) return;
    out["InjectedRadioactivity"] = *activity;
    out["InjectedRadioactivityUnits"] = "MBq";
}

json frame_json(const Frame& frame, const FrameReport& report) {
    json out = {
        {"from_ticks", frame.span.start}, {"to_ticks", frame.span.end}, {"recorded_s", report.recorded_s},
        {"prompts", report.prompts},      {"data", report.data},        {"text", report.sentences}};
    if (report.data) {
        out["corrections"] = image::corrections_json(report.report);
        if (!report.positions.empty()) out["positions"] = image::positions_json(report.positions);
    } else {
        out["no_data"] = report.why_none;
    }
    return out;
}

}  // namespace

json stated_keys(const std::optional<std::filesystem::path>& file) {
    if (!file) return json::object();
    json stated = config::read_json_file(*file);
    if (!stated.is_object())
        throw petlm::UsageError("--bids " + file->string() + ": expected an object of keys of BIDS-PET");
    for (const char* const key : own) {
        if (stated.contains(key))
            throw petlm::UsageError("--bids " + file->string() + ": " + key + " is what petlm states itself");
    }
    for (const StatedKey& key : may_be_stated) {
        if (!stated.contains(key.name) || takes(key, stated[key.name])) continue;
        throw petlm::UsageError(fmt::format("--bids {}: {}: expected {}, found {}", file->string(), key.name,
                                            key.takes == Takes::text     ? "a text"
                                            : key.takes == Takes::number ? "a number"
                                                                         : "a number or \"n/a\"",
                                            petlm::json_line(stated[key.name])));
    }
    return stated;
}

json sidecar(const image::Setup& setup, const FramePlan& plan, const std::vector<FrameReport>& frames,
             const json& stated) {
    json out = json::object();
    out["SoftwareVersions"] = std::string("petlm frames ") + daemon::version;
    out["ReconMethodImplementationVersion"] = out["SoftwareVersions"];
    out["Input"] = setup.source.target().string();
    add_times(out, setup, plan);
    add_tracer(out, setup, plan);
    add_reconstruction(out, setup, one_of(frames).report);
    out.update(stated);
    json& unknown = out["UnknownKeys"] = json::array();
    for (const StatedKey& key : may_be_stated) {
        if (out.contains(key.name)) continue;
        unknown.push_back(key.name);
        if (key.takes != Takes::number) out[key.name] = unknown_value;
    }
    if (!out.contains("TimeZero")) unknown.push_back("TimeZero");
    if (out["ImageDecayCorrected"] == true) out["DecayCorrectionFactor"] = decay_factors(setup, plan, frames);
    out["ScaleFactor"] = std::vector<int>(frames.size(), 1);
    out["Frames"] = json::array();
    for (std::size_t i = 0; i < frames.size(); ++i)
        out["Frames"].push_back(frame_json(plan.list[i], frames[i]));
    out["Coverage"] = daemon::to_json(setup.source.coverage());
    out["Notes"] = plan.sentences;
    return out;
}

std::vector<std::string> missing_keys(const json& sidecar) {
    std::vector<std::string> out;
    for (const json& key : sidecar.at("UnknownKeys")) {
        auto name = key.get<std::string>();
        if (!sidecar.contains(name)) out.push_back(std::move(name));
    }
    return out;
}

}  // namespace petacq::frames
