// CASToR: list-mode (.cdh, .cdf) and scanner (.hscan, .lut). docs/reference/formats/castor.md has the layout.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "config/nuclides/nuclides.hpp"
#include "daemon/coverage/unknown.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/export/castor_lines.hpp"
#include "tools/petlm/export/export.hpp"
#include "tools/petlm/export/geometry/crystal_kinds.hpp"
#include "tools/petlm/export/geometry/one_depth.hpp"
#include "tools/petlm/export/geometry/pair_angle.hpp"
#include "tools/petlm/export/geometry/ring_places.hpp"
#include "tools/petlm/export/line_model.hpp"
#include "tools/petlm/export/recorded_time.hpp"

namespace petacq::petlm {
namespace {

enum EventKind : std::uint8_t { unknown_event = 0, random_event = 4 };

/// A data file with its header, for prompts or delayeds.
class Events {
  public:
    Events(std::filesystem::path stem, EventKind kind)
        : stem_(std::move(stem)), kind_(kind), data_(stem_.string() + ".cdf") {}

    struct CastorLayout {
        const RecordedTime& time;
        double tick_ps;
        image::TofBins tof;  ///< for the scatter of an event; not used() without times of flight
        bool kind;
        std::function<double(std::uint32_t, std::uint32_t)> randoms;  ///< for prompts; null: none
        const LineModel* model;  ///< for prompts; null: no factors were asked for
        const CastorIds& ids;
    };

    void write(const gpu::Coincidence& c, const CastorLayout& layout) {
        data_.put(static_cast<std::uint32_t>(layout.time.milliseconds(c.time)));
        const LineModel* const model = model_of(layout);
        if (model != nullptr && model->attenuates())
            data_.put(static_cast<float>(1 / model->attenuation(c.crystal_a, c.crystal_b)));
        if (layout.kind) data_.put(kind_);
        if (has_scatter(layout))
            data_.put(static_cast<float>(scatter_of(c, *model, layout.tof) / layout.time.seconds()));
        if (has_randoms(layout))
            data_.put(static_cast<float>(layout.randoms(c.crystal_a, c.crystal_b) / layout.time.seconds()));
        if (model != nullptr) {
            const float factor = normalisation_factor(*model, c.crystal_a, c.crystal_b);
            data_.put(factor);
            if (factor == 0) ++ignored_;
        }
        if (layout.tof.used()) data_.put(tof_of(c, layout));
        data_.put(layout.ids.of(c.crystal_a), layout.ids.of(c.crystal_b));
        ++events_;
        largest_dt_ = std::max(largest_dt_, c.dt);
    }

    /// Closes the data file and writes the header. `common`: the lines of both headers.
    void finish(const std::string& common, const CastorLayout& layout, std::uint64_t window,
                double resolution_ps) {
        data_.close();
        std::string text = fmt::format("Data filename: {}\nNumber of events: {}\n{}",
                                       stem_.filename().string() + ".cdf", events_, common);
        if (layout.tof.used()) {
            // For CASToR the range spans the lowest to the highest possible value.
            const std::uint64_t largest = std::max({window, std::uint64_t{largest_dt_}, std::uint64_t{1}});
            text += fmt::format(
                "TOF information flag: 1\nTOF resolution (ps): {}\nList TOF measurement range (ps): {}\n",
                resolution_ps, 2 * static_cast<double>(largest) * layout.tick_ps);
        }
        if (layout.kind) text += "Coincidence kind flag: 1\n";
        if (has_randoms(layout)) text += "Random correction flag: 1\n";
        if (const LineModel* const model = model_of(layout)) {
            text += "Normalization correction flag: 1\n";
            if (model->attenuates()) text += "Attenuation correction flag: 1\n";
            if (has_scatter(layout)) text += "Scatter correction flag: 1\n";
            for (const auto& sentence : model->sentences())
                text += "# " + sentence + '\n';
        }
        write_text(stem_.string() + ".cdh", text);
    }
    [[nodiscard]] std::uint64_t events() const { return events_; }
    /// Events of dead crystals or refused pairs: CASToR leaves out those with a factor of 0.
    [[nodiscard]] std::uint64_t ignored() const { return ignored_; }

