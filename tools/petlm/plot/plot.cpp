#include "tools/petlm/plot/plot.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "config/base/answer.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/export/export.hpp"
#include "tools/petlm/export/recorded_time.hpp"
#include "tools/petlm/plot/pictures.hpp"
#include "tools/petlm/records/record_source.hpp"

namespace petacq::petlm {
namespace {

constexpr std::uint32_t max_time_bins = 200;

/// The names of all pictures that a report may have.
constexpr std::array all_pictures = {
    "energy-singles", "energy-pairs", "time-differences", "singles-map",   "rates",       "loss",
    "corrections",    "temperature",  "sinogram",         "axial-profile", "michelogram", "flood-maps",
    "energy-modules", "lifetimes",    "energy-gammas",    "image",         "resolution"};

/// The coincidence window; if it is not known, the largest time difference in the first block.
std::uint32_t window_of(const ExportSource& source) {
    if (const auto& rules = source.coverage().rules.coincidence) return rules->window_ticks;
    std::uint32_t largest = 0;
    RecordSource first(source.target(), daemon::RecordKind::coincidences);
    if (first.next()) {
        for (const gpu::Coincidence& pair : first.reader().coincidences())
            largest = std::max(largest, pair.dt);
    }
    return largest;
}

/// The time axis: all that is covered, and all records.
Interval axis_of(const ExportSource& source, const daemon::Coverage& coverage) {
    Interval axis{coverage.span().start, coverage.span().end};
    if (source.records() != 0) {
        axis.from = std::min(axis.from, source.first_time());
        axis.to = std::max(axis.to, source.last_time());
    }
    return axis;
}

/// The cycles of each channel that has any.
std::vector<PhaseBins> phases_of(const std::filesystem::path& run) {
    std::vector<PhaseBins> phases;
    for (const ChannelTags& channel : tags_by_channel(run)) {
        PhaseBins bins{channel.channel, Cycles(channel.tags, {})};
        if (!bins.cycles.accepted().empty()) phases.push_back(std::move(bins));
    }
    return phases;
}

PictureData data_of(const ExportSource& source, const PlotOptions& options) {
    config::Scanner scanner = source.scanner(options.scanner);
    const config::DepthOfInteraction depth = depth_of_interaction(options.depth_mm, scanner);
    // Files beside a single file describe the whole run, of which that file may be a part.
    const bool is_run = std::filesystem::is_directory(source.target());
    LedgerOverTime over_time = is_run ? ledger_over_time(source.target()) : LedgerOverTime{};
    SecondsOverTime seconds = is_run ? seconds_over_time(source.target()) : SecondsOverTime{};
    auto detector =
        is_run ? find_in_detector(source.target(), options.reference) : std::optional<DetectorFindings>();
    auto spectra = is_run ? spectra_of(source.target(), scanner) : std::nullopt;
    auto triples = is_run ? triples_of(source.target()) : std::nullopt;
    auto singles = is_run ? singles_of(source.target(), scanner) : std::nullopt;
    MaybeImage image = image_of_run(source.target(), options.scanner, options.depth_mm);
    daemon::Coverage coverage = completed_coverage(source);
    const auto [begin, end] = axis_of(source, coverage);
    PairBins bins(scanner, depth, TimeBins::covering(begin, end, scanner.tick_ps, max_time_bins),
                  window_of(source));
    if (is_run) bins.phases = phases_of(source.target());
    // A scanner that turns has its source elsewhere at each angle.
    if (image.image && !scanner.rotation)
        bins.widths.emplace(scanner, depth, image.image->source, bins.differences.window);
    KindHistograms pairs = histograms_of(source, bins);
    PictureData data{std::move(scanner),
                     depth,
                     std::move(bins),
                     std::move(pairs),
                     std::move(singles),
                     std::move(spectra),
                     std::move(triples),
                     std::move(over_time.rows),
                     std::move(over_time.trouble),
                     std::move(seconds.rows),
                     std::move(seconds.trouble),
                     std::move(detector),
                     is_run ? daemon::read_marks(source.target()) : std::vector<daemon::Mark>(),
                     end,
                     std::move(coverage),
                     std::move(image.image),
                     std::move(image.why_not)};
    data.energy = energy_resolution_of(data);
    data.time = time_resolution_of(data);
    return data;
}

}  // namespace

int plot(const PlotOptions& options) {
    const ExportSource source(options.target);
    if (source.kind() != daemon::RecordKind::coincidences) {
        throw UsageError(options.target.string() + " holds " + daemon::name_of(source.kind()) +
                         "; expected a run directory, or its coincidences");
    }
    if (options.reference && !std::filesystem::is_directory(options.target)) {
        throw UsageError("--reference: " + options.target.string() +
                         " is a file; expected a run directory, whose seconds can be compared");
    }
    if (options.output.empty() && !std::filesystem::is_directory(options.target)) {
        throw UsageError("--output: the pictures of a file need a directory");
    }
    const auto directory = options.output.empty() ? options.target / "plot" : options.output;
    // Claimed before the records are read, which may take hours. Files that are not drawn this time are
    // removed, too: pictures of other data would be taken for a part of this report.
    Outputs outputs(options.force);
    outputs.make_directory(directory);
    const auto page = directory / "report.html";
    outputs.claim(page);
    for (const std::string name : all_pictures) {
        outputs.claim(directory / (name + ".png"));
        if (name != "loss" && name != "flood-maps") outputs.claim(directory / (name + ".csv"));
    }
    constexpr unsigned channels = 16;
    for (unsigned channel = 0; channel < channels; ++channel) {
        outputs.claim(directory / (name_of_phases(channel) + ".png"));
        outputs.claim(directory / (name_of_phases(channel) + ".csv"));
    }
    const PictureData data = data_of(source, options);
    const std::vector<Picture> pictures = pictures_of(data);
    for (const Picture& picture : pictures) {
        write_text(directory / (picture.name + ".png"),
                   report::png_of(picture.draw, picture.height, report::light_theme(), picture.title,
                                  options.png_width));
        if (!picture.csv) continue;
        OutputFile numbers(directory / (picture.name + ".csv"));
        picture.csv(numbers);
        numbers.close();
    }
    write_text(page, report_of(source.target().string(), source.description(), source.run(), data, pictures));
    outputs.commit();
    config::Written written{
        .facts = {{"prompts", data.pairs.prompts.pairs},
                  {"delayeds", data.pairs.delayeds.pairs},
                  {"pictures", nlohmann::json::array()}},
        .text = fmt::format("{}: {} pictures of {} prompts and {} delayeds\n", page.string(), pictures.size(),
                            data.pairs.prompts.pairs, data.pairs.delayeds.pairs),
        .files = outputs.written(),
        .warnings = {}};
    for (const Picture& picture : pictures)
        written.facts["pictures"].push_back({{"name", picture.name}, {"title", picture.title}});
    for (const std::string* const trouble : {&data.ledger_trouble, &data.seconds_trouble})
        if (!trouble->empty()) written.warnings.push_back(*trouble);
    config::print_written(std::move(written), options.as_json, "petlm");
    return ok;
}

}  // namespace petacq::petlm
