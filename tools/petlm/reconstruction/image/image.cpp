#include "tools/petlm/reconstruction/image/image.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "config/base/answer.hpp"
#include "config/base/seconds_since.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/reconstruction/errors/spread.hpp"
#include "tools/petlm/reconstruction/image/made_image.hpp"
#include "tools/petlm/reconstruction/image/pictures.hpp"
#include "tools/petlm/reconstruction/image/positions.hpp"
#include "tools/petlm/reconstruction/image/setup.hpp"
#include "tools/petlm/reconstruction/image/spurious.hpp"
#include "tools/petlm/reconstruction/image/statement.hpp"
#include "tools/petlm/reconstruction/image/volume.hpp"
#include "tools/petlm/records/output.hpp"
#include "tools/report/cairo.hpp"

namespace petacq::petlm {
namespace {

/// The records with times in `within`; absent: all.
void read(const image::Setup& setup, const std::optional<daemon::Intervals>& within,
          image::ImageCounts& counts) {
    std::vector<gpu::Coincidence> chosen;
    setup.source.for_each_block(
        setup.scanner.geometry.crystal_count(),
        [&](const daemon::ListModeReader& reader) {
            const std::span<const gpu::Coincidence> records = reader.coincidences();
            if (!within) {
                counts.add(records);
                return;
            }
            chosen.clear();
            std::copy_if(records.begin(), records.end(), std::back_inserter(chosen),
                         [&](const gpu::Coincidence& c) { return within->contains(c.time); });
            counts.add(chosen);
        },
        "reading");
    counts.finish();
}

}  // namespace

void print_images(nlohmann::json facts, const std::vector<std::string>& messages,
                  const std::filesystem::path& see, const Outputs& outputs, bool lacks_pictures,
                  bool as_json) {
    facts["messages"] = messages;
    config::Written written{
        .facts = std::move(facts), .text = {}, .files = outputs.written(), .warnings = {}};
    for (const std::string& message : messages)
        written.text += message + '\n';
    written.text += "See " + see.string() + '\n';
    if (lacks_pictures) written.warnings.emplace_back(report::without_cairo);
    config::print_written(std::move(written), as_json, "petlm");
}

int image(const ImageOptions& options) {
    image::Setup setup(options);
    const ExportSource& source = setup.source;
    const image::Parts parts = image::parts_of(source, setup.scanner.rotation, options.bed);
    image::CombinedImage combined(setup.how.grid, parts.list);
    Outputs outputs(options.force);
    outputs.make_directory(options.output);
    for (const char* file :
         {"image.nii", "uncertainty.nii", "image.json", "projections.png", "slices.png", "README.txt"})
        outputs.claim(options.output / file);

    std::vector<image::MadeImage> made;
    double read_s = 0;
    std::vector<float> deviation;
    const bool whole = parts.list.size() == 1;
    for (const image::Part& part : parts.list) {
        const image::PartLines lines(setup, part);
        image::ImageCounts counts(setup.scanner.geometry, setup.angles, setup.rule,
                                  image::pair_capacity(setup.how.max_memory), setup.pool, setup.tof.bins);
        const auto start = std::chrono::steady_clock::now();
        read(setup, whole ? std::nullopt : part.coverage.intervals, counts);
        read_s += config::seconds_since(start);
        image::Spread spread(options.replicates != 0 ? setup.how.grid.voxels() : 0);
        const std::string what = "image of " + source.target().filename().string();
        image::SpuriousOfRun spurious =
            image::spurious_of(setup, part, lines, counts, what, setup.how.max_memory);
        counts.spurious = spurious.pairs;
        made.push_back(image::make_image(
            setup, part, lines, counts, what, setup.how.max_memory,
            {options.replicates, [&](const image::QuickLook& look, double) { spread.add(look.em.image); }},
            std::move(spurious.sensitivity)));
        deviation = spread.deviation();
        if (whole) continue;
        image::QuickLook& look = made.back().look;
        combined.add(part, look.em.image, deviation, look.sensitivity, made.back().scale);
        look.em.image = {};
        look.sensitivity = {};
    }
    const std::vector<float> image = whole ? std::move(made.front().look.em.image) : combined.finish();
    if (!whole) deviation = combined.deviation();
    const image::Grid& grid = combined.grid();

    std::vector<std::string> lines = image::doubts_about(source);
    if (!parts.sentence.empty()) lines.push_back(parts.sentence);
    lines.push_back(setup.tof.sentence);
    const image::Method method{setup.scanner.name, options.iterations, options.subsets, setup.how.smooth_mm,
                               corrections::nuclide_of(source.coverage(), options)};
    image::Statement statement{
        source.target(),    source.coverage(), grid, setup.tof.bins, options.psf_mm, method, {}, lines,
        report::with_cairo, options.replicates};
    for (std::size_t i = 0; i < made.size(); ++i) {
        statement.parts.push_back({parts.list[i].bed_mm, made[i].report});
        for (const std::string& sentence : made[i].sentences)
            lines.push_back(whole ? sentence : image::at_position(parts.list[i], sentence));
    }
    for (const std::string& sentence : image::sentences_about_making(setup, grid, made, read_s))
        lines.push_back(sentence);
    const image::Report report = image::report_of_all(statement.parts, source.coverage());
    image::write_volume(options.output / "image.nii", grid, image, report.short_warning());
    if (options.replicates != 0) {
        image::write_volume(options.output / "uncertainty.nii", grid, deviation,
                            "petlm image: standard error by counting, " + report.quantity.unit);
    }
    if constexpr (report::with_cairo) {
        const image::PictureTexts texts = image::picture_texts(report);
        image::write_projections(options.output / "projections.png", grid, image, texts, options.max);
        image::write_slices(options.output / "slices.png", grid, image, texts, options.max);
    }
    const std::string document = image::json_text(statement);
    write_text(options.output / "image.json", document);
    write_text(options.output / "README.txt", image::readme(statement));
    outputs.commit();

    // Not in README.txt: the image does not depend on it.
    lines.push_back("Sensitivity: " + made.front().look.sensitivity_from + ".");
    lines.push_back(report.warning());
    print_images({{"image", nlohmann::json::parse(document)}}, lines, options.output / "README.txt", outputs,
                 !report::with_cairo, options.as_json);
    return ok;
}

}  // namespace petacq::petlm
