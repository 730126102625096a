#include "tools/petcal/activity/activity_file.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "config/base/error.hpp"
#include "tools/petcal/results/results.hpp"

namespace petacq::petcal {

void save(const std::filesystem::path& file, const ActivityByCoincidenceOptions& o,
          const estimate::CoincidenceCounts& counts, const ActivityByCoincidence& found) {
    nlohmann::ordered_json json;
    const auto made = made_by("petcal derive activity");
    json["made_by"] = made.at("made_by");
    json["created_utc"] = made.at("created_utc");
    json["run"] = o.run.string();
    json["background"] = o.background ? nlohmann::ordered_json(o.background->string()) : nullptr;
    json["nuclide"] = found.nuclide;
    json["start_utc"] = found.start_utc.empty() ? nullptr : nlohmann::ordered_json(found.start_utc);
    json["activity_MBq"] = {{"at_start", found.at_start_becquerel * 1e-6},
                            {"mean", found.activity.becquerel * 1e-6},
                            {"relative_error", found.error}};
    if (found.volume_ml > 0) {
        json["volume_ml"] = found.volume_ml;
        json["concentration_kBq_ml_at_start"] = found.at_start_becquerel * 1e-3 / found.volume_ml;
    }
    json["errors"] = {{"counting", found.activity.counting_error},
                      {"summing", found.activity.summing_error},
                      {"spurious", found.spurious_error},
                      {"lost_data", found.lost_data ? nlohmann::ordered_json(*found.lost_data) : nullptr}};
    json["counts"] = {{"seconds", counts.seconds},
                      {"pairs", found.pairs},
                      {"triples", found.triples},
                      {"gammas", counts.gammas},
                      {"background_gammas_per_s", counts.background_per_s}};
    json["corrections"] = {{"spurious_share", found.spurious},
                           {"summing_factor", found.activity.summing},
                           {"triples_in_own_units", counts.triples_own_units}};
    json["sensitivity"] = {{"pairs_per_decay", found.activity.pair_sensitivity},
                           {"gammas_per_decay", found.activity.gamma_sensitivity}};
    std::ofstream out(file);
    out << json.dump(1) << '\n';
    if (!out.flush()) throw config::IoError(file.string() + ": cannot be written");
}

std::string figures_text(const ActivityByCoincidence& f) {
    std::string text = fmt::format("pairs               {:.0f}, {:.3g} % of the decays\n", f.pairs,
                                   100 * f.activity.pair_sensitivity);
    text += fmt::format("gammas              {:.3g} % of the decays\n", 100 * f.activity.gamma_sensitivity);
    text += fmt::format("triples             {:.0f}\n", f.triples);
    text += fmt::format("spurious pairs      {:.2f} %, subtracted\n", 100 * f.spurious);
    if (!f.lost_data) text += "lost data           unknown, and not in the error\n";
    text +=
        fmt::format("activity of {:<8}{:.6g} MBq +- {:.2g} % at {}\n", f.nuclide, f.at_start_becquerel * 1e-6,
                    100 * f.error, f.start_utc.empty() ? "the start of the run" : f.start_utc);
    if (f.volume_ml > 0)
        text += fmt::format("concentration       {:.6g} kBq/ml in {:.4g} ml\n",
                            f.at_start_becquerel * 1e-3 / f.volume_ml, f.volume_ml);
    return text;
}

}  // namespace petacq::petcal
