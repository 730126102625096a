// Suite "sort": the engines that order singles on the GPU.
#include <cstdio>
#include <memory>
#include <stdexcept>

#include "tools/petbench/sort_cuda.hpp"
#include "tools/petbench/suites.hpp"

namespace petacq::bench {

namespace {

void run([[maybe_unused]] const SortBench& options) {
#ifdef PETACQ_HAVE_CUDA
    run_sort(options);
#else
    throw std::runtime_error("sort: needs a GPU, and this petbench is built without CUDA");
#endif
}

}  // namespace

void add_sort_suite(CLI::App& app) {
    auto options = std::make_shared<SortBench>();
    CLI::App* suite = app.add_subcommand("sort", "The sort engines of the CUDA back-end; needs a GPU");
    suite->add_option("--from", options->least, "Singles in the shortest sort")
        ->capture_default_str()
        ->check(CLI::Range(1, 1 << 30));
    suite->add_option("--to", options->most, "Singles in the longest sort; lengths grow by 4")
        ->capture_default_str()
        ->check(CLI::Range(1, 1 << 30));
    suite->add_option("--bits", options->bits, "Bits that are sorted by")
        ->capture_default_str()
        ->check(CLI::Range(1, 64));
    suite->add_option("--repeat", options->repeat, "Sorts of which the median is taken")
        ->capture_default_str()
        ->check(CLI::Range(1, 1000));
    suite->callback([options] { run(*options); });
}

}  // namespace petacq::bench
