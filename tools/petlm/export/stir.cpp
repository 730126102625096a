// STIR: SAFIR list-mode with crystal map, template and parameter files. docs/reference/formats/stir.md has
// the layout.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numbers>
#include <thread>

#include "daemon/host/utc.hpp"
#include "tools/petlm/export/export.hpp"
#include "tools/petlm/export/line_model.hpp"
#include "tools/petlm/export/ordered_output.hpp"
#include "tools/petlm/records/status.hpp"

namespace petacq::petlm {
namespace {

constexpr std::uint32_t most_rings = 256;
constexpr std::uint32_t most_in_ring = 65536;
constexpr std::uint64_t most_milliseconds = std::uint64_t{1} << 48U;
constexpr std::uint64_t time_record = std::uint64_t{1} << 63U;
constexpr std::uint64_t delayed_event = std::uint64_t{1} << 62U;

void check_fits(const config::Scanner& scanner) {
    const auto& g = scanner.geometry;
    const auto refuse = [&](std::uint32_t count, const char* what) {
        throw UsageError(fmt::format("scanner {} has {} {}", scanner.name, count, what));
    };
    if (g.rings() > most_rings)
        refuse(g.rings(), "rings; stir (SAFIR list-mode) numbers rings with 8 bits, at most 256");
    if (g.crystals_in_ring() > most_in_ring)
        refuse(g.crystals_in_ring(), "crystals in a ring; stir (SAFIR list-mode) numbers them with 16 bits");
    if (g.crystals_in_ring() % 2 != 0)
        refuse(g.crystals_in_ring(), "crystals in a ring; STIR's projection data take an even number");
}

/// Maps crystals to STIR's detectors: detector 0 of a ring is the first one from -y towards +x.
class Detectors {
  public:
    explicit Detectors(const config::Scanner& scanner)
        : in_ring_(std::max(1U, scanner.geometry.crystals_in_ring())) {
        double smallest = 2 * std::numbers::pi;
        for (std::uint32_t i = 0; i < in_ring_; ++i) {
            const auto centre = config::crystal_place(scanner, i).front_centre_mm;
            double angle = std::atan2(centre[0], -centre[1]);
            if (angle < -1e-9) angle += 2 * std::numbers::pi;
            if (angle < smallest) {
                smallest = angle;
                first_ = i;
            }
        }
        for (std::uint32_t crystal = 0; crystal < scanner.geometry.crystal_count(); ++crystal)
            codes_.push_back(ring_of(crystal) | std::uint64_t{detector_of(crystal)} << 16U);
    }
    [[nodiscard]] std::uint32_t ring_of(std::uint32_t crystal) const { return crystal / in_ring_; }
    [[nodiscard]] std::uint32_t detector_of(std::uint32_t crystal) const {
        return (crystal % in_ring_ + in_ring_ - first_) % in_ring_;
    }
    [[nodiscard]] std::uint32_t crystal_of(std::uint32_t ring, std::uint32_t detector) const {
        return ring * in_ring_ + (detector + first_) % in_ring_;
    }
    [[nodiscard]] std::uint64_t record(const gpu::Coincidence& c) const {
        const std::uint64_t a = codes_[c.crystal_a];
        const std::uint64_t b = codes_[c.crystal_b];
        // ringA 0..7, ringB 8..15, detA 16..31, detB 32..47, layers and reserved 0, delayed 62, type 63.
        const std::uint64_t event = a | (b & 0xFFU) << 8U | (b & 0xFFFF0000U) << 16U;
        return c.kind == gpu::Kind::prompt ? event : event | delayed_event;
    }

