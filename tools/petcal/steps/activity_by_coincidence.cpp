#include "tools/petcal/steps/activity_by_coincidence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numbers>
#include <numeric>
#include <system_error>

#include "config/base/error.hpp"
#include "config/configuration.hpp"
#include "config/nuclides/nuclides.hpp"
#include "config/scanner/depth_of_interaction.hpp"
#include "daemon/system/utc.hpp"
#include "tools/geometry/bore.hpp"
#include "tools/petcal/results/results.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/delayeds_weight.hpp"
#include "tools/petlm/records/origin.hpp"
#include "tools/petlm/records/source.hpp"

namespace petacq::petcal {
namespace {

using config::Vector3;

constexpr std::size_t cylinder_parts = 10;
constexpr double min_triples = 100;     // of each part
constexpr double near_in_crystals = 3;  // lines this far from the source count, in widths of crystals
constexpr double spurious_error = 0.1;  // of what is subtracted as spurious
constexpr double most_lost = 0.01;
constexpr double least_near = 0.3;  // of all pairs: others are scattered, or the source is elsewhere

struct Place {
    std::size_t part = 0;
    double distance_mm = 0;  ///< from the surface of the source
};

/// Where lines pass the source.
class SourceLines {
  public:
    SourceLines(const config::Scanner& scanner, const ActivityByCoincidenceOptions& o)
        : geometry_(scanner, config::DepthOfInteraction::of(scanner, std::nullopt)),
          near_mm_(near_in_crystals * geometry::bore_of(scanner).coarsest_mm) {
        const bool is_point = !o.point.empty();
        const std::vector<double>& at = is_point ? o.point : o.cylinder;
        if (at.size() != (is_point ? 3 : 5) ||
            !std::all_of(at.begin(), at.end(), [](double v) { return std::isfinite(v); }))
            throw config::Error("--by-coincidence: expected --point X,Y,Z or --cylinder X,Y,Z,RADIUS,LENGTH");
        middle_ = {at[0], at[1], at[2]};
        if (is_point) return;
        radius_mm_ = at[3];
        length_mm_ = at[4];
        if (!(radius_mm_ > 0 && length_mm_ > 0))
            throw config::Error("--cylinder: expected a radius and a length above 0");
    }

    [[nodiscard]] bool is_point() const { return length_mm_ == 0; }
    [[nodiscard]] std::size_t parts() const { return is_point() ? 1 : cylinder_parts; }
    [[nodiscard]] double volume_ml() const {
        return std::numbers::pi * radius_mm_ * radius_mm_ * length_mm_ * 1e-3;
    }

    /// Absent if it passes beyond the ends of the cylinder.
    [[nodiscard]] std::optional<Place> place(std::uint32_t a, std::uint32_t b) const {
        const config::LineEnds ends = geometry_.ends(a, b);
        Vector3 along{};
        Vector3 from{};
        double squares = 0;
        double towards = 0;
        for (std::size_t axis = 0; axis < 3; ++axis) {
            along[axis] = ends.b[axis] - ends.a[axis];
            from[axis] = middle_[axis] - ends.a[axis];
            // A cylinder lies along z: the nearest place across it.
            if (axis == 2 && !is_point()) continue;
            squares += along[axis] * along[axis];
            towards += along[axis] * from[axis];
        }
        const double share = towards / squares;
        const double x = share * along[0] - from[0];
        const double y = share * along[1] - from[1];
        const double z = share * along[2] - from[2];
        if (is_point()) return Place{0, std::hypot(x, y, z)};
        const double part = std::floor((z / length_mm_ + 0.5) * cylinder_parts);
        if (!(part >= 0 && part < cylinder_parts)) return std::nullopt;
        return Place{static_cast<std::size_t>(part), std::hypot(x, y) - radius_mm_};
    }

    /// How much a line counts for what comes from the source: 1 near it, and a little further from it minus
    /// the ratio of near lines to those if all lines passed evenly, so that even lines add up to 0.
    [[nodiscard]] double weight(const Place& place) const {
        if (place.distance_mm < near_mm_) return 1;
        if (place.distance_mm < 2 * near_mm_ || place.distance_mm >= 4 * near_mm_) return 0;
        // By the area around a point, by the distance from an axis.
        return is_point() ? -1.0 / (16 - 4) : -(radius_mm_ + near_mm_) / (2 * near_mm_);
    }

