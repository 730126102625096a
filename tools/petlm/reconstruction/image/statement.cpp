#include "tools/petlm/reconstruction/image/statement.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "daemon/system/utc.hpp"
#include "daemon/system/version.hpp"

namespace petacq::image {
namespace {

std::string photons_of(const Quantity& quantity) {
    return quantity.absorbed ? "photon that its material absorbs" : "photon that meets it";
}

std::string if_all_are_detected(const Quantity& quantity) {
    return fmt::format("if every photon that {} a crystal is detected",
                       quantity.absorbed ? "is absorbed by" : "meets");
}

/// A sentence about what a value is.
std::string values_of(const Quantity& quantity) {
    if (!quantity.activity)
        return fmt::format("number of decays in the voxel {}.", if_all_are_detected(quantity));
    return fmt::format(
        "{} concentration in kBq/ml{}.", quantity.nuclide.empty() ? "positron" : "activity",
        quantity.calibrated ? "" : ", if the mean crystal detected every " + photons_of(quantity));
}

nlohmann::json text_or_null(const std::string& text) {
    return text.empty() ? nlohmann::json() : nlohmann::json(text);
}

nlohmann::json errors_json(const Report& report) {
    const auto number_or_null = [](std::optional<double> value) {
        return value ? nlohmann::json(*value) : nlohmann::json();
    };
    const std::vector<ErrorShare> shares = error_budget(report.errors);
    nlohmann::json all = nlohmann::json::object();
    for (const ErrorShare& share : shares)
        all[share.name] = {{"relative", number_or_null(share.relative)}, {"text", share.text}};
    all["known_together"] = total_error(shares);
    return all;
}

}  // namespace

nlohmann::json corrections_json(const Report& report) {
    nlohmann::json all = nlohmann::json::object();
    for (const Correction& correction : report.list) {
        nlohmann::json& out = all[correction.name];
        out = {{"made", correction.made}, {"text", correction.sentence}};
        for (const auto& [name, figure] : correction.figures)
            std::visit([&, &name = name](const auto& value) { out[name] = value; }, figure);
    }
    return all;
}

nlohmann::json positions_json(const std::vector<PositionReport>& positions) {
    nlohmann::json out = nlohmann::json::array();
    for (const PositionReport& part : positions) {
        const auto seconds = part.report.quantity.seconds;
        out.push_back({{"bed_mm", part.bed_mm},
                       {"duration_s", seconds ? nlohmann::json(*seconds) : nlohmann::json()},
                       {"corrections", corrections_json(part.report)},
                       {"errors", errors_json(part.report)}});
    }
    return out;
}

Report report_of_all(const std::vector<PositionReport>& parts, const daemon::Coverage& coverage) {
    Report all = parts.front().report;
    if (coverage.intervals) all.quantity.seconds = coverage.seconds();
    for (std::size_t p = 1; p < parts.size(); ++p) {
        const Report& report = parts[p].report;
        all.errors = together(all.errors, report.errors);
        for (std::size_t i = 0; i < all.list.size(); ++i)
            all.list[i].made = all.list[i].made && report.list[i].made;
    }
    return all;
}

PictureTexts picture_texts(const Report& report) {
    const Quantity& quantity = report.quantity;
    if (quantity.activity) return {"kBq/ml", report.warning(), values_of(quantity)};
    return {"decays per voxel", report.warning(),
            "decays per voxel in the run, " + if_all_are_detected(quantity) + "."};
}

std::string readme(const Statement& s) {
    const Report report = report_of_all(s.parts, s.coverage);
    std::string text =
        fmt::format("Made by petlm image from {}.\n{}\n\n", s.target.string(), report.warning());
    for (const auto& line : s.lines)
        text += line + '\n';
    text +=
        "\nimage.nii: NIfTI-1, 32-bit floats. A value is the " + values_of(report.quantity) +
        "\nimage.json: unit, settings, corrections and errors, for programs.\n"
        "The axes are those of the scanner, in mm (docs/reference/geometry.md): z runs along its axis, and "
        "the origin is in its middle. They do not define a patient's left and right.\n";
    if (s.replicates != 0) {
        text += fmt::format(
            "uncertainty.nii: the standard error of each value by counting, from {} images with prompts "
            "drawn "
            "anew.\n",
            s.replicates);
    }
    if (s.pictures) {
        text +=
            "projections.png: the largest value along z, y and x.\nslices.png: transaxial slabs, the mean "
            "of their planes.\nThe bar of a picture shows its grey scale; the caption explains it "
            "(--max sets another).\n";
    }
    return text + "\nThe page docs/how-to/image.md has a worked example.\n";
}

std::string json_text(const Statement& s) {
    const Report report = report_of_all(s.parts, s.coverage);
    const Quantity& quantity = report.quantity;
    const nlohmann::json corrections = corrections_json(report);
    const auto figure = [&](const char* correction, const char* name) {
        return corrections.at(correction).value(name, nlohmann::json());
    };
    const nlohmann::json activity_factor = figure("calibration", "activity_factor");
    const auto reference = s.coverage.anchor ? s.coverage.utc_of(s.coverage.reference_ticks()) : std::nullopt;
    const auto& nuclide = s.method.nuclide;
    nlohmann::json document = {
        {"program", "petlm image"},
        {"version", daemon::version},
        {"input", s.target.string()},
        {"scanner", s.method.scanner},
        {"iterations", s.method.iterations},
        {"subsets", s.method.subsets},
        {"smooth_mm", s.method.smooth_mm},
        {"unit", quantity.unit},
        {"voxels", s.grid.n},
        {"voxel_mm", s.grid.voxel_mm},
        {"tof_fwhm_ps", s.tof.used() ? nlohmann::json(s.tof.fwhm_ps) : nlohmann::json()},
        {"psf_mm", s.psf_mm ? nlohmann::json(*s.psf_mm) : nlohmann::json()},
        {"duration_s", quantity.seconds ? nlohmann::json(*quantity.seconds) : nlohmann::json()},
        {"nuclide", text_or_null(quantity.nuclide)},
        {"half_life_s", nuclide ? nlohmann::json(nuclide->half_life_s) : nlohmann::json()},
        {"branching_ratio", nuclide ? nlohmann::json(nuclide->branching_ratio) : nlohmann::json()},
        {"reference_utc", reference ? nlohmann::json(daemon::utc_text(*reference)) : nlohmann::json()},
        {"time_of_activity_utc", figure("decay", "made") == true
                                     ? text_or_null(quantity.time_of_activity.value_or(""))
                                     : nlohmann::json()},
        {"normalisation_sha256", figure("normalisation", "sha256")},
        {"activity_factor", activity_factor.is_null() ? nlohmann::json(1.0) : activity_factor},
        {"corrections", corrections},
        {"errors", errors_json(report)},
        {"coverage", daemon::to_json(s.coverage)}};
    if (s.parts.size() > 1) document["positions"] = positions_json(s.parts);
    return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

}  // namespace petacq::image
