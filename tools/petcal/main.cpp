// petcal: makes, imports, derives, compares and inspects calibrations, checks the detector daily, and draws
// it.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "config/base/answer.hpp"
#include "config/base/error.hpp"
#include "config/base/exit_status.hpp"
#include "config/base/json_file.hpp"
#include "config/base/printable.hpp"
#include "config/calibration.hpp"
#include "config/command_line/command_line.hpp"
#include "config/make_calibration.hpp"
#include "tools/normalisation/normalisation.hpp"
#include "tools/petcal/activity/activity_by_coincidence.hpp"
#include "tools/petcal/apply.hpp"
#include "tools/petcal/check/check.hpp"
#include "tools/petcal/compare.hpp"
#include "tools/petcal/draw/draw.hpp"
#include "tools/petcal/inspect.hpp"
#include "tools/petcal/inspect_normalisation.hpp"
#include "tools/petcal/outputs.hpp"
#include "tools/petcal/raw_tables.hpp"
#include "tools/petcal/steps/derive_activity.hpp"
#include "tools/petcal/steps/derive_crystals.hpp"
#include "tools/petcal/steps/derive_energy.hpp"
#include "tools/petcal/steps/derive_normalisation.hpp"
#include "tools/petcal/steps/derive_time.hpp"
#include "tools/petlm/base/depth_help.hpp"
#include "tools/petlm/base/status.hpp"

