// petlm: looks at list-mode files.
#include <CLI/CLI.hpp>

#include <csignal>
#include <iostream>
#include <map>
#include <system_error>

#include "config/error.hpp"
#include "daemon/listmode_reader.hpp"
#include "tools/petlm/commands.hpp"
#include "tools/petlm/export_source.hpp"

namespace {

using petacq::gpu::Kind;

void add_resort(CLI::App& app, petacq::petlm::ResortOptions& o, int& status) {
    auto* resorting = app.add_subcommand(
        "resort",
        "Finds the coincidences of a run again from its singles; what is not given is as the run had it");
    resorting->add_option("run", o.run, "Run directory with singles.plm")->required();
    resorting->add_option("--output,-o", o.output, "List-mode file to write")->required();
    resorting->add_flag("--force", o.force, "Replace the output");
    resorting->add_option("--window-ticks", o.window_ticks, "Coincidence window, inclusive");
    resorting->add_option("--window-mode", o.window_mode, "single or every");
    resorting->add_option("--policy", o.multiples_policy, "Multiples policy");
    resorting->add_option("--max-multiplicity", o.max_multiplicity, "Larger groups are dropped");
    resorting->add_option("--min-module-difference", o.min_module_difference, "Around the ring");
    resorting->add_option("--max-ring-difference", o.max_ring_difference, "Along the axis");
    auto* delay = resorting->add_option("--delay-ticks", o.delay_ticks, "Of the delayed window");
    resorting->add_flag("--no-delay", o.no_delay, "Look for no delayeds")->excludes(delay);
    resorting->add_option("--lower-kev", o.lower_keV, "Energy window; not below what was saved");
    resorting->add_option("--upper-kev", o.upper_keV, "Energy window; not above what was saved");
    resorting->add_option("--backend", o.backend, "auto, cuda or cpu")->capture_default_str();
    resorting->add_option("--threads", o.threads, "Of the CPU back-end; 0: one per core");
    resorting->callback([&o, &status] { status = petacq::petlm::resort(o); });
}

void add_plot(CLI::App& app, petacq::petlm::PlotOptions& o, int& status) {
    auto* plotting =
        app.add_subcommand("plot", "A report with pictures: report.html, PNG files and their numbers");
    plotting->add_option("target", o.target, "Run directory, or a file of coincidences")->required();
    plotting->add_option("--output,-o", o.output, "Directory to write to; default: plot in that of the run");
    plotting->add_flag("--force", o.force, "Replace earlier pictures");
    plotting->add_option("--scanner", o.scanner, "Scanner description; default: that in the run's run.json");
    plotting->add_option("--depth-mm", o.depth_mm,
                         "Mean depth of interaction behind the front face; default: half a crystal");
    plotting->add_option("--png-width", o.png_width, "Pixels")
        ->check(CLI::Range(200, 8000))
        ->capture_default_str();
    plotting->callback([&o, &status] { status = petacq::petlm::plot(o); });
}

void add_image(CLI::App& app, petacq::petlm::ImageOptions& o, int& status) {
    auto* imaging = app.add_subcommand(
        "image",
        "A quick look at what was in the scanner: PNG and NIfTI. For looking, not for quantification: "
        "attenuation, scatter and normalisation are not done");
    imaging->add_option("target", o.target, "File, or run directory: its coincidences")->required();
    imaging->add_option("--output,-o", o.output, "Directory to write to")->required();
    imaging->add_flag("--force", o.force, "Replace an earlier image");
    imaging->add_option("--scanner", o.scanner, "Scanner description; default: that in the run's run.json");
    imaging->add_option("--depth-mm", o.depth_mm,
                        "Mean depth of interaction behind the front face; default: half a crystal");
    imaging->add_option("--voxel-mm", o.voxel_mm, "Edge of a voxel; default: the smaller crystal pitch");
    imaging->add_option("--size", o.size, "Voxels across, instead of --voxel-mm");
    imaging->add_option("--fov-mm", o.fov_mm, "Width across; default: the bore");
    imaging->add_option("--iterations", o.iterations, "Over all subsets")->capture_default_str();
    imaging->add_option("--subsets", o.subsets, "Of the lines; 1: MLEM")->capture_default_str();
    imaging->add_option("--smooth-mm", o.smooth_mm, "FWHM of a Gaussian afterwards; default: two voxels");
    imaging->add_option("--backend", o.backend, "auto, cuda or cpu")->capture_default_str();
    imaging->add_option("--threads", o.threads, "Of the CPU; 0: one per core")->capture_default_str();
    imaging->add_option("--max-memory-gb", o.max_memory_gb,
                        "Memory of the host; default: 4, or half of what is available");
    imaging->callback([&o, &status] { status = petacq::petlm::image(o); });
}

int run(int argc, char** argv) {
    CLI::App app{"petlm: looks at list-mode files (.plm)"};
    app.require_subcommand(1);
    app.footer(
        "Exit status: 0 fine, 1 the file has problems, 64 usage, 65 not a list-mode file, 74 I/O failure, 78 "
        "unusable settings or scanner description.");
    int status = 0;

    std::filesystem::path target;
    bool as_json = false;
    auto* info = app.add_subcommand("info", "What a file or the files of a run hold");
    info->add_option("target", target, "File or run directory")->required();
    info->add_flag("--json", as_json, "As JSON");
    info->callback([&] { status = petacq::petlm::info(target, as_json); });

    Kind kind = Kind::prompt;
    std::uint64_t limit = 0;
    auto* dump = app.add_subcommand("dump", "The records as CSV");
    dump->add_option("file", target, "File, or run directory: its coincidences")->required();
    auto* kind_option = dump->add_option("--kind", kind, "Only prompt or only delayed coincidences");
    kind_option->transform(CLI::CheckedTransformer(
        std::map<std::string, Kind>{{"prompt", Kind::prompt}, {"delayed", Kind::delayed}}));
    auto* limit_option =
        dump->add_option("--limit", limit, "At most so many records")->check(CLI::NonNegativeNumber);
    dump->callback([&] {
        status = petacq::petlm::dump(target, kind_option->count() != 0 ? std::optional(kind) : std::nullopt,
                                     limit_option->count() != 0 ? std::optional(limit) : std::nullopt);
    });

    std::vector<std::filesystem::path> targets;
    auto* verify =
        app.add_subcommand("verify", "Checks every block, the order of the records and the counts");
    verify->add_option("targets", targets, "Files or run directories")->required();
    verify->callback([&] { status = petacq::petlm::verify(targets); });

    std::filesystem::path output;
    auto* recover = app.add_subcommand(
        "recover", "Copies every whole block of a broken file, or of the files of a run, to sound ones");
    recover->add_option("target", target, "File or run directory")->required();
    recover->add_option("--output,-o", output,
                        "File to write; default: FILE with .recovered.plm for .plm. Of a run, directory; "
                        "default: RUN.recovered");
    recover->callback([&] { status = petacq::petlm::recover(target, output); });

    petacq::petlm::ExportOptions to;
    auto* exporting = app.add_subcommand("export", "The records for other software");
    exporting->add_option("--format", to.format, "castor, stir, coinstruct, csv or hdf5")->required();
    exporting->add_option("target", to.target, "File, or run directory: its coincidences")->required();
    exporting->add_option("--output,-o", to.output, "Directory to write to (castor, stir), or file")
        ->required();
    exporting->add_flag("--force", to.force, "Replace an earlier export");
    exporting->add_option("--scanner", to.scanner,
                          "Scanner description; default: that in the run's run.json (castor, stir)");
    exporting->add_option("--tof-resolution-ps", to.tof_resolution_ps,
                          "Write TOF; FWHM of the time difference (castor)");
    exporting->add_flag("--kind", to.event_kind, "Write the kind of each event (castor)");
    exporting->add_option("--depth-mm", to.depth_mm,
                          "Mean depth of interaction behind the front face; default: half a crystal "
                          "(castor, stir)");
    exporting->add_flag("--time-from-start", to.time_from_start,
                        "Ticks from the start of the run (coinstruct)");
    exporting->callback([&] { status = petacq::petlm::export_records(to); });

    petacq::petlm::ImportOptions from;
    auto* importing = app.add_subcommand("import", "A list-mode file of other software's pairs");
    importing->add_option("--format", from.format, "coinstruct")->required();
    importing->add_option("pairs", from.pairs, "File of prompts")->required();
    importing->add_option("--delayeds", from.delayeds, "File of delayeds");
    importing->add_option("--scanner", from.scanner, "Scanner description")->required();
    importing->add_option("--output,-o", from.output, "List-mode file to write")->required();
    importing->add_flag("--force", from.force, "Replace it");
    importing->callback([&] { status = petacq::petlm::import_pairs(from); });

    petacq::petlm::CutOptions part;
    auto* cutting = app.add_subcommand("cut", "The records of an interval of detector time, as a file");
    cutting->add_option("target", part.target, "File, or run directory: its coincidences")->required();
    cutting->add_option("--output,-o", part.output, "List-mode file to write")->required();
    cutting->add_option("--from-ticks", part.from, "Records at or above it");
    cutting->add_option("--to-ticks", part.to, "And below it");
    cutting->add_flag("--singles", part.singles, "Of a run directory: its singles");
    cutting->add_flag("--force", part.force, "Replace the output");
    cutting->callback([&] { status = petacq::petlm::cut(part); });

    petacq::petlm::MergeOptions all;
    auto* merging = app.add_subcommand("merge", "One file, in order, of several, or of the parts of a run");
    merging->add_option("targets", all.targets, "Files, or run directories: their coincidences")->required();
    merging->add_option("--output,-o", all.output, "List-mode file to write")->required();
    merging->add_flag("--singles", all.singles, "Of run directories: their singles");
    merging->add_flag("--force", all.force, "Replace the output");
    merging->callback([&] { status = petacq::petlm::merge(all); });

    petacq::petlm::ResortOptions other;
    add_resort(app, other, status);
    petacq::petlm::PlotOptions shown;
    add_plot(app, shown, status);

    petacq::petlm::ImageOptions look;
    add_image(app, look, status);

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : petacq::petlm::usage;
    }
    return status;
}

int failed(const std::exception& error, int status) {
    std::cerr << "petlm: " << error.what() << '\n';
    return status;
}

}  // namespace

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);
    try {
        return run(argc, argv);
    } catch (const petacq::petlm::UsageError& error) {
        return failed(error, petacq::petlm::usage);
    } catch (const petacq::daemon::NotListMode& error) {
        return failed(error, petacq::petlm::not_list_mode);
    } catch (const petacq::petlm::BadInput& error) {
        return failed(error, petacq::petlm::has_problems);
    } catch (const petacq::config::IoError& error) {
        return failed(error, petacq::petlm::io_failure);
    } catch (const petacq::config::Error& error) {
        return failed(error, petacq::petlm::bad_scanner);
    } catch (const std::system_error& error) {
        return failed(error, petacq::petlm::io_failure);
    } catch (const std::exception& error) {
        return failed(error, petacq::petlm::io_failure);
    }
}
