// petlm: inspects, checks, converts and shows list-mode files.
#include <CLI/CLI.hpp>

#include <csignal>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "config/base/printable.hpp"
#include "config/choices.hpp"
#include "config/command_line/command_line.hpp"
#include "tools/petlm/base/depth_help.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/commands.hpp"
#include "tools/petlm/export/export.hpp"
#include "tools/petlm/import/declared/command_line.hpp"
#include "tools/petlm/import/import.hpp"
#include "tools/petlm/lifetime/lifetime.hpp"
#include "tools/petlm/nema/nema.hpp"
#include "tools/petlm/plot/plot.hpp"
#include "tools/petlm/reconstruction/frames/frames.hpp"
#include "tools/petlm/reconstruction/image/image.hpp"
#include "tools/petlm/reconstruction/tracers/tracers.hpp"
#include "tools/petlm/records/failures.hpp"
#include "tools/petlm/records/gating/gate.hpp"
#include "tools/petlm/records/interval/options.hpp"
#include "tools/petlm/records/rearrange.hpp"
#include "tools/petlm/records/recovery/recover.hpp"
#include "tools/petlm/resort/command_line.hpp"
#include "tools/petlm/resort/resort.hpp"
#include "tools/petlm/union/union.hpp"
#include "tools/report/cairo.hpp"

