// Files of other software as petlm import reads them. The first byte is the format, and says what a file of
// PETsys holds. Then comes a text, a NUL, and the file: of csv the columns (empty: those of our export), of
// castor the header, of safir the crystal map (empty: the numbers are those of our export), of petsys
// nothing.
#include <array>

#include "tests/fuzz/base/import_target.hpp"

using namespace petacq;

namespace {

using Bytes = std::span<const std::uint8_t>;

struct FormatTarget {
    const char* format;
    petlm::ForeignFile (*open)(const petlm::ForeignInput&);
    const char* records;  // of petsys
    const char* name;
};
constexpr std::array<FormatTarget, 9> formats = {
    {{"csv", petlm::open_csv, "", "input.csv"},
     {"castor", petlm::open_castor, "", "a.cdh"},
     {"safir", petlm::open_safir, "", "input.safir"},
     {"petsys", petlm::open_petsys, "", "input.dat"},
     {"petsys", petlm::open_petsys, "singles", "input.ldat"},
     {"petsys", petlm::open_petsys, "groups", "input.ldat"},
     {"petsys", petlm::open_petsys, "coincidences", "input.ldat"},
     {"petsys", petlm::open_petsys, "groups-compact", "input.ldat"},
     {"petsys", petlm::open_petsys, "coincidences-compact", "input.ldat"}}};

Bytes bytes_of(std::string_view text) {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const fuzz::ScratchDirectory scratch;
    if (size == 0 || data[0] >= formats.size()) return 0;
    const FormatTarget& target = formats[data[0]];
    const auto [text, content] = fuzz::text_and_rest(data + 1, size - 1);
    const std::string_view format = target.format;
    petlm::ImportOptions options;
    options.format = format;
    options.records = target.records;
    if (format == "csv") options.columns = text;
    if (format == "safir" && !text.empty()) options.crystals = scratch.write("map.txt", bytes_of(text));
    if (format == "petsys") {
        options.keV_per_unit = 2;
        options.crystals =
            scratch.write("crystals.csv", bytes_of("crystal,number_in_file\n0,0\n1,1\n2,2\n11,300\n"));
    }
    if (format == "castor") {
        // A header may name the one file that is there.
        if (text.find('/') != std::string_view::npos || text.find("..") != std::string_view::npos) return 0;
        static_cast<void>(scratch.write("a.cdf", content));
    }
    const std::filesystem::path file =
        scratch.write(target.name, format == "castor" ? bytes_of(text) : content);
    fuzz::import_all(target.open, options, file, size);
    return 0;
}
