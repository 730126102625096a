// petlm-mpi: petlm resort over several processes, hosts and GPUs, under mpirun or srun.
#include <mpi.h>

#include <CLI/CLI.hpp>

#include <string>

#include "config/command_line/command_line.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/mpi/job.hpp"
#include "tools/petlm/records/failures.hpp"
#include "tools/petlm/resort/command_line.hpp"

using namespace petacq::petlm;

int main(int argc, char** argv) {
    CLI::App app{
        "Finds coincidences from the singles of the runs of several hosts, in several processes (mpirun, "
        "srun). Settings that are not given are those of the first run"};
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
    app.get_option("runs")->description("Run directories with singles.plm");
    if (const auto done = petacq::config::parse_command_line(app, {"petlm-mpi", {}, {}}, argc, argv))
        return *done;
    int threads = MPI_THREAD_SINGLE;  // the pipeline has threads of its own, which do not use MPI
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &threads);
    Communicator ranks;
    const int status = status_of("petlm-mpi, rank " + std::to_string(ranks.rank()),
                                 [&] { return run_job(options, follow, ranks); });
    // Other ranks may wait for this one for ever.
    if (status != ok) MPI_Abort(MPI_COMM_WORLD, status);
    MPI_Finalize();
    return status;
}
