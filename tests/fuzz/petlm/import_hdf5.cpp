// HDF5 files of records as petlm import reads them.
#include "tests/fuzz/base/hdf5_target.hpp"
#include "tests/fuzz/base/import_target.hpp"

using namespace petacq;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const fuzz::ScratchDirectory scratch;
    petlm::ImportOptions options;
    options.format = "hdf5";
    fuzz::import_all(petlm::open_hdf5, options, scratch.write("input.h5", {data, size}), size);
    return 0;
}
