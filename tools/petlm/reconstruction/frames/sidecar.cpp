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

namespace petacq::frames {
namespace {

using nlohmann::json;

/// Required keys of BIDS-PET about what petlm does not measure.
constexpr std::array may_be_stated = {"Manufacturer",
                                      "ManufacturersModelName",
                                      "TracerName",
                                      "TracerRadionuclide",
                                      "InjectedMass",
                                      "InjectedMassUnits",
                                      "InjectedRadioactivity",
                                      "InjectedRadioactivityUnits",
                                      "SpecificRadioactivity",
                                      "SpecificRadioactivityUnits",
                                      "ModeOfAdministration",
                                      "InjectionStart"};

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

/// The factor of the decay; null if there is none.
json decay_factor(const FrameReport& frame) {
    const image::Correction* const decay = correction(frame.report, "decay");
    if (!frame.data || decay == nullptr || !decay->made) return nullptr;
    return std::get<double>(decay->figures.at("factor"));
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
    const bool decay_made = decay != nullptr && decay->made;
    out["ImageDecayCorrected"] = decay_made;
    out["ImageDecayCorrectionTime"] = decay_made ? json(0) : json("n/a");
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
    json out = {{"from_ticks", frame.span.start},
                {"to_ticks", frame.span.end},
                {"recorded_s", frame.coverage.seconds()},
                {"prompts", report.prompts},
                {"data", report.data},
                {"text", report.sentences}};
    if (report.data) {
        out["corrections"] = image::corrections_json(report.report);
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
    return stated;
}

std::string sidecar_text(const image::Setup& setup, const FramePlan& plan,
                         const std::vector<FrameReport>& frames, const json& stated) {
    json out = json::object();
    out["SoftwareVersions"] = std::string("petlm frames ") + daemon::version;
    out["Input"] = setup.source.target().string();
    add_times(out, setup, plan);
    add_tracer(out, setup, plan);
    add_reconstruction(out, setup, one_of(frames).report);
    out.update(stated);
    json unknown = json::array();
    for (const char* const key : may_be_stated) {
        if (out.contains(key)) continue;
        unknown.push_back(key);
        out[key] = "n/a";
    }
    if (!out.contains("TimeZero")) {
        unknown.push_back("TimeZero");
        out["TimeZero"] = "n/a";
    }
    out["UnknownKeys"] = unknown;
    out["DecayCorrectionFactor"] = json::array();
    out["Frames"] = json::array();
    for (std::size_t i = 0; i < frames.size(); ++i) {
        out["DecayCorrectionFactor"].push_back(decay_factor(frames[i]));
        out["Frames"].push_back(frame_json(plan.list[i], frames[i]));
    }
    out["Coverage"] = daemon::to_json(setup.source.coverage());
    out["Notes"] = plan.sentences;
    return out.dump(2, ' ', false, json::error_handler_t::replace) + '\n';
}

}  // namespace petacq::frames
