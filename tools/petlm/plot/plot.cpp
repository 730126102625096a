#include "tools/petlm/plot/plot.hpp"

#include <algorithm>
#include <array>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tools/petlm/export/export.hpp"
#include "tools/petlm/plot/pictures.hpp"
#include "tools/petlm/records/record_source.hpp"
#include "tools/petlm/records/status.hpp"

namespace petacq::petlm {
namespace {

constexpr std::uint32_t most_time_bins = 200;

/// The names of all pictures that a report may have.
constexpr std::array all_pictures = {"energy-singles", "energy-pairs",  "time-differences", "singles-map",
                                     "rates",          "loss",          "corrections",      "temperature",
                                     "sinogram",       "axial-profile", "michelogram",      "flood-maps",
                                     "energy-modules"};

/// The coincidence window; if the file names none, the largest time difference in the first block.
std::uint32_t window_of(const ExportSource& source, bool& known) {
    const auto window = source.window_ticks();
    known = window.has_value();
    if (window) return static_cast<std::uint32_t>(std::min<std::uint64_t>(*window, UINT32_MAX));
    std::uint32_t largest = 0;
    RecordSource first(source.target(), daemon::RecordKind::coincidences);
    if (first.next()) {
        for (const gpu::Coincidence& pair : first.reader().coincidences())
            largest = std::max(largest, pair.dt);
    }
    return largest;
}

std::optional<std::pair<double, double>> energy_window_of(const ExportSource& source) {
    const auto lower = source.configured("/energy/lower_keV");
    const auto upper = source.configured("/energy/upper_keV");
    if (source.configured("/energy/filter") != true || !lower.is_number() || !upper.is_number())
        return std::nullopt;
    return std::pair(lower.get<double>(), upper.get<double>());
}

/// Where the time axis of the pictures starts: at the data, as the run may have started long before.
std::uint64_t begin_of(const ExportSource& source, const std::optional<LedgerRows>& ledger) {
    std::uint64_t begin = source.records() != 0 ? source.first_time() : source.time_origin();
    if (ledger)
        begin =
            source.records() != 0 ? std::min(begin, ledger->from_ticks.front()) : ledger->from_ticks.front();
    return begin;
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
    const double depth = depth_of_interaction(options.depth_mm, scanner);
    // Files beside a single file describe the whole run, of which that file may be a part.
    const bool is_run = std::filesystem::is_directory(source.target());
    LedgerOverTime over_time = is_run ? ledger_over_time(source.target()) : LedgerOverTime{};
    std::optional<LedgerRows>& ledger = over_time.rows;
    SecondsOverTime seconds = is_run ? seconds_over_time(source.target()) : SecondsOverTime{};
    auto detector =
        is_run ? find_in_detector(source.target(), options.reference) : std::optional<DetectorFindings>();
    auto spectra = is_run ? spectra_of(source.target(), scanner) : std::nullopt;
    auto singles = is_run ? singles_of(source.target(), scanner) : std::nullopt;
    const std::uint64_t begin = begin_of(source, ledger);
    const std::uint64_t end = std::max(source.time_end(), begin);
    bool window_known = false;
    const std::uint32_t window = window_of(source, window_known);
    PairBins bins(scanner, depth, TimeBins::covering(begin, end, scanner.tick_ps, most_time_bins), window);
    if (is_run) bins.phases = phases_of(source.target());
    KindHistograms pairs = histograms_of(source, bins);
    const bool delayeds = source.may_hold_delayeds();
    return {std::move(scanner),
            depth,
            std::move(bins),
            std::move(pairs),
            std::move(singles),
            std::move(spectra),
            std::move(ledger),
            std::move(over_time.trouble),
            std::move(seconds.rows),
            std::move(seconds.trouble),
            std::move(detector),
            end,
            delayeds,
            window_known,
            energy_window_of(source)};
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
    const auto report = directory / "report.html";
    outputs.claim(report);
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
        draw_png(directory / (picture.name + ".png"), picture.draw, picture.height, light_theme(),
                 picture.title, options.png_width);
        if (!picture.csv) continue;
        OutputFile numbers(directory / (picture.name + ".csv"));
        picture.csv(numbers);
        numbers.close();
    }
    write_report(report, source.target().string(), source.description(), source.run(), data, pictures);
    outputs.commit();
    for (const std::string* const trouble : {&data.ledger_trouble, &data.seconds_trouble}) {
        if (!trouble->empty()) std::cerr << "petlm: " << *trouble << '\n';
    }
    std::cout << fmt::format("{}: {} pictures of {} prompts and {} delayeds\n", report.string(),
                             pictures.size(), data.pairs.prompts.pairs, data.pairs.delayeds.pairs);
    return ok;
}

}  // namespace petacq::petlm
