// List-mode files, block by block. The first byte of the input says whether checksums are set right
// (plm.hpp).
#include <nlohmann/json.hpp>

#include "daemon/listmode/reader.hpp"
#include "tests/fuzz/base/plm.hpp"

using namespace petacq;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto bytes = fuzz::listmode_input(data, size);
    const fuzz::MemoryFile file(bytes.data(), bytes.size());
    try {
        daemon::ListModeReader reader(file.path());
        std::uint64_t blocks = 0;
        std::uint64_t records = 0;
        while (reader.next()) {
            ++blocks;
            records += reader.block().records;
            require(
                reader.payload().size() == std::size_t{reader.block().records} * reader.header().record_bytes,
                "a block holds its records");
            require(
                reader.block_offset() + sizeof(daemon::BlockHeader) + reader.payload().size() <= bytes.size(),
                "a block lies in the file");
        }
        const daemon::Condition& condition = reader.condition();
        if (condition.state == daemon::FileState::complete) fuzz::accept();
        require(condition.blocks == blocks && condition.records == records, "every whole block is counted");
        require(condition.state != daemon::FileState::complete || condition.has_index,
                "complete means with index");
        (void)condition.summary();
    } catch (const daemon::NotListMode&) {
    }
    return 0;
}
