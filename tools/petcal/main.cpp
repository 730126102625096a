// petcal: makes, imports and inspects calibration files.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "config/error.hpp"
#include "config/make_calibration.hpp"
#include "tools/petcal/inspect.hpp"
#include "tools/petcal/raw_tables.hpp"

namespace {

namespace config = petacq::config;
namespace petcal = petacq::petcal;

enum Status { usage = 64, internal = 70, io = 74, bad_input = 78 };

struct Options {
    std::string scanner;
    std::string output;
    std::string input;
    bool json = false;
    petcal::RawFiles raw;
    config::CalibrationModel model;
};

CLI::App* add_make(CLI::App& app, Options& o) {
    CLI::App* make = app.add_subcommand("make", "Makes the calibration of a simulated scanner");
    make->add_option("--scanner", o.scanner, "Scanner description")->required();
    make->add_option("--output", o.output, "HDF5 file to write")->required();
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

CLI::App* add_import(CLI::App& app, Options& o) {
    CLI::App* import =
        app.add_subcommand("import", "Imports raw tables: row-major, little-endian, no header");
    import->add_option("--scanner", o.scanner, "Scanner description")->required();
    import->add_option("--position-table", o.raw.position_table, "u8 [bdm][du][position_size^2]")->required();
    import->add_option("--energy-factor", o.raw.energy_factor, "f32 [bdm][du][crystal][bins]")->required();
    import->add_option("--time-offset", o.raw.time_offset, "i32 [crystal], ticks");
    import->add_option("--bins", o.raw.bins, "Energy bins of 10 ADC counts")
        ->required()
        ->check(CLI::Range(std::uint32_t{1}, config::max_bins));
    import->add_option("--output", o.output, "HDF5 file to write")->required();
    return import;
}

CLI::App* add_inspect(CLI::App& app, Options& o) {
    CLI::App* inspect = app.add_subcommand("inspect", "Checks a calibration and shows its contents");
    inspect->add_option("file", o.input, "HDF5 file")->required();
    inspect->add_option("--scanner", o.scanner, "Scanner description")->required();
    inspect->add_flag("--json", o.json, "Print JSON");
    return inspect;
}

int make_file(const config::Scanner& scanner, const Options& o) {
    config::Calibration calibration;
    try {
        calibration = config::make_calibration(scanner, o.model);
    } catch (const config::Error& e) {  // the model comes from the command line
        std::fprintf(stderr, "petcal: %s\n", e.what());
        return usage;
    }
    config::save_calibration(o.output, scanner.geometry, calibration);
    return 0;
}

int run(int argc, char** argv) {
    CLI::App app("petcal: makes, imports and inspects calibration files", "petcal");
    app.require_subcommand(1);
    Options o;
    const CLI::App* make = add_make(app, o);
    const CLI::App* import = add_import(app, o);
    const CLI::App* inspect = add_inspect(app, o);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return app.exit(e) == 0 ? 0 : usage;
    }

    const config::Scanner scanner = config::load_scanner(o.scanner);
    if (make->parsed()) return make_file(scanner, o);
    if (import->parsed()) {
        config::save_calibration(o.output, scanner.geometry,
                                 petcal::read_raw_tables(scanner.geometry, o.raw));
    } else if (inspect->parsed()) {
        const auto figures =
            petcal::inspect(scanner.geometry, config::load_calibration(o.input, scanner.geometry));
        std::cout << (o.json ? figures.dump(2) + '\n' : petcal::inspect_text(figures)) << std::flush;
    }
    if (!std::cout) throw config::IoError("standard output: cannot be written");
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const auto fail = [](const std::exception& e, int status) {
        std::fprintf(stderr, "petcal: %s\n", e.what());
        return status;
    };
    try {
        return run(argc, argv);
    } catch (const config::IoError& e) {
        return fail(e, io);
    } catch (const config::Error& e) {
        return fail(e, bad_input);
    } catch (const std::exception& e) {
        return fail(e, internal);
    }
}
