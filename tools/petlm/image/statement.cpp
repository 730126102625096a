#include "tools/petlm/image/statement.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "daemon/host/version.hpp"

namespace petacq::image {
namespace {

/// A sentence about what a value is.
std::string values_of(const Quantity& quantity) {
    if (!quantity.activity)
        return "the number of decays in the voxel if every photon that meets a crystal is detected.";
    return fmt::format(
        "{} concentration in kBq/ml{}.", quantity.nuclide.empty() ? "positron" : "activity",
        quantity.calibrated ? "" : ", if the mean crystal detected every photon that meets it");
}

nlohmann::json text_or_null(const std::string& text) {
    return text.empty() ? nlohmann::json() : nlohmann::json(text);
}

}  // namespace

PictureTexts picture_texts(const Corrections& corrections) {
    const Quantity& quantity = corrections.quantity();
    if (quantity.activity) return {"kBq/ml", corrections.warning(), values_of(quantity)};
    return {"decays per voxel", corrections.warning(),
            "decays per voxel in the run, if every photon that meets a crystal is detected."};
}

std::string readme(const Statement& s) {
    std::string text =
        fmt::format("Made by petlm image from {}.\n{}\n\n", s.target.string(), s.corrections.warning());
    for (const auto& line : s.lines)
        text += line + '\n';
    text += "\nimage.nii: NIfTI-1, 32-bit floats. A value is the " + values_of(s.corrections.quantity()) +
            "\nimage.json: unit, settings and corrections, for programs.\n"
            "The axes are those of the scanner, in mm, with the origin in its middle "
            "(docs/reference/geometry.md): +x to module 0, z along the axis. They do not define a "
            "patient's left and right.\n";
    if (s.pictures) {
        text +=
            "projections.png: the largest value along z, y and x.\nslices.png: transaxial slabs, the mean "
            "of their planes.\nThe bar of a picture shows its grey scale; the caption explains it "
            "(--max sets another).\n";
    }
    return text + "\nThe page docs/how-to/image.md has a worked example.\n";
}

std::string json_text(const Statement& s) {
    const Quantity& quantity = s.corrections.quantity();
    nlohmann::json corrections = nlohmann::json::object();
    nlohmann::json sha256;
    double activity_factor = 1;
    bool decay = false;
    for (const Correction& correction : s.corrections.list()) {
        nlohmann::json& out = corrections[correction.name];
        out = {{"made", correction.made}, {"text", correction.sentence}};
        for (const auto& [name, figure] : correction.figures)
            std::visit([&, &name = name](const auto& value) { out[name] = value; }, figure);
        if (out.contains("sha256")) sha256 = out["sha256"];
        if (out.contains("activity_factor")) activity_factor = out["activity_factor"];
        if (correction.name == std::string_view("decay")) decay = correction.made;
    }
    const nlohmann::json document = {
        {"program", "petlm image"},
        {"version", daemon::version},
        {"input", s.target.string()},
        {"unit", quantity.unit},
        {"voxels", s.grid.n},
        {"voxel_mm", s.grid.voxel_mm},
        {"duration_s", quantity.seconds ? nlohmann::json(*quantity.seconds) : nlohmann::json()},
        {"nuclide", text_or_null(quantity.nuclide)},
        {"time_of_activity_utc",
         decay ? text_or_null(quantity.time_of_activity.value_or("")) : nlohmann::json()},
        {"normalisation_sha256", sha256},
        {"activity_factor", activity_factor},
        {"corrections", corrections}};
    return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

}  // namespace petacq::image
