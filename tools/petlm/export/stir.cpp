// STIR: SAFIR list-mode with crystal map, template and parameter files. docs/reference/formats/stir.md has
// the layout.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "config/nuclides/nuclides.hpp"
#include "daemon/system/utc.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/export/export.hpp"
#include "tools/petlm/export/geometry/crystal_kinds.hpp"
#include "tools/petlm/export/geometry/one_depth.hpp"
#include "tools/petlm/export/geometry/pair_angle.hpp"
#include "tools/petlm/export/geometry/stir_detectors.hpp"
#include "tools/petlm/export/line_model.hpp"
#include "tools/petlm/export/recorded_time.hpp"
#include "tools/petlm/export/safir_layout.hpp"
#include "tools/petlm/export/stir_lines.hpp"
#include "tools/petlm/export/stir_projections.hpp"

namespace petacq::petlm {
namespace {

std::uint64_t record_of(const gpu::Coincidence& c, const StirDetectors& detectors) {
    const std::uint64_t event = safir_event(detectors.code(c.crystal_a), detectors.code(c.crystal_b));
    return c.kind == gpu::Kind::prompt ? event : event | safir_delayed_event;
}

void write_crystal_map(const std::filesystem::path& file, const config::Scanner& scanner,
                       const StirDetectors& detectors, const CrystalKinds& kinds, const OneDepth& depth) {
    OutputFile out(file);
    out.text("#ring\tdetector\tlayer\tx\ty\tz\n");
    for (const std::uint32_t crystal : detectors.crystals()) {
        const auto place = config::crystal_place(scanner, crystal);
        const auto p = config::point_at_depth(place, depth.mm(kinds.kind_of(crystal)));
        // Adding 0 turns -0 into 0.
        const auto mm = [](double value) { return std::round(value * 1e4) / 1e4 + 0.0; };
        const std::uint64_t code = detectors.code(crystal);
        out.text(fmt::format("{}\t{}\t{}\t{:.4f}\t{:.4f}\t{:.4f}\n", code & 0xFFU, code >> 16U & 0xFFFFU,
                             code >> 48U, mm(p[0]), mm(p[1]), mm(p[2])));
    }
    out.close();
}

std::uint32_t largest_ring_difference(const StirDetectors& detectors, const ExportSource& source) {
    const auto& rules = source.coverage().rules.coincidence;
    const std::uint32_t limit = rules ? rules->max_ring_difference.value_or(UINT32_MAX) : UINT32_MAX;
    return std::min(detectors.rings() - 1, limit);
}

/// How far apart around the ring the two nearest detectors are that form a pair.
std::uint32_t nearest_in_pairs(const config::Scanner& scanner, const StirDetectors& detectors,
                               std::uint32_t min_module_difference) {
    const config::Geometry& g = scanner.geometry;
    if (g.is_ring()) {
        return min_module_difference == 0 ? 0 : (min_module_difference - 1) * g.blocks.y * g.crystals.y + 1;
    }
    const auto any_pair = [&](std::uint32_t apart) {
        for (std::uint32_t detector = 0; detector < detectors.in_ring(); ++detector) {
            for (std::uint32_t a = 0; a < detectors.rings(); ++a) {
                for (std::uint32_t b = 0; b < detectors.rings(); ++b) {
                    const auto& first = g.pairs->crystals[detectors.crystal_of(a, detector)];
                    const auto& second =
                        g.pairs->crystals[detectors.crystal_of(b, (detector + apart) % detectors.in_ring())];
                    if (groups_pair(*g.pairs, first.group, second.group, min_module_difference)) return true;
                }
            }
        }
        return false;
    };
    std::uint32_t apart = 1;
    while (apart < detectors.in_ring() / 2 && !any_pair(apart))
        ++apart;
    return apart;
}

/// Number of tangential positions that the projection data need for the pairs that were recorded. A pair
/// whose detectors are n apart around the ring is at +-(detectors / 2 - n).
std::uint32_t tangential_positions(const config::Scanner& scanner, const StirDetectors& detectors,
                                   const ExportSource& source) {
    const std::uint32_t half = detectors.in_ring() / 2;
    // Crystals less than 2 apart are always left out: STIR's projectors look one position further on either
    // side, and none lies beyond.
    const std::uint32_t nearest = std::max(
        nearest_in_pairs(scanner, detectors, pair_rule(source, scanner.geometry).min_module_difference), 2U);
    return half > nearest ? 2 * (half - nearest) + 1 : 1;
}

/// The lines of an Interfile header about time, energy window and nuclide, as far as they are known.
std::string study_lines(const daemon::Coverage& coverage, const RecordedTime& time,
                        const std::optional<daemon::StatedActivity>& nuclide) {
    std::string text;
    if (coverage.anchor) {
        text += "study date := " + daemon::utc_text(coverage.anchor->utc, "%Y:%m:%d") + "\n";
        text += "study time := " + daemon::utc_text(coverage.anchor->utc, "%H:%M:%S+0000") + "\n";
    }
    text += fmt::format(
        "number of time frames := 1\nimage relative start time (sec)[1] := {:.10g}\n"
        "image duration (sec)[1] := {}\n",
        time.start_s(), time.seconds());
    if (const auto& energy = coverage.rules.energy; energy && energy->filter) {
        text += fmt::format(
            "number of energy windows := 1\nenergy window lower level[1] := {}\n"
            "energy window upper level[1] := {}\n",
            energy->lower_keV, energy->upper_keV);
    }
    if (nuclide) {
        text += fmt::format(
            "number of radionuclides := 1\nradionuclide name[1] := {}\nradionuclide halflife (sec)[1] := "
            "{:.9g}\n"
            "radionuclide branching factor[1] := {}\n",
            nuclide->nuclide, nuclide->half_life_s, nuclide->branching_ratio);
    }
    return text;
}

/// The frame of all events; "0" frames of a length are left out.
std::string frame_definition(const RecordedTime& time) {
    const std::string before =
        time.start_s() > 0 ? fmt::format("0 {:.10g}\n", time.start_s()) : std::string();
    return before + fmt::format("1 {}\n", time.seconds());
}

constexpr const char* list_mode_parameters =
    "CListModeDataSAFIR Parameters :=\nlistmode data filename := listmode.clm.safir\n"
    "crystal map filename := crystal_map.txt\ntemplate projection data filename := template.hs\n"
    "END CListModeDataSAFIR Parameters :=\n";

std::string binning_parameters(const char* prefix, bool delayeds) {
    return fmt::format(
        "lm_to_projdata Parameters :=\ninput file := listmode.par\noutput filename prefix := {}\n"
        "template_projdata := template.hs\n"
        "; frame_definition file: number and length in seconds of the frames; number 0: time to skip\n"
        "frame_definition file := frames.fdef\nstore prompts := {}\nstore delayeds := {}\n"
        "END :=\n",
        prefix, delayeds ? 0 : 1, delayeds ? 1 : 0);
}

/// Counts the events, too.
void write_events(const ExportSource& source, const std::filesystem::path& file,
                  const StirDetectors& detectors, const RecordedTime& time, OneDepth& depth,
                  Exported& exported) {
    OutputFile out(file);
    out.put(safir_signature);
    std::uint64_t last_ms = UINT64_MAX;
    source.for_each_block(detectors.crystals().size(), [&](const daemon::ListModeReader& reader) {
        for (const auto& c : reader.coincidences()) {
            depth.add(c);
            const std::uint64_t ms = time.milliseconds(c.time);
            if (ms != last_ms) out.put(safir_time_record | ms);
            last_ms = ms;
            out.put(record_of(c, detectors));
            ++(c.kind == gpu::Kind::prompt ? exported.prompts : exported.delayeds);
        }
    });
    // STIR takes the end of the data from the last time record.
    out.put(safir_time_record | time.end_ms());
    out.close();
}

std::string numbers_sentence(const config::Scanner& scanner, const StirDetectors& detectors) {
    if (scanner.is_ring()) {
        return fmt::format(
            "Detectors of a ring are numbered from -y towards +x, as STIR does: detector = (crystal "
            "mod {0} + {1}) mod {0}; ring = crystal / {0}.",
            scanner.geometry.crystals_in_ring(), detectors.detector_of(0));
    }
    return "Lines of crystal_map.txt and of crystals.csv are in the same order, below their names: line by "
           "line "
           "they are STIR's and petacqd's numbers of one crystal.";
}

/// The template and what is made by it, but for factors of lines.
void write_projections(const ExportOptions& options, const StirLines& how, const RecordedTime& time,
                       net::WorkerPool& pool, Exported& exported) {
    const auto header = [&](const char* file, const char* data) {
        write_stir_header(options.output / file, data, how.scanner, how.detectors, how.projections,
                          how.depth_mm, how.study);
    };
    header("template.hs", "template.s");
    write_text(options.output / "template.s", "");
    write_text(options.output / "lm_to_projdata.par", binning_parameters("sinograms", false));
    write_text(options.output / "frames.fdef", frame_definition(time));
    exported.files.emplace_back("template.hs, template.s: projection data of this scanner without data");
    exported.files.emplace_back("lm_to_projdata.par, frames.fdef: parameters to bin the events");
    if (exported.delayeds != 0) {
        write_text(options.output / "lm_to_projdata_delayeds.par", binning_parameters("delayeds", true));
        exported.files.emplace_back("lm_to_projdata_delayeds.par: the same for the delayeds");
    }
    if (options.has_randoms()) {
        header("randoms.hs", "randoms.s");
        write_stir_values(options.output / "randoms.s", how.detectors, how.projections, pool,
                          options.randoms->sum);
        exported.files.emplace_back(
            "randoms.hs, randoms.s: the randoms to be expected among the prompts, as projection data");
    }
}

void describe_template(const std::optional<daemon::StatedActivity>& nuclide, Exported& exported) {
    if (!nuclide) return;
    if (auto note = config::prompt_gamma_note(nuclide->nuclide); !note.empty())
        exported.notes.push_back(std::move(note));
    exported.notes.push_back(
        "template.hs states start and nuclide of the run. STIR's reader of SAFIR list-mode takes neither "
        "from it: after lm_to_projdata, copy its lines \"study\" and \"radionuclide\" into the headers of "
        "the "
        "sinograms.");
}

}  // namespace

void check_stir(const ExportSource& source, const ExportOptions& options) {
    const config::Scanner scanner = source.scanner(options.scanner);
    const StirDetectors detectors(scanner, CrystalKinds(scanner));
    if (detectors.no_template().empty() || !options.corrects_lines()) return;
    throw UsageError(fmt::format(
        "--normalisation, --attenuation: stir has factors of lines as projection data, and those of STIR "
        "do not hold the lines of scanner {}: {}; expected an export to castor, or none of these options",
        scanner.name, detectors.no_template()));
}

Exported export_stir(const ExportSource& source, const ExportOptions& options, Outputs& outputs) {
    const config::Scanner scanner = source.scanner(options.scanner);
    const CrystalKinds kinds(scanner);
    const StirDetectors detectors(scanner, kinds);
    OneDepth depth(scanner, kinds, options.depth_mm);
    const bool projects = detectors.no_template().empty();
    for (const char* file :
         {"listmode.clm.safir", "listmode.par", "crystal_map.txt", "template.hs", "template.s",
          "lm_to_projdata.par", "lm_to_projdata_delayeds.par", "frames.fdef", "randoms.hs", "randoms.s"})
        outputs.claim(options.output / file);
    claim_stir_lines(options.output, outputs);

    const StirProjections projections =
        projects ? StirProjections{largest_ring_difference(detectors, source),
                                   tangential_positions(scanner, detectors, source)}
                 : StirProjections{};
    const auto nuclide = corrections::nuclide_of(source.coverage(), options);
    const daemon::Coverage coverage = completed_coverage(source);
    const RecordedTime time(coverage);
    net::WorkerPool pool(std::max(1U, std::thread::hardware_concurrency()));
    std::unique_ptr<const LineModel> model;
    if (options.corrects_lines()) {
        check_stir_lines(options, detectors, projections);
        model = std::make_unique<const LineModel>(source, scanner, options, pool);
    }
    if (time.end_ms() > safir_milliseconds) {
        throw BadInput(source.target().string() +
                       ": too long; stir (SAFIR list-mode) counts milliseconds with 48 bits");
    }
    Exported exported;
    write_events(source, options.output / "listmode.clm.safir", detectors, time, depth, exported);

    write_crystal_map(options.output / "crystal_map.txt", scanner, detectors, kinds, depth);
    write_text(options.output / "listmode.par", list_mode_parameters);
    exported.crystal_order = detectors.crystals();
    exported.files = {"listmode.clm.safir: the events, prompts and delayeds in their order",
                      "listmode.par: the file that STIR opens as list-mode data",
                      "crystal_map.txt: ring, detector, layer and position (mm) of each crystal"};
    exported.notes = {"Run STIR's programs in this directory: the file names are relative.",
                      time_sentence(time), numbers_sentence(scanner, detectors), depth.sentence()};
    if (projects) {
        const StirLines how{
            scanner,       detectors, projections, depth.mm(0), study_lines(coverage, time, nuclide),
            time.seconds()};
        write_projections(options, how, time, pool, exported);
        if (model) {
            write_stir_lines(options.output, how, *model, pool, exported);
        } else {
            exported.lost.emplace_back(
                "stir: no factors of lines were written; they require --normalisation or --attenuation.");
        }
        describe_template(nuclide, exported);
    } else {
        exported.lost.push_back(fmt::format(
            "stir: no projection data were written, nor randoms: those of STIR do not hold the lines of "
            "scanner "
            "{}: {}. listmode.par names template.hs; put projection data of a cylinder of your choice there, "
            "into which STIR sorts the events by the positions in crystal_map.txt.",
            scanner.name, detectors.no_template()));
    }
    for (const char* lost :
         {"stir: SAFIR list-mode does not hold energies.", "stir: SAFIR list-mode does not hold TOF.",
          "stir: times are whole milliseconds."})
        exported.lost.emplace_back(lost);
    if (projects) {
        if (pair_rule(source, scanner.geometry).min_module_difference != 0) {
            exported.lost.push_back(
                "stir: the template leaves out lines that are too close to the edge for the run's "
                "min_module_difference; at the limit it has some lines that the run did not accept.");
        }
        if (!scanner.is_ring()) {
            exported.lost.push_back(
                "stir: the template has lines that the scanner's good_pairs refuse; no event is in them.");
        }
        for (auto& sentence : limit_sentences(source,
                                              "; the template states the ring difference, and the module "
                                              "difference as a range of tangential positions."))
            exported.notes.push_back(std::move(sentence));
    }
    return exported;
}

}  // namespace petacq::petlm