  private:
    config::LineGeometry geometry_;
    double near_mm_;
    Vector3 middle_{};
    double radius_mm_ = 0;
    double length_mm_ = 0;  ///< 0: a point
};

/// [crystal] its detector unit.
std::vector<std::uint32_t> units_of(const config::Geometry& g) {
    std::vector<std::uint32_t> out(g.crystal_count());
    for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit) {
        for (std::uint32_t local = 0; local < g.crystals_of_unit(unit); ++local)
            out[g.crystal(unit / g.du_count, unit % g.du_count, local)] = unit;
    }
    return out;
}

[[noreturn]] void refuse(const petlm::ExportSource& source, const std::string& expected) {
    throw config::Error(source.target().string() + ": expected " + expected);
}

void check_rules(const petlm::ExportSource& triples) {
    const daemon::RecordRules& rules = triples.coverage().rules;
    if (!rules.gammas || !rules.coincidence)
        refuse(triples, "triples with the rules by which they were made");
    if (rules.gammas->policy != config::GammaPolicy::all)
        refuse(triples, "the gamma policy \"all\": others leave out gammas of the source");
    if (!rules.gammas->delay_ticks) refuse(triples, "delayed gammas (delay_ns of gammas)");
    if (!rules.coincidence->delay_ticks) refuse(triples, "delayeds (delay_ns of coincidence)");
    if (rules.coincidence->multiples_policy != config::MultiplesPolicy::take_all_goods)
        refuse(triples,
               "the multiples policy TakeAllGoods: others lose pairs when their gamma leaves a part of its "
               "energy in the energy window");
}

/// A value of the ledger of the run.
double ledger_value(const petlm::ExportSource& source, const char* pointer) {
    const nlohmann::json::json_pointer at(pointer);
    const nlohmann::json& run = source.run();
    if (!run.is_object() || !run.contains(at) || !run.at(at).is_number())
        refuse(source, std::string("a run directory whose run.json has ") + pointer);
    return run.at(at).get<double>();
}
double gammas_of(const petlm::ExportSource& source) {
    return ledger_value(source, "/ledger/gammas/used") + ledger_value(source, "/ledger/gammas/unused");
}

const config::Gamma& gamma_of(const config::Nuclide& nuclide, const config::Gammas& window) {
    const config::Gamma* found = nullptr;
    constexpr double least = 0.02;  // per decay: others change the result by less than their share
    for (const config::Gamma& gamma : nuclide.gammas) {
        if (gamma.delay_half_life_s > 0 || gamma.per_decay < least || gamma.energy_keV < window.lower_keV)
            continue;
        if (found != nullptr || gamma.energy_keV > window.upper_keV) {
            found = nullptr;
            break;
        }
        found = &gamma;
    }
    if (found == nullptr)
        throw config::Error(
            fmt::format("{}: expected a nuclide with one prompt gamma of {:g} to {:g} keV and none above, "
                        "such as Na-22 or "
                        "Sc-44",
                        nuclide.name, window.lower_keV, window.upper_keV));
    return *found;
}

struct Counted {
    estimate::CoincidenceCounts counts;
    double near = 0;     ///< pairs near the source, without randoms
    double triples = 0;  ///< of all parts
};

/// [unit] Gammas that came by chance: an even sample of all.
std::vector<double> gammas_by_unit(const config::Scanner& scanner, const petlm::ExportSource& triples,
                                   const std::vector<std::uint32_t>& units) {
    std::vector<double> gammas(scanner.geometry.unit_count(), 0.0);
    triples.for_each_block(
        scanner.geometry.crystal_count(),
        [&](const daemon::ListModeReader& reader) {
            for (const gpu::Triple& t : reader.triples())
                if (t.third == gpu::ThirdPhoton::delayed) ++gammas[units[t.gamma_crystal]];
        },
        "reading gammas of");
    return gammas;
}

petlm::DelayedsWeight weights_of(const petlm::ExportSource& source) {
    daemon::RecordRules rules = source.coverage().rules;
    rules.gammas.reset();
    return {petlm::run_directories(source.target(), source.coverage()), rules};
}

void count_pairs(const petlm::ExportSource& pairs, const SourceLines& lines,
                 const std::vector<std::uint32_t>& units, const std::vector<double>& shares, Counted& out) {
    petlm::DelayedsWeight weight = weights_of(pairs);
    std::vector<double> own(lines.parts(), 0.0);
    double all = 0;
    pairs.for_each_block(
        units.size(),
        [&](const daemon::ListModeReader& reader) {
            for (const gpu::Coincidence& c : reader.coincidences()) {
                const double of_kind = c.kind == gpu::Kind::prompt ? 1 : -weight.at(c.time);
                all += of_kind;
                const auto place = lines.place(c.crystal_a, c.crystal_b);
                const double counts = place ? of_kind * lines.weight(*place) : 0;
                if (counts == 0) continue;
                out.counts.parts[place->part].pairs.add(counts);
                const std::uint32_t a = units[c.crystal_a];
                const std::uint32_t b = units[c.crystal_b];
                own[place->part] += counts * (shares[a] + (a == b ? 0 : shares[b]));
                if (lines.weight(*place) > 0) out.near += of_kind;
            }
        },
        "reading");
    if (out.near < least_near * all)
        refuse(pairs,
               fmt::format("at least {:.0f} % of the pairs to pass near the source, found {:.1f} %: check "
                           "--point or --cylinder",
                           100 * least_near, 100 * out.near / all));
    for (std::size_t part = 0; part < own.size(); ++part)
        out.counts.parts[part].own_units = own[part] / out.counts.parts[part].pairs.sum;
}

void count_triples(const petlm::ExportSource& triples, const SourceLines& lines,
                   const std::vector<std::uint32_t>& units, Counted& out) {
    petlm::DelayedsWeight weight = weights_of(triples);
    triples.for_each_block(
        units.size(),
        [&](const daemon::ListModeReader& reader) {
            for (const gpu::Triple& t : reader.triples()) {
                // A random prompt may have a gamma of either photon, a delayed one of its first only.
                const double of_kind = t.pair.kind == gpu::Kind::prompt ? 1 : -2 * weight.at(t.pair.time);
                const double of_gamma = t.third == gpu::ThirdPhoton::coincident ? 1 : -1;
                const auto place = lines.place(t.pair.crystal_a, t.pair.crystal_b);
                const double counts = place ? of_kind * of_gamma * lines.weight(*place) : 0;
                if (counts == 0) continue;
                const std::uint32_t gamma = units[t.gamma_crystal];
                if (gamma == units[t.pair.crystal_a] || gamma == units[t.pair.crystal_b]) {
                    out.counts.triples_own_units += counts;
                } else {
                    out.counts.parts[place->part].triples.add(counts);
                    out.triples += counts;
                }
            }
        },
        "reading triples of");
}

void add_background(const petlm::ExportSource& run, const std::filesystem::path& directory,
                    estimate::CoincidenceCounts& counts) {
    const petlm::ExportSource background(directory, daemon::RecordKind::triples);
    const auto& window = background.coverage().rules.gammas;
    const auto& expected = run.coverage().rules.gammas;
    if (!window || window->lower_keV != expected->lower_keV || window->upper_keV != expected->upper_keV)
        refuse(background, fmt::format("gammas of {:g} to {:g} keV, as in {}", expected->lower_keV,
                                       expected->upper_keV, run.target().string()));
    const double seconds = background.coverage().seconds();
    if (!(seconds > 0)) refuse(background, "a run with a known duration");
    const double gammas = gammas_of(background);
    counts.background_per_s = gammas / seconds;
    counts.background_error = std::sqrt(gammas) / seconds;
    counts.hits_per_s -= ledger_value(background, "/ledger/frames/received") / seconds;
}

void save(const std::filesystem::path& file, const ActivityByCoincidenceOptions& o, const Counted& counted,
          const ActivityByCoincidence& found) {
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
                      {"spurious", spurious_error * std::abs(found.spurious)},
                      {"lost_data", found.lost_data}};
    json["counts"] = {{"seconds", counted.counts.seconds},
                      {"pairs", found.pairs},
                      {"triples", found.triples},
                      {"gammas", counted.counts.gammas},
                      {"background_gammas_per_s", counted.counts.background_per_s}};
    json["corrections"] = {{"spurious_share", found.spurious},
                           {"summing_factor", found.activity.summing},

                           {"triples_in_own_units", counted.counts.triples_own_units}};
    json["sensitivity"] = {{"pairs_per_decay", found.activity.pair_sensitivity},
                           {"gammas_per_decay", found.activity.gamma_sensitivity}};
    std::ofstream out(file);
    out << json.dump(1) << '\n';
    if (!out.flush()) throw config::IoError(file.string() + ": cannot be written");
}

