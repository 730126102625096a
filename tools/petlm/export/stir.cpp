// STIR: SAFIR list-mode with crystal map, template and parameter files. docs/reference/formats/stir.md has
// the layout.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "config/nuclides/nuclides.hpp"
#include "daemon/system/utc.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/export/export.hpp"
#include "tools/petlm/export/line_model.hpp"
#include "tools/petlm/export/one_depth.hpp"
#include "tools/petlm/export/recorded_time.hpp"
#include "tools/petlm/export/stir_lines.hpp"
#include "tools/petlm/export/stir_projections.hpp"

namespace petacq::petlm {
namespace {

constexpr std::uint32_t max_rings = 256;
constexpr std::uint32_t max_in_ring = 65536;
constexpr std::uint64_t max_milliseconds = std::uint64_t{1} << 48U;
constexpr std::uint64_t time_record = std::uint64_t{1} << 63U;
constexpr std::uint64_t delayed_event = std::uint64_t{1} << 62U;

void check_fits(const config::Scanner& scanner) {
    const auto& g = scanner.geometry;
    const auto refuse = [&](std::uint32_t count, const char* what) {
        throw UsageError(fmt::format("scanner {} has {} {}", scanner.name, count, what));
    };
    if (g.rings() > max_rings)
        refuse(g.rings(), "rings; stir (SAFIR list-mode) numbers rings with 8 bits, at most 256");
    if (g.crystals_in_ring() > max_in_ring)
        refuse(g.crystals_in_ring(), "crystals in a ring; stir (SAFIR list-mode) numbers them with 16 bits");
    if (g.crystals_in_ring() % 2 != 0)
        refuse(g.crystals_in_ring(), "crystals in a ring; STIR's projection data take an even number");
}

std::uint64_t record_of(const gpu::Coincidence& c, const StirDetectors& detectors) {
    const std::uint64_t a = detectors.code(c.crystal_a);
    const std::uint64_t b = detectors.code(c.crystal_b);
    // ringA 0..7, ringB 8..15, detA 16..31, detB 32..47, layers and reserved 0, delayed 62, type 63.
    const std::uint64_t event = a | (b & 0xFFU) << 8U | (b & 0xFFFF0000U) << 16U;
    return c.kind == gpu::Kind::prompt ? event : event | delayed_event;
}

void write_crystal_map(const std::filesystem::path& file, const config::Scanner& scanner,
                       const StirDetectors& detectors, double depth_mm) {
    OutputFile out(file);
    out.text("#ring\tdetector\tlayer\tx\ty\tz\n");
    for (std::uint32_t ring = 0; ring < scanner.geometry.rings(); ++ring) {
        for (std::uint32_t detector = 0; detector < scanner.geometry.crystals_in_ring(); ++detector) {
            const auto place = config::crystal_place(scanner, detectors.crystal_of(ring, detector));
            const auto p = config::point_at_depth(place, depth_mm);
            // Adding 0 turns -0 into 0.
            const auto mm = [](double value) { return std::round(value * 1e4) / 1e4 + 0.0; };
            out.text(fmt::format("{}\t{}\t0\t{:.4f}\t{:.4f}\t{:.4f}\n", ring, detector, mm(p[0]), mm(p[1]),
                                 mm(p[2])));
        }
    }
    out.close();
}

std::uint32_t largest_ring_difference(const config::Scanner& scanner, const ExportSource& source) {
    return std::min(scanner.geometry.rings() - 1, pair_rule(source, scanner.geometry).max_ring_difference);
}

/// Number of tangential positions that the projection data need for the pairs that were recorded. A pair
/// whose detectors are n apart around the ring is at +-(detectors / 2 - n).
std::uint32_t tangential_positions(const config::Scanner& scanner, const ExportSource& source) {
    const auto& g = scanner.geometry;
    const std::uint32_t half = g.crystals_in_ring() / 2;
    const std::uint64_t modules = pair_rule(source, g).min_module_difference;
    const std::uint64_t crystals = modules == 0 ? 0 : (modules - 1) * g.blocks.y * g.crystals.y + 1;
    // Crystals less than 2 apart are always left out: STIR's projectors look one position further on either
    // side, and none lies beyond.
    const std::uint64_t nearest = std::max<std::uint64_t>(crystals, 2);
    return half > nearest ? static_cast<std::uint32_t>(2 * (half - nearest) + 1) : 1;
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

}  // namespace

Exported export_stir(const ExportSource& source, const ExportOptions& options, Outputs& outputs) {
    const config::Scanner scanner = source.scanner(options.scanner);
    check_fits(scanner);
    OneDepth depth(scanner, depth_of_interaction(options.depth_mm, scanner));
    for (const char* file :
         {"listmode.clm.safir", "listmode.par", "crystal_map.txt", "template.hs", "template.s",
          "lm_to_projdata.par", "lm_to_projdata_delayeds.par", "frames.fdef", "randoms.hs", "randoms.s"})
        outputs.claim(options.output / file);
    claim_stir_lines(options.output, outputs);

    const StirDetectors detectors(scanner);
    const StirProjections projections{largest_ring_difference(scanner, source),
                                      tangential_positions(scanner, source)};
    const auto nuclide = corrections::nuclide_of(source.coverage(), options);
    const daemon::Coverage coverage = completed_coverage(source);
    const RecordedTime time(coverage);
    net::WorkerPool pool(std::max(1U, std::thread::hardware_concurrency()));
    std::unique_ptr<const LineModel> model;
    if (options.corrects_lines()) {
        check_stir_lines(options, scanner.geometry, projections);
        model = std::make_unique<const LineModel>(source, scanner, options, pool);
    }
    if (time.end_ms() >= max_milliseconds) {
        throw BadInput(source.target().string() +
                       ": too long; stir (SAFIR list-mode) counts milliseconds with 48 bits");
    }
    OutputFile out(options.output / "listmode.clm.safir");
    std::array<char, 32> signature{"SAFIR CListModeData"};
    out.put(signature);
    Exported exported;
    std::uint64_t last_ms = UINT64_MAX;
    source.for_each_block(scanner.geometry.crystal_count(), [&](const daemon::ListModeReader& reader) {
        for (const auto& c : reader.coincidences()) {
            depth.add(c);
            const std::uint64_t ms = time.milliseconds(c.time);
            if (ms != last_ms) out.put(time_record | ms);
            last_ms = ms;
            out.put(record_of(c, detectors));
            ++(c.kind == gpu::Kind::prompt ? exported.prompts : exported.delayeds);
        }
    });
    // STIR takes the end of the data from the last time record.
    out.put(time_record | time.end_ms());
    out.close();

    const double depth_mm = depth.mm();
    const std::string study = study_lines(coverage, time, nuclide);
    write_crystal_map(options.output / "crystal_map.txt", scanner, detectors, depth_mm);
    write_stir_header(options.output / "template.hs", "template.s", scanner, projections, depth_mm, study);
    write_text(options.output / "template.s", "");
    write_text(options.output / "listmode.par", list_mode_parameters);
    write_text(options.output / "lm_to_projdata.par", binning_parameters("sinograms", false));
    write_text(options.output / "frames.fdef", frame_definition(time));

    exported.files = {"listmode.clm.safir: the events, prompts and delayeds in their order",
                      "listmode.par: the file that STIR opens as list-mode data",
                      "crystal_map.txt: ring, detector, layer and position (mm) of each crystal",
                      "template.hs, template.s: projection data of this scanner without data",
                      "lm_to_projdata.par, frames.fdef: parameters to bin the events"};
    if (exported.delayeds != 0) {
        write_text(options.output / "lm_to_projdata_delayeds.par", binning_parameters("delayeds", true));
        exported.files.emplace_back("lm_to_projdata_delayeds.par: the same for the delayeds");
    }
    if (options.has_randoms()) {
        write_stir_header(options.output / "randoms.hs", "randoms.s", scanner, projections, depth_mm, study);
        write_stir_values(options.output / "randoms.s", scanner, detectors, projections, pool,
                          options.randoms->sum);
        exported.files.emplace_back(
            "randoms.hs, randoms.s: the randoms to be expected among the prompts, as projection data");
    }
    exported.notes = {
        "Run STIR's programs in this directory: the file names are relative.", time_sentence(time),
        fmt::format("Detectors of a ring are numbered from -y towards +x, as STIR does: detector = (crystal "
                    "mod {0} + {1}) mod {0}; ring = crystal / {0}.",
                    scanner.geometry.crystals_in_ring(), detectors.detector_of(0)),
        depth.sentence()};
    if (model) {
        write_stir_lines(options.output, {scanner, detectors, projections, depth_mm, study, time.seconds()},
                         *model, pool, exported);
    } else {
        exported.lost.emplace_back(
            "stir: no factors of lines were written; they require --normalisation or --attenuation.");
    }
    if (nuclide) {
        if (auto note = config::prompt_gamma_note(nuclide->nuclide); !note.empty())
            exported.notes.push_back(std::move(note));
        exported.notes.push_back(
            "template.hs states start and nuclide of the run. STIR's reader of SAFIR list-mode takes neither "
            "from "
            "it: after lm_to_projdata, copy its lines \"study\" and \"radionuclide\" into the headers of the "
            "sinograms.");
    }
    for (const char* lost :
         {"stir: SAFIR list-mode does not hold energies.", "stir: SAFIR list-mode does not hold TOF.",
          "stir: times are whole milliseconds."})
        exported.lost.emplace_back(lost);
    if (pair_rule(source, scanner.geometry).min_module_difference != 0) {
        exported.lost.push_back(
            "stir: the template leaves out lines that are too close to the edge for the run's "
            "min_module_difference; at the limit it has some lines that the run did not accept.");
    }
    for (auto& sentence : limit_sentences(source,
                                          "; the template states the ring difference, and the module "
                                          "difference as a range of tangential positions."))
        exported.notes.push_back(std::move(sentence));
    return exported;
}

}  // namespace petacq::petlm
