// petbench: the benchmarks.
#include <sysexits.h>

#include <cstdio>
#include <system_error>

#include "config/error.hpp"
#include "tools/petbench/suites.hpp"

namespace {

int report(const std::exception& error, int status) {
    std::fprintf(stderr, "petbench: %s\n", error.what());
    return status;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{
        "petbench: measures the receive path, the pipeline, the list-mode writer and the sort engines"};
    app.require_subcommand(1);
    petacq::bench::add_receive_suite(app);
    petacq::bench::add_pipeline_suite(app);
    petacq::bench::add_writer_suite(app);
    petacq::bench::add_export_suite(app);
    petacq::bench::add_image_suite(app);
    petacq::bench::add_replay_suite(app);
    petacq::bench::add_status_load_suite(app);
    petacq::bench::add_sort_suite(app);
    try {
        app.parse(argc, argv);  // runs the suite
        if (std::fflush(stdout) != 0) throw petacq::config::IoError("standard output: cannot be written");
        return 0;
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : EX_USAGE;
    } catch (const petacq::config::IoError& error) {
        return report(error, EX_IOERR);
    } catch (const petacq::config::Error& error) {
        return report(error, EX_CONFIG);
    } catch (const std::system_error& error) {
        return report(error, EX_IOERR);
    } catch (const std::exception& error) {
        return report(error, EX_SOFTWARE);
    }
}
