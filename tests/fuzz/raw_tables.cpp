// Raw tables of existing scanners, which petcal apply turns into a calibration.
// Input: the bins (a byte), whether there are time offsets (a byte), and the tables.
#include "tools/petcal/raw_tables.hpp"

#include "tests/fuzz/base/hdf5_target.hpp"

using namespace petacq;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const fuzz::ScratchDirectory scratch;
    fuzz::Input input(data, size);
    petcal::RawFiles files;
    files.bins = input.take<std::uint8_t>();
    const bool offsets = input.take<std::uint8_t>() % 2 != 0;
    const auto table = [&](const char* name, std::size_t bytes) {
        const auto taken = input.take_bytes(bytes);
        return scratch.write(name, {reinterpret_cast<const std::uint8_t*>(taken.data()), taken.size()});
    };
    files.position_table = table("positions", 3 * 16);
    files.energy_factor = table("factors", std::size_t{3} * 4 * files.bins * sizeof(float));
    if (offsets) files.time_offset = table("offsets", 12 * sizeof(std::int32_t));
    try {
        const config::Calibration calibration = petcal::read_raw_tables(fuzz::tiny, files);
        config::check_calibration(fuzz::tiny, calibration);
        fuzz::accept();
        const std::filesystem::path file = scratch.path() / "calibration.h5";
        config::save_calibration(file, fuzz::tiny, calibration);
        const config::Calibration again = config::load_calibration(file, fuzz::tiny);
        require(again.position_table == calibration.position_table &&
                    again.energy_factor == calibration.energy_factor &&
                    again.time_offset == calibration.time_offset,
                "tables that are accepted make a calibration");
    } catch (const config::Error& error) {
        require(fuzz::says_what_was_expected(error.what()), "an error says what was expected");
    }
    return 0;
}