  private:
    [[nodiscard]] const LineModel* model_of(const CastorLayout& layout) const {
        return kind_ == unknown_event ? layout.model : nullptr;
    }
    [[nodiscard]] bool has_scatter(const CastorLayout& layout) const {
        const LineModel* const model = model_of(layout);
        return model != nullptr && model->scatters();
    }
    // With TOF, CASToR takes the scatter per mm along the line.
    static double scatter_of(const gpu::Coincidence& c, const LineModel& model, const image::TofBins& tof) {
        if (!tof.used()) return model.scatter(c.crystal_a, c.crystal_b);
        const auto dt = static_cast<std::int64_t>(c.dt);
        return c.crystal_a < c.crystal_b ? model.scatter_per_mm(c.crystal_a, c.crystal_b, tof, tof.bin(dt))
                                         : model.scatter_per_mm(c.crystal_b, c.crystal_a, tof, tof.bin(-dt));
    }
    [[nodiscard]] bool has_randoms(const CastorLayout& layout) const {
        return kind_ == unknown_event && layout.randoms;
    }
    // Arrival at ID1 minus arrival at ID2: positive when the annihilation was closer to ID2. ID1 is the
    // earlier photon.
    static float tof_of(const gpu::Coincidence& c, const CastorLayout& layout) {
        return static_cast<float>(-static_cast<double>(c.dt) * layout.tick_ps);
    }

