#include "tools/petlm/export/export.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "config/base/answer.hpp"
#include "config/base/error.hpp"
#include "config/scanner/long_form.hpp"
#include "daemon/backend/pipeline_options.hpp"
#include "daemon/coverage/unknown.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/export/geometry/crystal_table.hpp"
#include "tools/petlm/export/recorded_time.hpp"
#include "tools/petlm/reconstruction/corrections/bed.hpp"
#include "tools/petlm/reconstruction/corrections/fits.hpp"
#include "tools/petlm/reconstruction/corrections/run_randoms.hpp"
#include "tools/petlm/reconstruction/em/lines.hpp"
#include "tools/petlm/records/covered_seconds.hpp"
#include "tools/petlm/records/run.hpp"

namespace petacq::petlm {
namespace {

struct Format {
    const char* name;
    Exporter exporter;
    bool singles;    ///< can hold singles
    bool tags;       ///< can hold tags
    bool triples;    ///< can hold triples
    bool directory;  ///< writes several files
    bool randoms;    ///< can hold randoms by pairs of crystals
    /// Of the scanner, before anything is read; null: any will do.
    void (*check)(const ExportSource&, const ExportOptions&) = nullptr;
    bool lines = false;   ///< describes the lines of pairs, which must not move
    bool places = false;  ///< has the places of crystals, bed and scanner over time
};

constexpr std::array<Format, 6> formats = {
    {{"castor", export_castor, false, false, false, true, true, nullptr, true},
     {"stir", export_stir, false, false, false, true, true, check_stir, true},
     {"coinstruct", export_coinstruct, false, false, false, false, false},
     {"csv", export_csv, true, true, true, false, false},
     {"hdf5", export_hdf5, true, false, true, false, false},
     {"petsird", export_petsird, false, false, false, false, false, nullptr, false, true}}};

const Format& format_named(const std::string& name) {
    for (const auto& format : formats) {
        if (name == format.name) return format;
    }
    const std::vector<std::string> names = export_formats();
    throw UsageError(fmt::format("format '{}': expected {} or {}", name,
                                 fmt::join(names.begin(), names.end() - 1, ", "), names.back()));
}

void check_options(const ExportOptions& o) {
    const bool castor = o.format == "castor";
    const bool petsird = o.format == "petsird";
    const bool reconstruction = castor || o.format == "stir";
    const auto only = [&](bool given, const char* option, const char* who) {
        if (given) throw UsageError(std::string(option) + " is for " + who + ", not for " + o.format);
    };
    only(o.tof_resolution_ps.has_value() && !castor && !petsird, "--tof-resolution-ps", "castor and petsird");
    only(o.petsird != petsird::PetsirdOptions{} && !petsird,
         "--petsird-version, --block-ms, --tof-bin-ticks, --energy-bins, --energy-resolution, --no-delayeds, "
         "--no-triples, --only-events, --bed-channel or --signal",
         "petsird");
    only(o.event_kind && !castor, "--kind", "castor");
    only(o.depth_mm.has_value() && !reconstruction && !petsird, "--depth-mm", "castor, stir and petsird");
    only(o.lines.normalisation && !reconstruction && !petsird, "--normalisation", "castor, stir and petsird");
    only(!o.lines.attenuation.empty() && !reconstruction, "--attenuation", "castor and stir");
    only(o.scatter && !reconstruction, "--scatter", "castor and stir");
    only(o.nuclide && !reconstruction, "--nuclide", "castor and stir");
    only((o.half_life_s || o.branching_ratio) && !reconstruction, "--half-life-s, --branching-ratio",
         "castor and stir");
    corrections::check_scatter(o.scatter, o.lines);
    if (!(o.max_lines_gb > 0 && o.max_lines_gb <= 1e6)) {
        throw UsageError(fmt::format("--max-lines-gb: expected more than 0, found {}", o.max_lines_gb));
    }
    only(o.time_from_start && o.format != "coinstruct", "--time-from-start", "coinstruct");
    if (o.tof_resolution_ps && !(*o.tof_resolution_ps > 0 && *o.tof_resolution_ps < 1e9)) {
        throw UsageError(
            fmt::format("--tof-resolution-ps: expected a time above 0, found {}", *o.tof_resolution_ps));
    }
}

std::string counts_text(const Exported& exported) {
    if (exported.triples != 0 && exported.prompts != 0) {
        return fmt::format("{} prompts, {} delayeds, {} triples", exported.prompts, exported.delayeds,
                           exported.triples);
    }
    if (exported.triples != 0) return fmt::format("{} triples", exported.triples);
    if (exported.tags != 0) return fmt::format("{} tags", exported.tags);
    if (exported.singles != 0) return fmt::format("{} singles", exported.singles);
    return fmt::format("{} prompts, {} delayeds", exported.prompts, exported.delayeds);
}

std::string description_text(const ExportSource& source, const daemon::Coverage& coverage,
                             const ExportOptions& options, const Exported& exported) {
    std::string text =
        fmt::format("Made by petlm export --format {} from {}.\n", options.format, source.target().string());
    const auto& description = source.description();
    for (const char* key : {"run_id", "scanner", "tick_ps"}) {
        if (!description.contains(key)) continue;
        text += fmt::format("{}: {}\n", key, json_line(description[key]));
    }
    for (const auto& [name, value] : coverage_rows(coverage))
        text += fmt::format("{}: {}\n", name, value);
    if (const auto said = source.said_by_operator(); !said.is_null())
        text += fmt::format("operator: {}\n", json_line(said));
    text += counts_text(exported) + ".\n";
    const auto list = [&](const char* title, const std::vector<std::string>& lines) {
        if (lines.empty()) return;
        text += fmt::format("\n{}\n", title);
        for (const auto& line : lines)
            text += "- " + line + '\n';
    };
    list("Files", exported.files);
    list("How to read them", exported.notes);
    list("What was recorded and is not in these files", exported.lost);
    text += fmt::format("\nThe page docs/reference/formats/{}.md has a worked example.\n", options.format);
    return text;
}

std::string dead_time_sentence(const RunDeadTime& dead_time) {
    if (dead_time.factor.empty())
        return " Dead time: not corrected, as the boards did not report it in all seconds.";
    return fmt::format(
        " Dead time: by factors of {:.4g} to {:.4g}, by pair of DUs, from the reports of the "
        "boards "
        "and the singles.",
        dead_time.least, dead_time.most);
}

/// Dead time, pile-up and loss: sets `found` as far as they are known.
void add_losses(const std::shared_ptr<const RunRandoms>& of_run, RandomsPerPair& randoms) {
    const bool pile_up = !std::isnan(of_run->pile_up().mean);
    const double factor = pile_up ? of_run->pile_up().mean : 1;
    randoms.found = [of_run, factor](std::uint32_t a, std::uint32_t b) {
        return of_run->live(a, b) / factor;
    };
    randoms.loss_sentence = sentence_of(of_run->loss());
    randoms.found_sentence = pile_up ? fmt::format("Pile-up: by a factor of {:.6g}.", factor)
                                     : "Pile-up: not corrected, as the seconds of the run do not tell it.";
    randoms.found_sentence += dead_time_sentence(of_run->dead_time());
}

/// As petlm image does without seconds: the delayeds of two BDMs stand for the randoms of their pairs.
void add_delayeds(const ExportSource& source, const config::Scanner& scanner, RandomsPerPair& randoms) {
    const auto delayeds =
        std::make_shared<image::RandomsByModules>(scanner.geometry, pair_rule(source, scanner.geometry));
    source.for_each_block(scanner.geometry.crystal_count(), [&](const daemon::ListModeReader& reader) {
        for (const auto& c : reader.coincidences())
            if (c.kind == gpu::Kind::delayed) delayeds->add(c.crystal_a, c.crystal_b);
    });
    if (delayeds->total() == 0) return;
    const auto weight = mean_weight_of_delayeds(source);
    randoms.sum = [delayeds, factor = weight.value_or(1)](std::uint32_t a, std::uint32_t b) {
        return factor * delayeds->expected({std::min(a, b), std::max(a, b)});
    };
    randoms.sum_sentence =
        fmt::format("Randoms: expected from the delayeds of each pair of BDMs, each of which stands for {}.",
                    weight ? fmt::format("{:.4g} randoms", *weight) : "1 random (its weight is unknown)");
}

/// Adds the estimate from the seconds of the run, or else, with factors of lines, that from the delayeds.
/// Returns why there is none from the seconds.
std::string add_randoms(const ExportSource& source, ExportOptions& options) {
    std::string why;
    const config::Scanner scanner = source.scanner(options.scanner);
    const std::shared_ptr<const RunRandoms> randoms = RunRandoms::of(source, scanner, why);
    if (randoms) {
        options.randoms.emplace();
        options.randoms->sum = [randoms](std::uint32_t a, std::uint32_t b) { return randoms->sum(a, b); };
        options.randoms->sum_sentence =
            "Randoms: expected from the singles of each second, by pair of crystals.";
        add_losses(randoms, *options.randoms);
        return why;
    }
    options.randoms.emplace();
    if (options.corrects_lines() && source.may_hold_delayeds())
        add_delayeds(source, scanner, *options.randoms);
    std::string ignored;
    const std::shared_ptr<const PairLosses> losses =
        PairLosses::of(source, source.coverage(), scanner, ignored);
    if (!losses) return why;
    options.randoms->found = [losses](std::uint32_t a, std::uint32_t b) { return losses->live(a, b); };
    options.randoms->loss_sentence = sentence_of(losses->loss());
    options.randoms->found_sentence =
        "Pile-up: not corrected, as " + why + "." + dead_time_sentence(losses->dead_time());
    return why;
}

/// What users must know of the records, whatever the format.
void add_warnings(const ExportSource& source, const daemon::Coverage& coverage, bool loss_corrected,
                  Exported& exported) {
    for (const auto& what : coverage.unknown)
        exported.lost.push_back(source.target().string() + " does not tell " + what + ".");
    if (!loss_corrected && coverage.loss.live && *coverage.loss.live < 1) {
        exported.lost.push_back(data_that_lack(source.target(), coverage) +
                                "; the files are not corrected for that.");
    }
}

/// Places over time that the format does not have.
void add_movement(const ExportSource& source, const std::optional<config::Rotation>& rotation,
                  Exported& exported) {
    if (rotation && source.kind() != daemon::RecordKind::tags) {
        exported.lost.push_back(
            "The scanner turns, and the records do not have its angle: the position tags of the run tell it "
            "(petlm export csv of its tags.plm). Places of crystals are those at an angle of 0.");
    }
    const corrections::BedMovement bed = corrections::bed_movement(source, rotation);
    if (bed.moved()) exported.lost.push_back(bed.text() + "; the files do not have its positions.");
    if (const std::string unknown = bed.unknown_text(); !unknown.empty()) exported.lost.push_back(unknown);
}

/// Where the crystals of a scanner in the long form are, in the order in which the format numbers them.
void add_crystals(const ExportSource& source, const ExportOptions& options, const std::filesystem::path& file,
                  Exported& exported) {
    if (source.kind() == daemon::RecordKind::tags) return;
    const auto of_run = source.run().find("scanner");
    const bool long_form_of_run = of_run != source.run().end() && config::is_long_form(*of_run);
    if (!options.scanner && !long_form_of_run) return;
    std::vector<CrystalEntry> table = crystal_table(source.scanner(options.scanner));
    if (table.empty()) return;
    if (!exported.crystal_order.empty()) {
        std::vector<CrystalEntry> ordered;
        for (const std::uint32_t crystal : exported.crystal_order)
            ordered.push_back(table[crystal]);
        table = std::move(ordered);
    }
    write_crystal_table(file, table);
    exported.files.push_back(file.filename().string() +
                             ": place, sizes and address of each crystal, lengths in mm");
}

Exported export_to(const ExportSource& source, ExportOptions options, const Format& format) {
    daemon::Coverage coverage = completed_coverage(source);
    coverage.activity = corrections::nuclide_of(coverage, options);
    if (options.tof_resolution_ps && !daemon::tells(coverage, daemon::unknown_dt)) {
        throw UsageError(fmt::format("--tof-resolution-ps: {} does not tell {}; expected no time of flight",
                                     source.target().string(), daemon::unknown_dt));
    }
    if (options.lines.normalisation && !options.depth_mm) {
        options.depth_mm =
            corrections::depth_of_normalisation(options.lines, source.scanner(options.scanner));
    }
    const bool turns = source.rotation(options.scanner).has_value();
    if (turns && format.lines) {
        throw UsageError(
            fmt::format("{}: the scanner turns, and the format {} has one place for each crystal; petlm "
                        "image and petlm frames make images of it, the format petsird has its angles",
                        source.target().string(), options.format));
    }
    if (format.check != nullptr) format.check(source, options);
    Outputs outputs(options.force);
    if (format.directory) outputs.make_directory(options.output);
    const auto text_file = format.directory ? options.output / "README.txt"
                                            : std::filesystem::path(options.output.string() + ".README.txt");
    outputs.claim(text_file);
    const auto crystals_file =
        format.directory ? options.output / "crystals.csv" : crystals_beside(options.output);
    outputs.claim(crystals_file);
    std::string no_randoms;
    if (format.randoms && !options.randoms) options.no_seconds = no_randoms = add_randoms(source, options);
    Exported exported = format.exporter(source, options, outputs);
    if (!options.has_randoms() && !no_randoms.empty())
        exported.lost.push_back(options.format + ": no randoms by pairs of crystals: " + no_randoms + ".");
    if (!format.places) add_crystals(source, options, crystals_file, exported);
    add_warnings(source, coverage, options.corrects_lines(), exported);
    if (!format.places) add_movement(source, source.rotation(options.scanner), exported);
    const auto state = source.run().find("state");
    if (!source.run().is_null() && state != source.run().end() && *state != "complete") {
        exported.lost.push_back("The run's state is " + state->dump() + ", not complete: run.json says why.");
    }
    exported.text = text_file;
    write_text(text_file, description_text(source, coverage, options, exported));
    outputs.commit();
    exported.written = outputs.written();
    return exported;
}

}  // namespace

std::vector<std::string> export_formats() {
    std::vector<std::string> names;
    names.reserve(formats.size());
    for (const Format& format : formats)
        names.emplace_back(format.name);
    return names;
}

void Exported::count(const daemon::ListModeReader& reader) {
    if (reader.kind() == daemon::RecordKind::singles) {
        singles += reader.singles().size();
        return;
    }
    if (reader.kind() == daemon::RecordKind::triples) {
        triples += reader.triples().size();
        return;
    }
    if (reader.kind() == daemon::RecordKind::tags) {
        tags += reader.tags().size();
        return;
    }
    for (const auto& c : reader.coincidences())
        ++(c.kind == gpu::Kind::prompt ? prompts : delayeds);
}

gpu::PairRule pair_rule(const ExportSource& source, const config::Geometry& geometry) {
    const auto& rules = source.coverage().rules.coincidence;
    return gpu::PairRule::of(geometry, rules ? daemon::coincidence_rules(*rules) : gpu::CoincidenceRules{});
}

void check_size_of_lines(const ExportOptions& options, std::uint64_t lines, std::uint64_t bytes) {
    const double gb = static_cast<double>(bytes) / 1e9;
    if (gb <= options.max_lines_gb) return;
    throw UsageError(fmt::format(
        "the {:.3g} lines of this scanner and run need {:.1f} GB; --max-lines-gb allows {:.3g} GB",
        static_cast<double>(lines), gb, options.max_lines_gb));
}

config::DepthOfInteraction depth_of_interaction(std::optional<double> depth_mm,
                                                const config::Scanner& scanner) {
    try {
        return config::DepthOfInteraction::of(scanner, depth_mm);
    } catch (const config::Error& error) {
        throw UsageError(error.what());
    }
}

std::vector<std::string> limit_sentences(const ExportSource& source, const std::string& how) {
    std::vector<std::string> sentences;
    const auto add = [&](const char* name, std::optional<std::uint32_t> limit) {
        if (limit)
            sentences.push_back(fmt::format("Only pairs with {} {} were recorded{}", name, *limit, how));
    };
    if (const auto& coincidence = source.coverage().rules.coincidence) {
        add("min_module_difference", coincidence->min_module_difference);
        add("max_ring_difference", coincidence->max_ring_difference);
    }
    return sentences;
}

std::string file_name_of(const config::Scanner& scanner) {
    std::string name = scanner.name;
    for (char& c : name) {
        const bool good = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                          c == '_' || c == '-';
        if (!good) c = '_';
    }
    return name;
}

Exported export_quietly(const ExportOptions& options) {
    const Format& format = format_named(options.format);
    check_options(options);
    const ExportSource source(options.target);
    const daemon::RecordKind kind = source.kind();
    if ((kind == daemon::RecordKind::singles && !format.singles) ||
        (kind == daemon::RecordKind::tags && !format.tags) ||
        (kind == daemon::RecordKind::triples && !format.triples)) {
        throw UsageError(options.target.string() + " holds " + daemon::name_of(kind) + "; " + options.format +
                         " does not take them");
    }
    if (source.kind() == daemon::RecordKind::seconds) {
        throw UsageError(options.target.string() +
                         " holds seconds; petlm dump prints them, and the export of a run to hdf5 has them");
    }
    return export_to(source, options, format);
}

int export_records(const ExportOptions& options) {
    const Exported exported = export_quietly(options);
    config::print_written({.facts = {{"format", options.format},
                                     {"prompts", exported.prompts},
                                     {"delayeds", exported.delayeds},
                                     {"singles", exported.singles},
                                     {"triples", exported.triples},
                                     {"tags", exported.tags},
                                     {"contents", exported.files},
                                     {"notes", exported.notes}},
                           .text = fmt::format("{}: {}\nSee {}\n", options.output.string(),
                                               counts_text(exported), exported.text.string()),
                           .files = exported.written,
                           .warnings = exported.lost},
                          options.as_json, "petlm");
    return ok;
}

}  // namespace petacq::petlm