namespace {

using namespace petacq::petlm;
using petacq::gpu::Kind;

constexpr const char* coincidences_help = "File, or run directory: its coincidences";
constexpr const char* scanner_help = "Scanner description; default: the one in the run's run.json";
constexpr const char* file_help = "List-mode file to write";

/// Adds a subcommand that runs `command`. Returns it and its options.
template <class Options>
std::pair<CLI::App&, Options&> add(CLI::App& app, int& status, const char* name, const char* help,
                                   int (*command)(const Options&)) {
    auto options = std::make_shared<Options>();
    auto* sub = app.add_subcommand(name, help);
    sub->callback([options, command, &status] { status = command(*options); });
    return {*sub, *options};
}

void add_json(CLI::App& sub, bool& as_json) {
    sub.add_flag("--json", as_json, "Print JSON");
}

/// Where a command writes to, and how it says what it wrote.
template <class Options>
void add_output(CLI::App& sub, Options& o, const char* help) {
    sub.add_option("--output,-o", o.output, help)->required();
    sub.add_flag("--force", o.force, "Replace the output");
    add_json(sub, o.as_json);
}

/// An option whose value is one of `words`. The help shows the words.
template <class Value>
void add_word(CLI::App& sub, const char* name, Value& target, const std::map<std::string, Value>& words,
              const char* help) {
    sub.add_option_function<std::string>(
           name, [&target, words](const std::string& word) { target = words.at(word); }, help)
        ->check(CLI::IsMember(words));
}

void add_info(CLI::App& app, int& status) {
    auto [sub, o] = add(app, status, "info", "Describes a file or the files of a run", info);
    sub.add_option("target", o.target, "File or run directory")->required();
    add_json(sub, o.as_json);
}

void add_dump(CLI::App& app, int& status) {
    auto [sub, o] = add(app, status, "dump", "Prints the records as CSV", dump);
    sub.add_option("target", o.target, coincidences_help)->required();
    add_word(sub, "--kind", o.kind, {{"prompt", Kind::prompt}, {"delayed", Kind::delayed}},
             "Only prompt or only delayed coincidences");
    auto* singles = sub.add_flag("--singles", o.singles, "Of a run directory, print the singles");
    auto* triples =
        sub.add_flag("--triples", o.triples, "Of a run directory, print the triples")->excludes(singles);
    sub.add_flag("--seconds", o.seconds, "Of a run directory, print the seconds")
        ->excludes(singles)
        ->excludes(triples);
    sub.add_option("--field", o.field, "Of seconds, this field instead of all that are one number");
    sub.add_option("--limit", o.limit, "Print at most this many records");
    sub.add_flag("--json", o.as_json, "Print JSON Lines: an object for each record");
}

void add_verify(CLI::App& app, int& status) {
    auto [sub, o] =
        add(app, status, "verify", "Checks every block, the order of the records and the counts", verify);
    sub.add_option("targets", o.targets, "Files or run directories")->required();
    add_json(sub, o.as_json);
}

void add_recover(CLI::App& app, int& status) {
    auto [sub, o] =
        add(app, status, "recover",
            "Copies every whole block of a broken file, or of the files of a run, to sound files", recover);
    sub.add_option("target", o.target, "File or run directory")->required();
    sub.add_option(
        "--output,-o", o.output,
        "File to write, or directory for a run; default: FILE.recovered.plm for FILE.plm, RUN.recovered "
        "for RUN");
    add_json(sub, o.as_json);
}

void add_nuclide(CLI::App& sub, petacq::corrections::NuclideOptions& o, const std::string& help) {
    sub.add_option("--nuclide", o.nuclide, help)->type_name(petacq::config::nuclide_type());
    sub.add_option("--half-life-s", o.half_life_s, "Of a nuclide that is missing in the table");
    sub.add_option("--branching-ratio", o.branching_ratio, "Its positrons per decay");
}

void add_petsird(CLI::App& sub, petacq::petsird::PetsirdOptions& o) {
    constexpr std::uint32_t most = 1'000'000'000;
    add_word(sub, "--petsird-version", o.version, petacq::petsird::versions(),
             "Of the format; default: 0.12.0 (petsird)");
    sub.add_option("--block-ms", o.block_ms, "Length of a time block (petsird)")
        ->check(CLI::Range(1U, most))
        ->capture_default_str();
    sub.add_option("--tof-bin-ticks", o.tof_bin_ticks, "Width of a TOF bin; 0: no TOF (petsird)")
        ->check(CLI::Range(0U, most))
        ->capture_default_str();
    sub.add_option("--energy-bins", o.energy_bins, "Bins of the energy window (petsird)")
        ->check(CLI::Range(1U, most))
        ->capture_default_str();
    sub.add_option("--energy-resolution", o.energy_resolution, "FWHM / energy at 511 keV (petsird)")
        ->check(CLI::NonNegativeNumber);
    sub.add_flag("--no-delayeds", o.no_delayeds, "Leave delayed coincidences out (petsird)");
    sub.add_flag("--no-triples", o.no_triples, "Leave triples out (petsird)");
    sub.add_flag("--only-events", o.only_events,
                 "Leave out all but prompts and delayeds, as STIR needs it (petsird)");
    sub.add_option("--bed-channel", o.bed_channel,
                   "Channel of the tags with the position of the bed (petsird)");
    sub.add_option("--signal", o.signals,
                   "CHANNEL=TYPE: the type in PETSIRD of the tags of a channel, such as 3=RESP_TRIGGER; "
                   "repeatable (petsird)")
        ->take_all();
}

void add_export(CLI::App& app, int& status) {
    auto [sub, o] =
        add(app, status, "export", "Writes the records in the format of other software", export_records);
    sub.add_option("--format", o.format, "Of the other software")
        ->required()
        ->check(CLI::IsMember(export_formats()));
    sub.add_option("target", o.target, coincidences_help)->required();
    add_output(sub, o, "Directory to write to (castor, stir), or file");
    sub.add_option("--scanner", o.scanner, std::string(scanner_help) + " (castor, stir, petsird)");
    sub.add_option("--tof-resolution-ps", o.tof_resolution_ps,
                   "FWHM of the time difference (castor: write TOF; petsird)");
    sub.add_flag("--kind", o.event_kind, "Write the kind of each event (castor)");
    sub.add_option("--depth-mm", o.depth_mm,
                   std::string(depth_help_with_normalisation) + " (castor, stir, petsird)");
    sub.add_flag("--time-from-start", o.time_from_start,
                 "Count ticks from the start of the run (coinstruct)");
    sub.add_option("--normalisation", o.lines.normalisation,
                   "Normalisation file: write the factors of all lines (castor, stir), or detection "
                   "efficiencies (petsird)");
    sub.add_option("--attenuation", o.lines.attenuation,
                   "What attenuates, as of petlm image; repeatable (castor, stir)")
        ->take_all();
    sub.add_option("--scatter", o.scatter, "Default: simulation with --attenuation (castor, stir)")
        ->check(CLI::IsMember({"simulation", "none"}));
    add_nuclide(sub, o, "Nuclide of the run; default: the one that the operator named (castor, stir)");
    sub.add_option("--max-lines-gb", o.max_lines_gb,
                   "Largest size of the files about all lines (castor, stir)")
        ->capture_default_str();
    add_petsird(sub, o.petsird);
}

void add_import(CLI::App& app, int& status) {
    auto [sub, o] = add(app, status, "import",
                        "Makes a list-mode file or a run of the records of other software, or of an export",
                        import_records);
    sub.add_option("--format", o.format, "Of the file")->required()->check(CLI::IsMember(import_formats()));
    sub.add_option("file", o.input, "Records; of pairs, the prompts. castor: the header (.cdh)")->required();
    sub.add_option("--delayeds", o.delayeds, "Another file with the delayeds (castor, coinstruct, csv)");
    sub.add_option("--scanner", o.scanner,
                   "Scanner description; hdf5: default: the one in an export of a run");
    sub.add_option(
        "--crystals", o.crystals,
        "Which crystal each number of the file is: a table crystal,number_in_file (castor, csv, petsys), a "
        ".lut (castor), a crystal map (safir); default: as petlm export numbers them");
    sub.add_option("--columns", o.columns,
                   "FIELD=COLUMN[:UNIT],... of a table of other software, such as "
                   "time=t:ps,crystal=id,energy=E:keV (csv)");
    sub.add_option(
        "--records", o.records,
        "singles, groups, coincidences, groups-compact or coincidences-compact (petsys; required for .ldat)");
    sub.add_option("--kev-per-unit", o.keV_per_unit, "keV for a unit of the energies in the file (petsys)");
    petacq::petlm::add_declared(sub, o.declared);
    add_nuclide(sub, o.declared.source, "Nuclide of the source");
    petacq::petlm::add_declared_activity(sub, o.declared);
    add_output(sub, o, "List-mode file to write (NAME.plm), or run directory");
}

void add_cut(CLI::App& app, int& status) {
    auto [sub, o] =
        add(app, status, "cut", "Writes the records of an interval of detector time to a file", cut);
    sub.add_option("target", o.target, coincidences_help)->required();
    add_output(sub, o, file_help);
    add_interval_options(sub, o.from, o.to, o.in_seconds);
    auto* singles = sub.add_flag("--singles", o.singles, "Of a run directory, take the singles");
    auto* triples =
        sub.add_flag("--triples", o.triples, "Of a run directory, take the triples")->excludes(singles);
    auto* seconds =
        sub.add_flag("--seconds", o.seconds, "Of a run directory, take the seconds that lie in the interval")
            ->excludes(singles)
            ->excludes(triples);
    sub.add_option("--gate", o.gate, "Channel: only times at which its gate is open")
        ->check(CLI::Range(0, 15))
        ->excludes(seconds);
}

void add_gate(CLI::App& app, int& status) {
    auto [sub, o] =
        add(app, status, "gate",
            "Sorts coincidences or triples by their phase between the triggers of a channel", gate);
    sub.add_option("target", o.target, "Run directory, or a file of coincidences or triples in one")
        ->required();
    sub.add_flag("--triples", o.triples, "Of a run directory, take the triples");
    sub.add_option("--channel", o.channel, "Channel of the triggers; without triggers, its gate's openings")
        ->required()
        ->check(CLI::Range(0, 15));
    sub.add_option("--bins", o.bins, "Parts of a cycle, 2 to 64")->capture_default_str();
    sub.add_option("--shortest-s", o.shortest_s, "Reject shorter cycles");
    sub.add_option("--longest-s", o.longest_s, "Reject longer cycles");
    sub.add_option("--output,-o", o.output,
                   "Directory to write to; default: gate-CHANNEL in the run directory, for triples "
                   "gate-CHANNEL-triples");
    sub.add_flag("--force", o.force, "Replace the output");
    add_json(sub, o.as_json);
}

void add_merge(CLI::App& app, int& status) {
    auto [sub, o] =
        add(app, status, "merge", "Writes several files, or the parts of a run, to one file in order", merge);
    sub.add_option("targets", o.targets, "Files, or run directories: their coincidences")->required();
    add_output(sub, o, file_help);
    auto* singles = sub.add_flag("--singles", o.singles, "Of run directories, take the singles");
    sub.add_flag("--triples", o.triples, "Of run directories, take the triples")->excludes(singles);
}

/// "3/16"
Share share_from(const std::string& text) {
    Share share;
    char slash = 0;
    std::istringstream in(text);
    if (!(in >> share.number >> slash >> share.of) || slash != '/' || !in.eof() || share.number == 0 ||
        share.number > share.of || text.find('-') != std::string::npos)
        throw UsageError("--part " + text + ": expected K/N, K from 1 to N");
    return share;
}

void add_resort(CLI::App& app, int& status) {
    auto [sub, o] = add(app, status, "resort",
                        "Finds coincidences and triples from the singles of a run, or of the runs of several "
                        "hosts; settings that "
                        "are not given are those of the run",
                        resort);
    sub.add_option(
           "--output,-o", o.output,
           "File of coincidences to write (NAME.plm), or run directory, with the triples, seconds and tags")
        ->required();
    auto* force = sub.add_flag("--force", o.force, "Replace the output");
    add_json(sub, o.as_json);
    auto* part = sub.add_option_function<std::string>(
        "--part", [&options = o](const std::string& text) { options.part = share_from(text); },
        "K/N: only make the K-th of N shares of the run, as files that --join makes the run of; what is "
        "there "
        "already is kept");
    part->excludes(force);
    sub.add_flag("--join", o.join, "Only make the run of what all calls with --part have made")
        ->excludes(force)
        ->excludes(part);
    add_resort_options(sub, o);
    sub.add_option("--threads", o.threads, "Workers; 0: one per core, or two per GPU");
}

void add_union(CLI::App& app, int& status) {
    auto [sub, o] = add(app, status, "union",
                        "Makes one run of those of hosts that heard the same boards: what one of them has "
                        "lost comes from another",
                        unite);
    sub.add_option("runs", o.runs, "Run directories with singles.plm, two or more")->required();
    add_output(sub, o, "Run directory to write");
    sub.add_flag(
        "--follow", o.follow,
        "The runs are still written, or will be: find coincidences as they grow, until all have ended");
    sub.add_flag("--any-name", o.any_name, "Take runs of different names");
    sub.add_option("--backend", o.backend, "What computes")
        ->check(CLI::IsMember(petacq::config::words<petacq::config::Backend>.names))
        ->capture_default_str();
    sub.add_option("--threads", o.threads, "Workers; 0: one per core, or two per GPU");
}

int plot_with_cairo(const PlotOptions& options) {
    if constexpr (petacq::report::with_cairo) {
        return plot(options);
    } else {
        throw UsageError(
            "plot: this petlm was built without cairo, which draws the pictures; install libcairo2-dev and "
            "build "
            "petlm again. petlm export and tools/python give the numbers without it");
    }
}

void add_plot(CLI::App& app, int& status) {
    auto [sub, o] =
        add(app, status, "plot", "Makes a report with pictures: report.html, PNG files and their numbers",
            plot_with_cairo);
    sub.add_option("target", o.target, "Run directory, or a file of coincidences")->required();
    sub.add_option("--output,-o", o.output, "Directory to write to; default: plot in the run directory");
    sub.add_flag("--force", o.force, "Replace earlier pictures");
    add_json(sub, o.as_json);
    sub.add_option("--scanner", o.scanner, scanner_help);
    sub.add_option("--depth-mm", o.depth_mm, depth_help);
    sub.add_option("--reference", o.reference,
                   "Run with which the BDMs are compared; default: detector_reference of the run");
    sub.add_option("--png-width", o.png_width, "Pixels")->check(CLI::Range(200, 8000))->capture_default_str();
}

/// What an image and each frame of a series have of options.
void add_image_options(CLI::App& sub, ImageOptions& o) {
    sub.add_option("target", o.target, coincidences_help)->required();
    add_output(sub, o, "Directory to write to");
    sub.add_option("--scanner", o.scanner, scanner_help);
    sub.add_option("--depth-mm", o.depth_mm, depth_help_with_normalisation);
    sub.add_option("--normalisation", o.lines.normalisation,
                   "Normalisation file (petcal derive normalisation); values are then in kBq/ml");
    sub.add_option(
           "--attenuation", o.lines.attenuation,
           "What attenuates: x,y,z,radius,length[,1/cm] of a cylinder along z (mm; water by default), or a "
           "NIfTI map in 1/cm; repeatable, parts add up")
        ->take_all();
    sub.add_option(
           "--scatter", o.scatter,
           "simulation: of the photons in what attenuates, checked by the lines that miss it; default: "
           "simulation with --attenuation")
        ->check(CLI::IsMember({"simulation", "none"}));
    add_nuclide(sub, o,
                "With --normalisation: correct for its decay; default: the one that the operator named");
    sub.add_option("--voxel-mm", o.voxel_mm, "Edge of a voxel; default: the smaller crystal pitch");
    sub.add_option("--size", o.size, "Voxels across, instead of --voxel-mm");
    sub.add_option("--fov-mm", o.fov_mm, "Width across; default: the bore");
    sub.add_option("--iterations", o.iterations, "Iterations over all subsets")->capture_default_str();
    sub.add_option("--subsets", o.subsets, "Subsets of the lines; 1: MLEM")->capture_default_str();
    sub.add_option("--tof", o.tof,
                   "Time of flight: off, its resolution in ps (FWHM of the time difference of a pair), or "
                   "auto: what the run states of its calibration, where that helps")
        ->capture_default_str();
    sub.add_option("--psf-mm", o.psf_mm,
                   "FWHM of the blur of the scanner, which the model then has; default: none");
    sub.add_option("--smooth-mm", o.smooth_mm, "FWHM of a Gaussian applied at the end; default: two voxels");
    sub.add_option("--backend", o.backend, "What computes")
        ->check(CLI::IsMember(petacq::config::words<petacq::config::Backend>.names))
        ->capture_default_str();
    sub.add_option("--threads", o.threads, "Threads on the CPU; 0: one per core")->capture_default_str();
    sub.add_option("--max-memory-gb", o.max_memory_gb,
                   "Memory of the host; default: half of the available memory, at most 4");
    sub.add_flag("--no-cache", o.no_cache,
                 "Compute the sensitivity, and do not keep it in $XDG_CACHE_HOME/petacqd");
}

void add_replicates(CLI::App& sub, ImageOptions& o) {
    sub.add_option("--replicates", o.replicates,
                   "Images with the prompts drawn anew, 2 to 1000, whose spread is the standard error by "
                   "counting; 0: it is unknown")
        ->capture_default_str();
}

void add_image(CLI::App& app, int& status) {
    auto [sub, o] =
        add(app, status, "image",
            "Shows what was in the scanner, as PNG and NIfTI. With a normalisation and what attenuates, its "
            "values are in kBq/ml; without them it is for looking, not for quantification",
            image);
    add_image_options(sub, o);
    add_replicates(sub, o);
    sub.add_option("--bed", o.bed,
                   "If the bed moved, as position tags say: combine the images of the positions at which it "
                   "was still, or ignore it")
        ->check(CLI::IsMember({"combine", "ignore"}))
        ->capture_default_str();
    sub.add_option("--max", o.max,
                   "Value that the pictures show black, on an even scale; default: the largest value, "
                   "on a scale that also shows what is much weaker");
}

void add_frames(CLI::App& app, int& status) {
    auto [sub, o] =
        add(app, status, "frames",
            "Makes an image of each interval of a run, or of each phase of a breath or heart beat, with all "
            "corrections of its own time: a 4D NIfTI file, and the activity of regions over time",
            frames);
    add_image_options(sub, o);
    add_replicates(sub, o);
    sub.add_option("--bed", o.bed, "If the bed moved, as position tags say: refuse (combine), or ignore it")
        ->check(CLI::IsMember({"combine", "ignore"}))
        ->capture_default_str();
    auto* const schedule = sub.add_option(
        "--schedule", o.schedule,
        "Lengths of the frames, such as 10x10s,5x60s,2x10min; auto: they grow from the injection on");
    auto* const gates =
        sub.add_option("--gates", o.gates, "Phases of a cycle, 2 to 64, instead of a schedule")
            ->excludes(schedule);
    sub.add_option("--channel", o.channel,
                   "Channel of the triggers of the cycles; without triggers, its gate's openings")
        ->check(CLI::Range(0, 15))
        ->needs(gates);
    sub.add_option("--shortest-s", o.shortest_s, "Reject shorter cycles")->needs(gates);
    sub.add_option("--longest-s", o.longest_s, "Reject longer cycles")->needs(gates);
    sub.add_option("--injection-s", o.injection_s,
                   "Time of the injection after the start of the run, where the frames begin; default: the "
                   "start of the records, or with auto where the activity comes");
    sub.add_option("--region", o.regions,
                   "NAME=sphere:x,y,z,r (mm) or NAME=mask.nii: write its activity over time; repeatable")
        ->take_all();
    sub.add_option("--bids", o.bids, "File (JSON) with keys for the sidecar that the run does not know");
}

void add_tracers(CLI::App& app, int& status) {
    auto [sub, o] = add(
        app, status, "tracers",
        "Makes an image of each of two tracers that were in the scanner at once, of which one emits prompt "
        "gammas: from the triples of a run",
        tracers);
    add_image_options(sub, o);
    add_replicates(sub, o);
    sub.add_option("--gamma-nuclide", o.gamma_nuclide,
                   "Nuclide of the tracer with prompt gammas; --nuclide is that of the other")
        ->required();
    sub.add_option("--gamma-run", o.gamma_run,
                   "Run of this tracer alone, which tells how often its gammas are found");
    sub.add_option("--gamma-run-attenuation", o.gamma_run_attenuation,
                   "What attenuates in that run; default: as in the run of both")
        ->take_all();
    sub.add_option("--gamma-efficiency", o.gamma_efficiency,
                   "Instead of that run: chance that a gamma is found which leaves energy in the crystals");
    sub.add_option(
           "--region", o.regions,
           "NAME=sphere:x,y,z,r (mm) or NAME=mask.nii: tell the mean of each tracer in it; repeatable")
        ->take_all();
}

void add_lifetime(CLI::App& app, int& status) {
    auto [sub, o] =
        add(app, status, "lifetime",
            "Fits the lifetimes of positrons, and of the positronium that they form, from triples", lifetime);
    sub.add_option("target", o.target, "Run directory with triples, or a file of them")->required();
    add_output(sub, o, "Directory to write to");
    sub.add_option("--scanner", o.scanner, scanner_help);
    sub.add_option("--depth-mm", o.depth_mm, depth_help);
    sub.add_option("--image", o.image,
                   "Image of the activity, file or directory of petlm image: places annihilations on their "
                   "lines");
    sub.add_option(
           "--region", o.regions,
           "NAME=sphere:x,y,z,r (mm) or NAME=mask.nii: a spectrum of what is in it; repeatable; default: "
           "one of everything")
        ->take_all();
    sub.add_option(
           "--tof", o.tof,
           "Time of flight: off, its resolution in ps (FWHM of the time difference of a pair), or auto: "
           "what the run states of its calibration, where that helps")
        ->capture_default_str();
    sub.add_option("--min-share", o.min_share,
                   "Share of the activity on the line of a triple that its region must have, 0.5 to 1")
        ->check(CLI::Range(0.5, 1.0))
        ->capture_default_str();
    sub.add_option("--para-ns", o.para_ns, "Lifetime of para-positronium, held; default: 0.125");
    sub.add_option("--direct-ns", o.direct_ns, "Lifetime of direct annihilation, held; default: 0.39");
    sub.add_option("--resolution-ps", o.resolution_ps, "FWHM of a lifetime, held; default: fitted");
    sub.add_option("--offset-ps", o.offset_ps, "Time without a lifetime, held; default: fitted");
}

void add_nema_runs(CLI::App& sub, petacq::nema::RunOptions& o) {
    sub.add_option("runs", o.runs, "Run directories")->required();
    add_output(sub, o, "Directory to write to");
    sub.add_option("--scanner", o.scanner, scanner_help);
    sub.add_option("--depth-mm", o.depth_mm, depth_help);
}

void add_nema_activity(CLI::App& sub, petacq::nema::RunOptions& o) {
    sub.add_option("--activity-mbq", o.activity_MBq,
                   "At the start of each run, or one for all; default: what the operator said")
        ->delimiter(',')
        ->allow_extra_args(false);
    add_nuclide(sub, o, "Default: what the operator said");
}

void add_nema_count_rates(CLI::App& sub, petacq::nema::CountRateOptions& o) {
    using petacq::nema::Phantom;
    add_nema_runs(sub, o);
    add_nema_activity(sub, o);
    add_word(sub, "--phantom", o.phantom,
             {{"mouse", Phantom::mouse}, {"rat", Phantom::rat}, {"monkey", Phantom::monkey}},
             "Default: mouse");
    sub.add_option("--frame-s", o.frame_s, "Cut runs into frames of this length");
    sub.add_option("--background", o.background, "Run without a source, for the intrinsic background");
}

void add_nema(CLI::App& app, int& status) {
    using namespace petacq::nema;
    CLI::App* const nema =
        app.add_subcommand("nema", "Tests of NEMA NU 4-2008: tables, pictures, CSV and JSON");
    nema->require_subcommand(1);
    {
        auto [sub, o] = add(*nema, status, "sensitivity", "A point source at several positions", sensitivity);
        add_nema_runs(sub, o);
        add_nema_activity(sub, o);
        sub.add_option("--by-position", o.position_channel,
                       "Channel of position tags: an acquisition for each position of the bed")
            ->check(CLI::Range(0, 15));
        sub.add_option("--background", o.background, "Run without a source");
    }
    {
        auto [sub, o] = add(*nema, status, "scatter", "The scatter fraction of a line source in a phantom",
                            scatter_fraction);
        add_nema_count_rates(sub, o);
    }
    {
        auto [sub, o] = add(*nema, status, "count-rate", "Count losses, randoms and NECR", count_rate);
        add_nema_count_rates(sub, o);
    }
    {
        auto [sub, o] =
            add(*nema, status, "resolution", "The widths of point sources, one in each run", resolution);
        add_nema_runs(sub, o);
        sub.add_option("--max-ring-difference", o.max_ring_difference,
                       "Leave out lines of rings further apart; default: none");
    }
    {
        auto [sub, o] = add(*nema, status, "image-quality", "Uniformity, recovery and spill-over in images",
                            image_quality);
        sub.add_option("images", o.images, "NIfTI files (.nii), or directories of petlm image")->required();
        add_output(sub, o, "Directory to write to");
        sub.add_option("--offset-mm", o.middle_mm, "X,Y,Z of the middle of the phantom; default: 0,0,0")
            ->delimiter(',')
            ->allow_extra_args(false);
    }
}

int run(int argc, char** argv) {
    CLI::App app{"petlm: inspects, checks, converts and shows list-mode files (.plm)"};
    app.require_subcommand(1);
    app.footer(
        "Exit status: 0 success, 1 the file has problems, 64 usage, 65 not a list-mode file, 74 I/O failure, "
        "78 unusable settings or scanner description.");
    int status = ok;
    for (auto* add_command :
         {add_info, add_dump, add_verify, add_recover, add_export, add_import, add_cut, add_gate, add_merge,
          add_resort, add_union, add_plot, add_image, add_frames, add_tracers, add_lifetime, add_nema})
        add_command(app, status);
    const petacq::config::CommandLineStyle style{"petlm", {"--frame-s"}, {"--offset-mm"}};
    return petacq::config::parse_command_line(app, style, argc, argv).value_or(status);
}

}  // namespace

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);
    const petacq::config::PrintableOutput output;
    return status_of("petlm", [&] { return run(argc, argv); });
}