    std::filesystem::path stem_;
    EventKind kind_;
    OutputFile data_;
    std::uint64_t events_ = 0;
    std::uint64_t ignored_ = 0;
    std::uint32_t largest_dt_ = 0;
};

void write_lut(const std::filesystem::path& file, const config::Scanner& scanner, const CrystalKinds& kinds,
               const CastorIds& ids) {
    OutputFile out(file);
    for (const std::uint32_t crystal : ids.crystals()) {
        const auto place = config::crystal_place(scanner, crystal);
        const auto centre =
            config::point_at_depth(place, kinds.kinds()[kinds.kind_of(crystal)].length_mm / 2);
        for (const double value : centre)
            out.put(static_cast<float>(value));
        for (const double value : place.outward)
            out.put(static_cast<float>(value));
    }
    out.close();
}

/// A value for each of CASToR's layers, which are the kinds of crystals.
template <class Value>
std::string by_layer(const CrystalKinds& kinds, const Value& value) {
    std::vector<std::string> values;
    for (std::uint32_t kind = 0; kind < kinds.kinds().size(); ++kind)
        values.push_back(fmt::format("{}", value(kind)));
    return fmt::format("{}", fmt::join(values, ","));
}

void write_scanner_header(const std::filesystem::path& file, const config::Scanner& scanner,
                          const CrystalKinds& kinds, const OneDepth& depth, double min_angle_deg) {
    const auto& g = scanner.geometry;
    const double axial = axial_extent_mm(scanner, kinds);
    // Most scanners see half a ring's radius to either side well; voxels are half a crystal wide.
    const double transaxial = inner_radius_mm(scanner);
    double y_mm = kinds.kinds().front().y_mm;
    double z_mm = kinds.kinds().front().z_mm;
    for (const CrystalKind& kind : kinds.kinds()) {
        y_mm = std::min(y_mm, kind.y_mm);
        z_mm = std::min(z_mm, kind.z_mm);
    }
    const auto of = [&](double CrystalKind::*size) {
        return by_layer(kinds, [&](std::uint32_t kind) { return kinds.kinds()[kind].*size; });
    };
    std::string text;
    const auto line = [&](const char* key, const auto& value) {
        text += fmt::format("{}: {}\n", key, value);
    };
    line("scanner name", file_name_of(scanner));
    line("modality", "PET");
    line("description", "made by petlm export from the scanner description " + file_name_of(scanner));
    line("scanner radius", inner_radius_mm(scanner));
    line("number of rings in scanner", ring_count(g));
    line("number of elements", g.crystal_count());
    line("number of layers", kinds.kinds().size());
    line("number of crystals in layer",
         by_layer(kinds, [&](std::uint32_t kind) { return kinds.kinds()[kind].crystals; }));
    line("crystals size depth", of(&CrystalKind::length_mm));
    line("crystals size trans", of(&CrystalKind::y_mm));
    line("crystals size axial", of(&CrystalKind::z_mm));
    line("mean depth of interaction",
         by_layer(kinds, [&](std::uint32_t kind) { return fmt::format("{:.4g}", depth.mm(kind)); }));
    line("min angle difference", min_angle_deg);
    line("voxels number transaxial", std::lround(2 * transaxial / y_mm));
    line("voxels number axial", std::lround(2 * axial / z_mm));
    line("field of view transaxial", transaxial);
    line("field of view axial", axial);
    write_text(file, text);
}

/// Largest axial distance (mm) between crystals whose pairs were recorded; none without a limit.
std::optional<double> largest_axial_difference(const config::Scanner& scanner, const ExportSource& source) {
    const std::vector<double> z = ring_places_mm(scanner);
    const auto& rules = source.coverage().rules.coincidence;
    const std::size_t apart = rules ? rules->max_ring_difference.value_or(UINT32_MAX) : UINT32_MAX;
    std::optional<double> limit;
    if (apart < z.size() - 1) {
        limit = 0;
        for (std::size_t ring = 0; ring + apart < z.size(); ++ring)
            limit = std::max(*limit, z[ring + apart] - z[ring]);
    }
    if (!scanner.is_ring() && scanner.geometry.pairs->max_z_difference_um) {
        const double stated = *scanner.geometry.pairs->max_z_difference_um / 1e3;
        limit = std::min(limit.value_or(stated), stated);
    }
    return limit;
}

void describe(Exported& exported, const ExportSource& source, const ExportOptions& options,
              const config::Scanner& scanner, const CrystalKinds& kinds, const RecordedTime& time,
              const OneDepth& depth, const PairAngle& angle) {
    const std::string name = file_name_of(scanner);
    exported.files = {"prompts.cdh, prompts.cdf: header and events of the prompts",
                      name + ".hscan, " + name + ".lut: the scanner; copy both to config/scanner of CASToR"};
    if (exported.delayeds != 0) {
        exported.files.insert(exported.files.begin() + 1, "delayeds.cdh, delayeds.cdf: the delayeds");
    }
    exported.notes.push_back(time_sentence(time));
    exported.notes.push_back(depth.sentence());
    if (kinds.kinds().size() > 1) {
        exported.notes.push_back(fmt::format(
            "CASToR states sizes by layer, so each of the {} kinds of crystals is a layer, and crystals are "
            "numbered layer by layer: line n of crystals.csv, from 0 below its names, is CASToR's crystal n.",
            kinds.kinds().size()));
    }
    if (!angle.exact) {
        exported.lost.push_back(
            "castor: the pairs of modules that coincide are not told by an angle; without -norm lines.cdh "
            "(--normalisation) CASToR's sensitivity has pairs that the run does not.");
    }
    if (!scanner.is_ring() && scanner.geometry.pairs->field_of_view) {
        exported.lost.push_back(
            "castor: the field of view that lines of good pairs meet; without -norm lines.cdh "
            "(--normalisation) CASToR's sensitivity has lines outside.");
    }
    // Gaps between rings differ, so the largest axial distance also admits a few larger ring differences.
    for (auto& sentence :
         limit_sentences(source, "; the files for castor state it as an angle or a distance."))
        exported.notes.push_back(std::move(sentence));
    if (options.tof_resolution_ps) {
        exported.notes.push_back(
            "TOF is the arrival time at ID1 less that at ID2 in ps: positive when the annihilation was "
            "closer to ID2. ID1 is the earlier photon, so it is never positive.");
    } else {
        exported.lost.push_back(
            daemon::tells(source.coverage(), daemon::unknown_dt)
                ? "castor: no TOF was written; it requires --tof-resolution-ps, the FWHM of the time "
                  "difference."
                : "castor: no TOF was written, since the time between the photons of a pair is not known.");
    }
    if (options.has_randoms()) {
        exported.notes.push_back(
            "Each prompt has the randoms to be expected in its pair of crystals, in counts per second: the "
            "mean "
            "over the recorded time.");
    }
    if (!options.corrects_lines()) {
        exported.lost.push_back(
            "castor: no normalisation was written, and the calibration factor is 1; they require "
            "--normalisation.");
    }
    exported.lost.push_back("castor: the format does not hold energies.");
    exported.lost.push_back("castor: times are whole milliseconds.");
}

void describe_lines(Exported& exported, const LineModel& model, std::uint64_t lines, std::uint64_t ignored) {
    exported.files.push_back(fmt::format(
        "lines.cdh, lines.cdf: the {} lines of the run with their factors, for castor-recon -norm", lines));
    for (const auto& sentence : model.sentences())
        exported.notes.push_back(sentence);
    exported.notes.emplace_back(
        "With -norm lines.cdh the image is in kBq/ml, up to the calibration. The normalisation factor holds "
        "the solid angle of the line, its normalisation, dead time and pile-up.");
    if (ignored != 0) {
        exported.notes.push_back(
            fmt::format("{} prompts are of dead crystals or refused pairs. Their normalisation factor is 0: "
                        "CASToR leaves "
                        "them out.",
                        ignored));
    }
}

}  // namespace

Exported export_castor(const ExportSource& source, const ExportOptions& options, Outputs& outputs) {
    const config::Scanner scanner = source.scanner(options.scanner);
    const CrystalKinds kinds(scanner);
    const CastorIds ids(kinds);
    OneDepth depth(scanner, kinds, options.depth_mm);
    const std::string name = file_name_of(scanner);
    for (const char* file : {"prompts.cdh", "prompts.cdf", "delayeds.cdh", "delayeds.cdf"})
        outputs.claim(options.output / file);
    outputs.claim(options.output / (name + ".lut"));
    outputs.claim(options.output / (name + ".hscan"));
    outputs.claim(options.output / "lines.cdh");
    outputs.claim(options.output / "lines.cdf");

    const auto nuclide = corrections::nuclide_of(source.coverage(), options);
    const daemon::Coverage coverage = completed_coverage(source);
    const RecordedTime time(coverage);
    if (time.end_ms() > UINT32_MAX) {
        throw BadInput(source.target().string() + ": ends " + std::to_string(time.end_ms() / 1000) +
                       " s after the start; castor counts 32-bit milliseconds, up to 4294967 s");
    }
    net::WorkerPool pool(std::max(1U, std::thread::hardware_concurrency()));
    std::unique_ptr<const LineModel> model;
    if (options.corrects_lines()) {
        check_castor_lines(source, scanner, options);
        model = std::make_unique<const LineModel>(source, scanner, options, pool);
    }
    const auto& rules = source.coverage().rules.coincidence;
    const std::uint32_t window = rules ? rules->window_ticks : 0;
    const Events::CastorLayout layout{
        time,
        scanner.tick_ps,
        options.tof_resolution_ps ? image::TofBins::of(*options.tof_resolution_ps, scanner.tick_ps, window)
                                  : image::TofBins{},
        options.event_kind,
        options.has_randoms() ? options.randoms->sum : nullptr,
        model.get(),
        ids};
    Events prompts(options.output / "prompts", unknown_event);
    std::unique_ptr<Events> delayeds;
    const auto open_delayeds = [&] {
        if (!delayeds) delayeds = std::make_unique<Events>(options.output / "delayeds", random_event);
    };
    if (rules && rules->delay_ticks) open_delayeds();
    source.for_each_block(scanner.geometry.crystal_count(), [&](const daemon::ListModeReader& reader) {
        for (const auto& c : reader.coincidences()) {
            depth.add(c);
            if (c.kind == gpu::Kind::prompt) {
                prompts.write(c, layout);
            } else {
                open_delayeds();
                delayeds->write(c, layout);
            }
        }
    });

    const double decay = corrections::decay_correction(coverage, nuclide);
    std::string common = fmt::format(
        "Data mode: list-mode\nData type: PET\nStart time (s): {:.10g}\nDuration (s): {}\nScanner name: {}\n"
        "Calibration factor: {}\n",
        time.start_s(), time.seconds(), name, decay * (model ? model->calibration() : 1));
    if (const auto axial = largest_axial_difference(scanner, source)) {
        // Slightly larger, so that rounding excludes no pair.
        common += fmt::format("Maximum axial difference mm: {:.4f}\n", *axial + 1e-3);
    }
    const double resolution = options.tof_resolution_ps.value_or(0);
    prompts.finish(common, layout, window, resolution);
    if (delayeds) delayeds->finish(common, layout, window, resolution);
    const PairAngle angle = pair_angle(source, scanner);
    write_lut(options.output / (name + ".lut"), scanner, kinds, ids);
    write_scanner_header(options.output / (name + ".hscan"), scanner, kinds, depth, angle.degrees);

    Exported exported;
    exported.prompts = prompts.events();
    exported.delayeds = delayeds ? delayeds->events() : 0;
    exported.crystal_order = ids.crystals();
    describe(exported, source, options, scanner, kinds, time, depth, angle);
    if (model) {
        const std::uint64_t lines = write_castor_lines(options.output, scanner, ids, *model, pool);
        describe_lines(exported, *model, lines, prompts.ignored());
    }
    if (nuclide) {
        if (auto note = config::prompt_gamma_note(nuclide->nuclide); !note.empty())
            exported.notes.push_back(std::move(note));
        exported.notes.push_back(
            fmt::format("The calibration factor has {:.6g} for the decay of {} since the start of the run "
                        "and its {} positrons per decay. The header names no isotope, so CASToR corrects "
                        "for neither.",
                        decay, nuclide->nuclide, nuclide->branching_ratio));
    }
    return exported;
}

}  // namespace petacq::petlm