ActivityByCoincidence derive(const config::Scanner& scanner, const ActivityByCoincidenceOptions& o) {
    const SourceLines lines(scanner, o);
    const petlm::ExportSource triples(o.run, daemon::RecordKind::triples);
    const petlm::ExportSource pairs(o.run);
    check_rules(triples);
    if (scanner.rotation) refuse(triples, "a scanner that stands still");
    const auto& stated = triples.coverage().activity;
    const std::string name = o.nuclide ? *o.nuclide : stated ? stated->nuclide : "";
    const config::Nuclide* const nuclide = config::find_nuclide(name);
    if (nuclide == nullptr)
        throw config::Error(name.empty() ? "--nuclide: expected one, as the operator named none"
                                         : "--nuclide: " + name + " is not in the table of nuclides");
    const config::Gamma& gamma = gamma_of(*nuclide, *triples.coverage().rules.gammas);

    ActivityByCoincidence found;
    found.nuclide = nuclide->name;
    const auto live = triples.coverage().loss.live;
    found.lost_data = live ? 1 - *live : 0;
    if (found.lost_data > most_lost)
        refuse(triples, fmt::format("at most {:g} % of the data lost, found {:.3g} %", 100 * most_lost,
                                    100 * found.lost_data));
    Counted counted;
    estimate::CoincidenceCounts& counts = counted.counts;
    counts.seconds = triples.coverage().seconds();
    if (!(counts.seconds > 0)) refuse(triples, "a run with a known duration");
    counts.gammas = gammas_of(triples);
    counts.hits_per_s = ledger_value(triples, "/ledger/frames/received") / counts.seconds;
    counts.parts.resize(lines.parts());
    if (o.background) add_background(triples, *o.background, counts);

    const auto units = units_of(scanner.geometry);
    std::vector<double> shares = gammas_by_unit(scanner, triples, units);
    const double sampled = std::accumulate(shares.begin(), shares.end(), 0.0);
    if (!(sampled >= min_triples))
        refuse(triples, fmt::format("at least {:.0f} delayed gammas, found {:.0f}: take a longer run",
                                    min_triples, sampled));
    for (double& share : shares) {
        counts.gamma_units += share * (share - 1) / (sampled * (sampled - 1));  // without their own scatter
        share /= sampled;
    }
    count_pairs(pairs, lines, units, shares, counted);
    count_triples(triples, lines, units, counted);
    for (const estimate::PartCounts& part : counts.parts) {
        if (part.triples.sum >= min_triples) continue;
        refuse(
            triples,
            fmt::format("at least {:.0f} triples from each tenth of the cylinder, or from the point; found "
                        "{:.0f}: check where the source is, that it lies within the scanner, and take a "
                        "longer run",
                        min_triples, part.triples.sum));
    }
    found.activity = estimate::coincidence_activity(
        counts, {nuclide->branching_ratio, gamma.per_decay, nuclide->chance(gamma, true)});
    for (const estimate::PartCounts& part : counts.parts)
        found.pairs += part.pairs.sum;
    found.triples = counted.triples;
    found.spurious = 1 - found.pairs / counted.near;
    found.volume_ml = lines.is_point() ? 0 : lines.volume_ml();
    found.error = std::hypot(found.activity.error(), spurious_error * found.spurious, found.lost_data);
    found.at_start_becquerel =
        found.activity.becquerel * triples.coverage().decay_factor(nuclide->half_life_s);
    if (const auto utc = triples.coverage().utc_of(triples.coverage().reference_ticks()))
        found.start_utc = daemon::utc_text(*utc);
    save(o.output, o, counted, found);
    return found;
}

}  // namespace