namespace {

namespace config = petacq::config;
namespace exit_status = petacq::exit_status;
namespace petcal = petacq::petcal;

struct CommandOptions {
    std::string scanner;
    std::filesystem::path output;
    std::string input;
    bool force = false;                        ///< replace the output
    std::set<std::filesystem::path*> outputs;  ///< files that a command writes; empty: none
    bool json = false;
    petcal::RawFiles raw;
    config::CalibrationModel model;
    std::string other;  ///< the second calibration of compare
    petcal::DeriveCrystalsOptions crystals;
    petcal::DeriveEnergyOptions energy;
    petcal::DeriveTimeOptions time;
    petcal::DeriveNormalisationOptions normalisation;
    petcal::DeriveActivityOptions activity;
    petcal::ActivityByCoincidenceOptions by_coincidence;
    petcal::ApplyOptions apply;
    petcal::CheckOptions check;
    petcal::DrawOptions draw;
};

/// The options of a command that writes files.
void add_output(CLI::App* app, CommandOptions& o, std::filesystem::path& file, const char* help) {
    app->add_option("-o,--output", file, help)->required();
    o.outputs.insert(&file);
    app->add_flag("--force", o.force, "Replace the output");
    app->add_flag("--json", o.json, "Print JSON");
}

void add_report(CLI::App* app, CommandOptions& o, std::filesystem::path& file) {
    app->add_option("--report", file, "HTML file with pictures to write");
    o.outputs.insert(&file);
}

CLI::App* add_make(CLI::App& app, CommandOptions& o) {
    CLI::App* make = app.add_subcommand("make", "Makes the calibration of a simulated scanner");
    make->add_option("--scanner", o.scanner, "Scanner description")->required();
    add_output(make, o, o.output, "HDF5 file to write");
    make->add_option("--seed", o.model.seed, "The same seed gives the same tables")->capture_default_str();
    make->add_option("--energy-spread", o.model.energy_spread,
                     "Relative spread of the crystals' factors, 0 to 0.3")
        ->capture_default_str();
    make->add_option("--bins", o.model.bins, "Energy bins of 10 ADC counts")->capture_default_str();
    make->add_option("--nonlinearity", o.model.nonlinearity,
                     "Relative rise of a factor over the bins, -0.5 to 1")
        ->capture_default_str();
    make->add_option("--time-offset-ticks", o.model.time_offset_ticks, "Largest time offset; 0: none")
        ->capture_default_str();
    make->add_option("--gain-keV-per-adc", o.model.gain_keV_per_adc, "Mean factor")->capture_default_str();
    return make;
}

CLI::App* add_import(CLI::App& app, CommandOptions& o) {
    CLI::App* import =
        app.add_subcommand("import", "Imports raw tables: row-major, little-endian, no header");
    import->add_option("--scanner", o.scanner, "Scanner description")->required();
    import
        ->add_option(
            "--position-table", o.raw.position_table,
            "u8 [bdm][du][position_size^2]; u16 if a unit has more than 255 crystals (short form: 256)")
        ->required();
    import->add_option("--energy-factor", o.raw.energy_factor, "f32 [bdm][du][crystal][bins]")->required();
    import->add_option("--time-offset", o.raw.time_offset, "i32 [crystal], ticks");
    import->add_option("--bins", o.raw.bins, "Energy bins of 10 ADC counts")
        ->required()
        ->check(CLI::Range(std::uint32_t{1}, config::max_bins));
    add_output(import, o, o.output, "HDF5 file to write");
    return import;
}

CLI::App* add_inspect(CLI::App& app, CommandOptions& o) {
    CLI::App* inspect =
        app.add_subcommand("inspect", "Checks a calibration or normalisation and shows its contents");
    inspect->add_option("file", o.input, "HDF5 file")->required();
    inspect->add_option("--scanner", o.scanner, "Scanner description")->required();
    inspect->add_flag("--json", o.json, "Print JSON");
    return inspect;
}

/// What the steps of derive have in common.
template <class Step>
void add_step_options(CLI::App* app, CommandOptions& o, Step& step) {
    app->add_option("--scanner", o.scanner, "Scanner description")->required();
    app->add_option("--spectra", step.spectra, "Spectra file")->required();
    add_output(app, o, step.output, "Result file to write");
    add_report(app, o, step.report);
    app->add_flag("--partial", step.partial, "Leave out units that cannot be derived");
}

struct DeriveCommands {
    CLI::App* crystals;
    CLI::App* energy;
    CLI::App* time;
    CLI::App* normalisation;
    CLI::App* activity;
};

constexpr const char* cylinder_help = "X,Y,Z,RADIUS,LENGTH in mm: even activity, along the axis";

CLI::App* add_derive_normalisation(CLI::App* derive, CommandOptions& o) {
    petcal::DeriveNormalisationOptions& n = o.normalisation;
    CLI::App* app = derive->add_subcommand(
        "normalisation", "Efficiencies and geometric factors from a run of a known cylinder");
    app->add_option("--scanner", o.scanner, "Scanner description")->required();
    app->add_option("--run", n.run, "Run directory with coincidences, or a file of them")->required();
    app->add_option("--cylinder", n.cylinder, cylinder_help)->delimiter(',')->expected(5)->required();
    app->add_option("--attenuation-per-cm", n.attenuation_per_cm, "Of the cylinder, at 511 keV")
        ->capture_default_str();
    app->add_option("--depth-mm", n.depth_mm, petacq::petlm::depth_help);
    add_output(app, o, n.output, "Normalisation to write");
    add_report(app, o, n.report);
    return app;
}

CLI::App* add_derive_activity(CLI::App* derive, CommandOptions& o) {
    petcal::DeriveActivityOptions& a = o.activity;
    petcal::ActivityByCoincidenceOptions& c = o.by_coincidence;
    CLI::App* app = derive->add_subcommand("activity",
                                           "Activity factor from the image of a cylinder of known activity; "
                                           "or the activity of a source that emits "
                                           "a gamma with its positrons, without anything known");
    app->add_option("--scanner", o.scanner, "Scanner description")->required();
    auto* by_coincidence =
        app->add_option("--by-coincidence", c.run,
                        "Run directory with triples: the activity of its source (JSON), from "
                        "its rates of pairs, gammas and triples");
    app->add_option("--point", c.point, "X,Y,Z in mm: where a point source of that run is")
        ->delimiter(',')
        ->expected(3)
        ->needs(by_coincidence);
    app->add_option("--background", c.background, "Run without a source, for the gammas that come without it")
        ->needs(by_coincidence);
    app->add_option("--nuclide", c.nuclide, "Nuclide of that run; default: the one that the operator named")
        ->needs(by_coincidence);
    app->add_option("--cylinder", a.cylinder, cylinder_help)->delimiter(',')->expected(5);
    app->add_option("--normalisation", a.normalisation, "The one that was in use for the image")
        ->excludes(by_coincidence);
    app->add_option("--image", a.image, "Directory that petlm image wrote")->excludes(by_coincidence);
    app->add_option("--concentration-kBq-ml", a.concentration_kBq_ml,
                    "In the cylinder, at the time of the image's activity")
        ->excludes(by_coincidence);
    app->add_option(
           "--concentration-error-percent", a.concentration_error_percent,
           "Standard error of the concentration, such as that of the dose calibrator; it becomes part "
           "of the error of the factor")
        ->excludes(by_coincidence);
    app->add_option("--margin-mm", a.margin_mm, "Voxels nearer to the surface do not count")
        ->capture_default_str();
    app->add_flag(
        "--in-air", a.in_air,
        "The source neither attenuates nor scatters: take an image that was not corrected for that");
    add_output(app, o, a.output, "Normalisation to write, or JSON file (--by-coincidence)");
    app->callback([app, by_coincidence, &c, &a] {
        if (!by_coincidence->empty()) {
            c.cylinder = a.cylinder;
            if (c.cylinder.empty() == c.point.empty())
                throw CLI::RequiredError("--by-coincidence: --point or --cylinder, one of them");
            return;
        }
        for (const char* option : {"--normalisation", "--image", "--cylinder", "--concentration-kBq-ml"})
            if (app->get_option(option)->empty()) throw CLI::RequiredError(option);
    });
    return app;
}

DeriveCommands add_derive(CLI::App& app, CommandOptions& o) {
    CLI::App* derive = app.add_subcommand("derive", "Derives a step of a calibration from data");
    derive->require_subcommand(1);
    DeriveCommands c{};
    c.crystals = derive->add_subcommand("crystals", "Crystal maps from flood maps");
    add_step_options(c.crystals, o, o.crystals);
    c.crystals->add_option("--corrections", o.crystals.corrections, "JSON file with peaks placed by hand");
    c.energy = derive->add_subcommand("energy", "Energy factors from the photopeaks of crystals");
    add_step_options(c.energy, o, o.energy);
    c.energy->add_option("--calibration", o.energy.calibration, "The one that was in use for the spectra")
        ->required();
    c.energy->add_option("--second", o.energy.second, "Spectra file of a source with another line");
    c.energy->add_option("--second-line-keV", o.energy.second_line_keV, "Its energy, as 661.7 of Cs-137");
    c.time = derive->add_subcommand("time", "Time offsets from a run of a known source");
    c.time->add_option("--scanner", o.scanner, "Scanner description")->required();
    c.time->add_option("--run", o.time.run, "Run directory with coincidences")->required();
    c.time->add_option("--calibration", o.time.calibration, "The one that was in use for the run")
        ->required();
    auto* cylinder = c.time->add_option("--cylinder", o.time.cylinder, cylinder_help);
    cylinder->delimiter(',')->expected(5);
    auto* point = c.time->add_option("--point", o.time.point, "X,Y,Z in mm");
    point->delimiter(',')->expected(3)->excludes(cylinder);
    add_output(c.time, o, o.time.output, "Calibration to write");
    add_report(c.time, o, o.time.report);
    c.normalisation = add_derive_normalisation(derive, o);
    c.activity = add_derive_activity(derive, o);
    return c;
}

CLI::App* add_apply(CLI::App& app, CommandOptions& o) {
    CLI::App* apply = app.add_subcommand("apply", "Puts derived steps into a calibration");
    apply->add_option("--scanner", o.scanner, "Scanner description")->required();
    apply->add_option("--calibration", o.apply.calibration, "The previous calibration")->required();
    apply->add_option("--crystals", o.apply.crystals, "Result of derive crystals");
    apply->add_option("--energy", o.apply.energy, "Result of derive energy");
    apply->add_option(
        "--bdm-ticks", o.apply.bdm_ticks,
        "BDM:TICKS, added to the time offsets of the crystals whose frames carry this BDM, as health names "
        "it when it is out of step; repeatable");
    add_output(apply, o, o.apply.output, "HDF5 file to write");
    return apply;
}

CLI::App* add_compare(CLI::App& app, CommandOptions& o) {
    CLI::App* compare = app.add_subcommand("compare", "Shows how two calibrations or normalisations differ");
    compare->add_option("a", o.input, "HDF5 file")->required();
    compare->add_option("b", o.other, "HDF5 file")->required();
    compare->add_option("--scanner", o.scanner, "Scanner description")->required();
    compare->add_flag("--json", o.json, "Print JSON");
    return compare;
}

std::string above_0(const std::string& text) {
    const double value = std::strtod(text.c_str(), nullptr);
    return std::isfinite(value) && value > 0 ? "" : "expected a number above 0, found " + text;
}

CLI::App* add_check(CLI::App& app, CommandOptions& o) {
    CLI::App* check = app.add_subcommand("check", "Compares a run with a reference of the same source");
    check->add_option("run", o.check.run, "Run directory with spectra")->required();
    check->add_option("--reference", o.check.reference,
                      "Run directory; default: the detector_reference of the run");
    add_report(check, o, o.check.report);
    check->add_flag("--force", o.force, "Replace the report");
    check->add_flag("--json", o.check.json, "Print JSON");
    petcal::CheckLimits& limits = o.check.limits;
    const auto limit = [&](const char* name, double& value, const char* help) {
        check->add_option(name, value, help)->check(above_0, "above 0")->capture_default_str();
    };
    limit("--time-ns", limits.time_ns, "Smallest change of the times of a BDM that is named");
    limit("--photopeak-percent", limits.photopeak_percent, "The same of a photopeak");
    limit("--resolution-percent", limits.resolution_percent, "The same of an energy resolution");
    limit("--counts-percent", limits.counts_percent, "The same of a share of the singles, and of prompts");
    limit("--efficiency-percent", limits.efficiency_percent, "The same of the efficiency of a BDM");
    limit("--spots-percent", limits.spots_percent, "The same of spots, of their distance");
    return check;
}

CLI::App* add_draw(CLI::App& app, CommandOptions& o) {
    CLI::App* draw = app.add_subcommand("draw", "Draws a scanner in three dimensions");
    draw->add_option("--scanner", o.scanner, "Scanner description")->required();
    add_output(draw, o, o.draw.output, "File to write: .html, a page to turn and zoom, or .png");
    draw->add_option("--colour", o.draw.colour, "Colours by module, bdm, board, type or layer")
        ->check(CLI::IsMember({"module", "bdm", "board", "type", "layer"}))
        ->capture_default_str();
    return draw;
}

void make_file(const config::Scanner& scanner, const CommandOptions& o) {
    config::Calibration calibration;
    try {
        calibration = config::make_calibration(scanner, o.model);
    } catch (const config::Error& e) {  // the model comes from the command line
        throw petacq::petlm::UsageError(e.what());
    }
    config::save_calibration(o.output, scanner.geometry, calibration);
}

void print_comparison(const config::Scanner& scanner, const CommandOptions& o) {
    namespace normalisation = petacq::normalisation;
    const auto both = [&](auto load) { return std::pair(load(o.input), load(o.other)); };
    if (petcal::is_normalisation(o.input)) {
        const auto [a, b] =
            both([&](const auto& file) { return normalisation::load(file, scanner.geometry); });
        const auto figures = petcal::compare_normalisations(a, b);
        return config::print_answer(figures, petcal::compare_normalisations_text(figures), o.json);
    }
    const auto [a, b] =
        both([&](const auto& file) { return config::load_calibration(file, scanner.geometry); });
    const auto figures = petcal::compare(scanner, a, b);
    config::print_answer(figures, petcal::compare_text(figures), o.json);
}

void print_contents(const config::Geometry& g, const CommandOptions& o) {
    const bool normalised = petcal::is_normalisation(o.input);
    const auto figures = normalised
                             ? petcal::inspect_normalisation(g, petacq::normalisation::load(o.input, g))
                             : petcal::inspect(g, config::load_calibration(o.input, g));
    const auto text = normalised ? petcal::inspect_normalisation_text : petcal::inspect_text;
    config::print_answer(figures, text(figures), o.json);
}

struct Commands {
    CLI::App* make;
    CLI::App* import;
    DeriveCommands derive;
    CLI::App* apply;
    CLI::App* compare;
    CLI::App* inspect;
    CLI::App* check;
    CLI::App* draw;
};

config::Written derive(const config::Scanner& scanner, const DeriveCommands& c, const CommandOptions& o) {
    if (c.crystals->parsed()) return petcal::derive_crystals(scanner, o.crystals);
    if (c.energy->parsed()) return petcal::derive_energy(scanner, o.energy);
    if (c.time->parsed()) return petcal::derive_time(scanner, o.time);
    config::Written written;
    if (c.normalisation->parsed()) {
        const auto derived = petcal::derive_normalisation(scanner, o.normalisation);
        written.facts = figures_json(derived);
        written.text = figures_text(scanner, derived);
    } else if (o.by_coincidence.run.empty()) {
        const auto derived = petcal::derive_activity(scanner, o.activity);
        written.facts = figures_json(derived);
        written.text = figures_text(derived);
    } else {
        petcal::ActivityByCoincidenceOptions options = o.by_coincidence;
        options.output = o.activity.output;
        written.text = figures_text(petcal::activity_by_coincidence(scanner, options));
        written.facts["activity"] = config::read_json_file(options.output);
    }
    return written;
}

/// What is written, and what to say of it.
config::Written write(const config::Scanner& scanner, const Commands& c, const CommandOptions& o) {
    if (c.make->parsed()) {
        make_file(scanner, o);
    } else if (c.import->parsed()) {
        config::save_calibration(o.output, scanner.geometry,
                                 petcal::read_raw_tables(scanner.geometry, o.raw));
    } else if (c.apply->parsed()) {
        petcal::apply(scanner, o.apply);
    } else if (c.draw->parsed()) {
        petcal::draw(scanner, o.draw);
    } else {
        return derive(scanner, c.derive, o);
    }
    return {};
}

int execute(const Commands& c, const CommandOptions& o, petcal::Outputs& outputs) {
    if (c.check->parsed()) {
        const petcal::Verdict verdict = petcal::check(o.check);
        outputs.publish();
        return verdict == petcal::Verdict::pass ? 0 : exit_status::has_problems;
    }
    const config::Scanner scanner = config::load_scanner(o.scanner);
    if (c.compare->parsed()) {
        print_comparison(scanner, o);
    } else if (c.inspect->parsed()) {
        print_contents(scanner.geometry, o);
    } else {
        config::Written written = write(scanner, c, o);
        outputs.publish();
        written.files = outputs.written();
        config::print_written(std::move(written), o.json, "petcal");
    }
    return 0;
}

int run(int argc, char** argv) {
    CLI::App app(
        "petcal: makes, imports, derives, compares and inspects calibrations, checks the detector, and draws "
        "it",
        "petcal");
    app.require_subcommand(1);
    CommandOptions o;
    const Commands commands{add_make(app, o),    add_import(app, o),  add_derive(app, o), add_apply(app, o),
                            add_compare(app, o), add_inspect(app, o), add_check(app, o),  add_draw(app, o)};
    if (const auto status = config::parse_command_line(
            app, {"petcal", {}, {"--cylinder", "--point", "--nonlinearity"}}, argc, argv))
        return *status;

    o.draw.suffix = o.draw.output.extension().string();
    petcal::Outputs outputs(o.force);
    for (std::filesystem::path* file : o.outputs)
        if (!file->empty()) outputs.claim(*file);
    try {
        return execute(commands, o, outputs);
    } catch (...) {
        outputs.publish();  // the report of data that were refused
        throw;
    }
}

}  // namespace

int main(int argc, char** argv) {
    const config::PrintableOutput output;
    const auto fail = [](const std::exception& e, int status) {
        config::print_error("petcal", e.what());
        return status;
    };
    try {
        return run(argc, argv);
    } catch (const petacq::petlm::UsageError& e) {
        return fail(e, exit_status::usage);
    } catch (const config::IoError& e) {
        return fail(e, exit_status::io_failure);
    } catch (const std::system_error& e) {
        return fail(e, exit_status::io_failure);
    } catch (const config::Error& e) {
        return fail(e, exit_status::bad_configuration);
    } catch (const std::exception& e) {
        return fail(e, exit_status::internal_failure);
    }
}