  private:
    std::uint32_t in_ring_;
    std::uint32_t first_ = 0;  ///< index in its ring of the crystal that is STIR's detector 0
    std::vector<std::uint64_t> codes_;
};

void write_crystal_map(const std::filesystem::path& file, const config::Scanner& scanner,
                       const Detectors& detectors, double depth_mm) {
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
    const std::uint32_t all = scanner.geometry.rings() - 1;
    const auto limit = source.configured("/coincidence/max_ring_difference");
    if (!limit.is_number_unsigned()) return all;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(all, limit.get<std::uint64_t>()));
}

/// Number of tangential positions that the projection data need for the pairs that the run accepted. A pair
/// whose detectors are n apart around the ring is at +-(detectors / 2 - n).
std::uint32_t tangential_positions(const config::Scanner& scanner, const ExportSource& source) {
    const auto& g = scanner.geometry;
    const std::uint32_t half = g.crystals_in_ring() / 2;
    const auto limit = source.configured("/coincidence/min_module_difference");
    const std::uint64_t modules = limit.is_number_unsigned() ? limit.get<std::uint64_t>() : 0;
    const std::uint64_t crystals = modules == 0 ? 0 : (modules - 1) * g.blocks.y * g.crystals.y + 1;
    // Crystals less than 2 apart are always left out: STIR's projectors look one position further on either
    // side, and none lies beyond.
    const std::uint64_t nearest = std::max<std::uint64_t>(crystals, 2);
    return half > nearest ? static_cast<std::uint32_t>(2 * (half - nearest) + 1) : 1;
}

/// The lines of an Interfile header about start and nuclide of the run, as far as they are known.
std::string study_lines(const ExportSource& source) {
    std::string text;
    const auto start = source.description().value("start_utc", nlohmann::json());
    const auto time =
        start.is_string() ? daemon::utc_time(start.get_ref<const std::string&>()) : std::nullopt;
    if (time) {
        text += "study date := " + daemon::utc_text(*time, "%Y:%m:%d") + "\n";
        text += "study time := " + daemon::utc_text(*time, "%H:%M:%S+0000") + "\n";
    }
    if (const config::Nuclide* const nuclide = nuclide_of(source)) {
        text += fmt::format(
            "number of radionuclides := 1\nradionuclide name[1] := {}\nradionuclide halflife (sec)[1] := "
            "{:.9g}\n"
            "radionuclide branching factor[1] := {}\n",
            nuclide->name, nuclide->half_life_s, nuclide->branching_ratio);
    }
    return text;
}

/// Projection data as the export describes them.
struct Projections {
    std::int64_t segments;    ///< -segments to segments; the number is the difference of the rings
    std::int64_t tangential;  ///< number of positions, odd
};

/// The header of projection data whose values are in the file `data`.
void write_projection_header(const std::filesystem::path& file, const std::string& data,
                             const config::Scanner& scanner, const Projections& projections, double depth_mm,
                             const std::string& study) {
    const auto& g = scanner.geometry;
    const auto& d = scanner.dimensions;
    std::string sizes;
    std::string differences;
    const std::int64_t last = projections.segments;
    for (std::int64_t segment = -last; segment <= last; ++segment) {
        const char* comma = segment == last ? "" : ",";
        sizes += fmt::format("{}{}", g.rings() - std::abs(segment), comma);
        differences += fmt::format("{}{}", segment, comma);
    }
    std::string text =
        "!INTERFILE :=\n!imaging modality := PT\nname of data file := " + data +
        "\n"
        "originating system := Userdefined\n!version of keys := STIR3.0\n!GENERAL DATA :=\n"
        "!GENERAL IMAGE DATA :=\n!type of data := PET\nimagedata byte order := LITTLEENDIAN\n"
        "!PET STUDY (General) :=\n!PET data type := Emission\napplied corrections := {None}\n"
        "!number format := float\n!number of bytes per pixel := 4\nnumber of dimensions := 4\n";
    text += study;
    const auto line = [&](const char* key, const auto& value) {
        text += fmt::format("{} := {}\n", key, value);
    };
    const auto line_cm = [&](const char* key, double mm) { line(key, fmt::format("{:.9g}", mm / 10)); };
    line("matrix axis label [4]", "segment");
    line("!matrix size [4]", 2 * last + 1);
    line("matrix axis label [3]", "view");
    line("!matrix size [3]", g.crystals_in_ring() / 2);
    line("matrix axis label [2]", "axial coordinate");
    line("!matrix size [2]", "{" + sizes + "}");
    line("matrix axis label [1]", "tangential coordinate");
    line("!matrix size [1]", projections.tangential);
    line("minimum ring difference per segment", "{" + differences + "}");
    line("maximum ring difference per segment", "{" + differences + "}");
    text += "Scanner parameters :=\n";
    line("Scanner type", "Userdefined");
    line("Number of rings", g.rings());
    line("Number of detectors per ring", g.crystals_in_ring());
    line_cm("Inner ring diameter (cm)", 2 * d.ring_radius_mm);
    line_cm("Average depth of interaction (cm)", depth_mm);
    line_cm("Distance between rings (cm)", d.crystal_pitch_z_mm);
    line_cm("Default bin size (cm)", d.crystal_pitch_y_mm / 2);
    line("View offset (degrees)", 0);
    line("Maximum number of non-arc-corrected bins", g.crystals_in_ring() - 1);
    line("Default number of arc-corrected bins", g.crystals_in_ring() - 1);
    line("Number of blocks per bucket in transaxial direction", g.blocks.y);
    line("Number of blocks per bucket in axial direction", g.blocks.z);
    line("Number of crystals per block in axial direction", g.crystals.z);
    line("Number of crystals per block in transaxial direction", g.crystals.y);
    line("Number of detector layers", 1);
    line("Number of crystals per singles unit in axial direction", 1);
    line("Number of crystals per singles unit in transaxial direction", 1);
    line("Scanner geometry (BlocksOnCylindrical/Cylindrical/Generic)", "Generic");
    line("Name of crystal map", "crystal_map.txt");
    text += "end scanner parameters :=\nnumber of time frames := 1\n!END OF INTERFILE :=\n";
    write_text(file, text);
}

/// Writes the values of projection data: counts expected in the run. As STIR numbers bins, tangential
/// position t of view v joins the detectors v + floor(t / 2) and v + half a ring - ceil(t / 2).
void write_expected(const std::filesystem::path& file, const config::Scanner& scanner,
                    const Detectors& detectors, const Projections& projections,
                    const RandomsPerPair& randoms) {
    OutputFile out(file);
    const std::int64_t in_ring = scanner.geometry.crystals_in_ring();
    const std::int64_t rings = scanner.geometry.rings();
    const std::int64_t side = projections.tangential / 2;
    const auto crystal = [&](std::int64_t ring, std::int64_t detector) {
        return detectors.crystal_of(static_cast<std::uint32_t>(ring),
                                    static_cast<std::uint32_t>((detector + in_ring) % in_ring));
    };
    for (std::int64_t segment = -projections.segments; segment <= projections.segments; ++segment) {
        for (std::int64_t view = 0; view < in_ring / 2; ++view) {
            for (std::int64_t axial = 0; axial < rings - std::abs(segment); ++axial) {
                const std::int64_t ring_1 = axial + std::max<std::int64_t>(-segment, 0);
                const std::int64_t ring_2 = ring_1 + segment;
                for (std::int64_t t = -side; t <= side; ++t) {
                    out.put(static_cast<float>(
                        randoms.sum(crystal(ring_1, view + (t >> 1)),
                                    crystal(ring_2, view + in_ring / 2 - ((t + 1) >> 1)))));
                }
            }
        }
    }
    out.close();
}

constexpr const char* list_mode_parameters =
    "CListModeDataSAFIR Parameters :=\nlistmode data filename := listmode.clm.safir\n"
    "crystal map filename := crystal_map.txt\ntemplate projection data filename := template.hs\n"
    "END CListModeDataSAFIR Parameters :=\n";

std::string binning_parameters(const char* prefix, bool delayeds, std::uint64_t length_ms) {
    return fmt::format(
        "lm_to_projdata Parameters :=\ninput file := listmode.par\noutput filename prefix := {}\n"
        "template_projdata := template.hs\n"
        "; frame_definition file: one line, number and length in seconds of the frames\n"
        "frame_definition file := frames.fdef\nstore prompts := {}\nstore delayeds := {}\n; run of {} ms\n"
        "END :=\n",
        prefix, delayeds ? 0 : 1, delayeds ? 1 : 0, length_ms);
}

}  // namespace

