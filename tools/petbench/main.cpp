// petbench: the benchmarks.
#include "tools/petbench/suites.hpp"

int main(int argc, char** argv) {
    CLI::App app{"petbench: measures the receive path, the pipeline and the list-mode writer"};
    app.require_subcommand(1);
    petacq::bench::add_receive_suite(app);
    petacq::bench::add_pipeline_suite(app);
    petacq::bench::add_writer_suite(app);
    CLI11_PARSE(app, argc, argv);
    return 0;
}
