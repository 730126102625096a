// petlm recover and verify: what is recovered from any file is a sound file with the same records.
// The first byte of the input says whether checksums are set right (plm.hpp).
#include "tools/petlm/records/recovery/recover.hpp"

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <streambuf>
#include <system_error>

#include "daemon/listmode/reader.hpp"
#include "tests/fuzz/base/plm.hpp"

using namespace petacq;

namespace {

/// Takes what is written, and keeps nothing.
class NullBuffer : public std::streambuf {
    int overflow(int character) override { return traits_type::not_eof(character); }
};

daemon::Condition condition_of(const std::string& file) {
    daemon::ListModeReader reader(file);
    while (reader.next()) {
    }
    return reader.condition();
}

/// A name on a file system in memory, where writing does not wait for a disk.
std::string scratch_file() {
    const std::string name = "/dev/shm/petacq-fuzz-" + std::to_string(::getpid()) + ".plm";
    std::atexit(
        [] { std::filesystem::remove("/dev/shm/petacq-fuzz-" + std::to_string(::getpid()) + ".plm"); });
    return name;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const std::string output = scratch_file();
    static NullBuffer nowhere;
    std::cout.rdbuf(&nowhere);  // recover prints a report
    const auto bytes = fuzz::listmode_input(data, size);
    const fuzz::MemoryFile file(bytes.data(), bytes.size());
    std::filesystem::remove(output);
    try {
        petlm::recover({file.path(), output});
        fuzz::accept();
        const daemon::Condition before = condition_of(file.path());
        const daemon::Condition after = condition_of(output);
        fuzz::require(after.state == daemon::FileState::complete, "a recovered file is complete");
        fuzz::require(after.records == before.records && after.payload_crc == before.payload_crc,
                      "a recovered file has every record of the whole blocks");
    } catch (const daemon::NotListMode&) {
    }
    return 0;
}