ActivityByCoincidence activity_by_coincidence(const config::Scanner& scanner,
                                              const ActivityByCoincidenceOptions& options) {
    try {
        return derive(scanner, options);
    } catch (const daemon::NotListMode& e) {
        throw config::Error(e.what());
    } catch (const petlm::BadInput& e) {
        throw config::Error(e.what());
    } catch (const std::system_error& e) {
        throw config::Error(e.what());
    }
}

std::string figures_text(const ActivityByCoincidence& f) {
    std::string text = fmt::format("pairs               {:.0f}, {:.3g} % of the decays\n", f.pairs,
                                   100 * f.activity.pair_sensitivity);
    text += fmt::format("gammas              {:.3g} % of the decays\n", 100 * f.activity.gamma_sensitivity);
    text += fmt::format("triples             {:.0f}\n", f.triples);
    text += fmt::format("spurious pairs      {:.2f} %, subtracted\n", 100 * f.spurious);
    text +=
        fmt::format("activity of {:<8}{:.6g} MBq +- {:.2g} % at {}\n", f.nuclide, f.at_start_becquerel * 1e-6,
                    100 * f.error, f.start_utc.empty() ? "the start of the run" : f.start_utc);
    if (f.volume_ml > 0)
        text += fmt::format("concentration       {:.6g} kBq/ml in {:.4g} ml\n",
                            f.at_start_becquerel * 1e-3 / f.volume_ml, f.volume_ml);
    return text;
}

}  // namespace petacq::petcal
