// The main program of a fuzz target where there is no libFuzzer: runs it on the files given, and on all files
// of the directories given.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/fuzz/base/fuzz.hpp"

namespace {

std::size_t run(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
    std::fprintf(stderr, "%s\n", file.c_str());  // the last line names the input of a crash
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    return 1;
}

}  // namespace

int main(int count, char** names) {
    std::size_t inputs = 0;
    for (const std::string name : std::span(names, static_cast<std::size_t>(count)).subspan(1)) {
        if (!std::filesystem::is_directory(name)) {
            if (std::filesystem::exists(name)) inputs += run(name);
            continue;
        }
        for (const auto& entry : std::filesystem::directory_iterator(name))
            inputs += run(entry.path());
    }
    // A target may have closed std::cout.
    std::printf("%zu inputs, of which %zu were taken as sound; expected some\n", inputs,
                petacq::fuzz::accepted);
    return petacq::fuzz::accepted == 0 ? 1 : 0;
}