Exported export_stir(const ExportSource& source, const ExportOptions& options, Outputs& outputs) {
    const config::Scanner scanner = source.scanner(options.scanner);
    check_fits(scanner);
    const double depth_mm = depth_of_interaction(options.depth_mm, scanner);
    for (const char* file :
         {"listmode.clm.safir", "listmode.par", "crystal_map.txt", "template.hs", "template.s",
          "lm_to_projdata.par", "lm_to_projdata_delayeds.par", "frames.fdef", "randoms.hs", "randoms.s"})
        outputs.claim(options.output / file);

    const Detectors detectors(scanner);
    const std::uint64_t origin = source.time_origin();
    // STIR takes the length of the run from the last time record.
    const std::uint64_t length_ms = milliseconds(source.time_end() - origin, scanner.tick_ps) + 1;
    if (length_ms >= most_milliseconds) {
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
            const std::uint64_t ms = milliseconds(c.time - origin, scanner.tick_ps);
            if (ms != last_ms) out.put(time_record | ms);
            last_ms = ms;
            out.put(detectors.record(c));
            ++(c.kind == gpu::Kind::prompt ? exported.prompts : exported.delayeds);
        }
    });
    out.put(time_record | length_ms);
    out.close();

    const Projections projections{largest_ring_difference(scanner, source),
                                  tangential_positions(scanner, source)};
    const std::string study = study_lines(source);
    write_crystal_map(options.output / "crystal_map.txt", scanner, detectors, depth_mm);
    write_projection_header(options.output / "template.hs", "template.s", scanner, projections, depth_mm,
                            study);
    write_text(options.output / "template.s", "");
    write_text(options.output / "listmode.par", list_mode_parameters);
    write_text(options.output / "lm_to_projdata.par", binning_parameters("sinograms", false, length_ms));
    const double length_s = static_cast<double>(length_ms) / 1000;
    write_text(options.output / "frames.fdef", fmt::format("1 {}\n", length_s));

    exported.files = {"listmode.clm.safir: the events, prompts and delayeds in their order",
                      "listmode.par: the file that STIR opens as list-mode data",
                      "crystal_map.txt: ring, detector, layer and position (mm) of each crystal",
                      "template.hs, template.s: projection data of this scanner without data",
                      "lm_to_projdata.par, frames.fdef: parameters to bin the events"};
    if (exported.delayeds != 0) {
        write_text(options.output / "lm_to_projdata_delayeds.par",
                   binning_parameters("delayeds", true, length_ms));
        exported.files.emplace_back("lm_to_projdata_delayeds.par: the same for the delayeds");
    }
    if (options.randoms) {
        write_projection_header(options.output / "randoms.hs", "randoms.s", scanner, projections, depth_mm,
                                study);
        write_expected(options.output / "randoms.s", scanner, detectors, projections, *options.randoms);
        exported.files.emplace_back(
            "randoms.hs, randoms.s: the randoms to be expected among the prompts, as projection data");
    }
    exported.notes = {
        "Run STIR's programs in this directory: the file names are relative.",
        "Times are milliseconds from the start of the run.",
        fmt::format("Detectors of a ring are numbered from -y towards +x, as STIR does: detector = (crystal "
                    "mod {0} + {1}) mod {0}; ring = crystal / {0}.",
                    scanner.geometry.crystals_in_ring(), detectors.detector_of(0)),
        depth_sentence(options, scanner)};
    if (nuclide_of(source) != nullptr) {
        exported.notes.push_back(
            "template.hs states start and nuclide of the run. STIR's reader of SAFIR list-mode takes neither "
            "from "
            "it: after lm_to_projdata, copy its lines \"study\" and \"radionuclide\" into the headers of the "
            "sinograms.");
    }
    exported.lost = {"stir: SAFIR list-mode does not hold energies.",
                     "stir: SAFIR list-mode does not hold TOF.", "stir: times are whole milliseconds."};
    if (!source.configured("/coincidence/min_module_difference").is_null()) {
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
