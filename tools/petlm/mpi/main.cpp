// petlm-mpi: petlm resort over several processes, hosts and GPUs, under mpirun or srun.
#include <mpi.h>

#include <CLI/CLI.hpp>

#include <iostream>

#include "config/error.hpp"
#include "daemon/listmode/reader.hpp"
#include "tools/petlm/mpi/job.hpp"
#include "tools/petlm/records/status.hpp"
#include "tools/petlm/resort/command_line.hpp"

namespace {

using namespace petacq::petlm;

int run(const ResortOptions& options, bool follow, Communicator& ranks) {
    const auto failed = [&](const std::exception& error, int status) {
        std::cerr << fmt::format("petlm-mpi, rank {}: {}\n", ranks.rank(), error.what());
        return status;
    };
    try {
        return run_job(options, follow, ranks);
    } catch (const UsageError& error) {
        return failed(error, usage);
    } catch (const petacq::daemon::NotListMode& error) {
        return failed(error, not_list_mode);
    } catch (const BadInput& error) {
        return failed(error, has_problems);
    } catch (const petacq::config::IoError& error) {
        return failed(error, io_failure);
    } catch (const petacq::config::Error& error) {
        return failed(error, bad_scanner);
    } catch (const std::exception& error) {
        return failed(error, io_failure);
    }
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{
        "Finds coincidences from the singles of the runs of several hosts, in several processes (mpirun, "
        "srun). "
        "Settings that are not given are those of the first run"};
    ResortOptions options;
    bool follow = false;
    app.add_option("--output,-o", options.output,
                   "Run directory to write, on a file system that the ranks share or one on each host")
        ->required();
    app.add_flag("--force", options.force, "Replace the output");
    app.add_flag(
        "--follow", follow,
        "Search while the runs are still written, and wait for those that have not started; a run that "
        "was interrupted ends with its last whole block");
    add_resort_options(app, options);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? ok : usage;
    }
    MPI_Init(&argc, &argv);
    Communicator ranks;
    const int status = run(options, follow, ranks);
    // Other ranks may wait for this one for ever.
    if (status != ok) MPI_Abort(MPI_COMM_WORLD, status);
    MPI_Finalize();
    return status;
}
