// The main program of the fuzz targets where there is no libFuzzer: runs the one that is named first on the
// files given, and on all files of the directories given.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "tests/fuzz/base/fuzz.hpp"

// CMakeLists.txt writes fuzz_targets.inc, with PETACQ_FUZZ_TARGET(NAME) for each.
#define PETACQ_FUZZ_TARGET(name) extern "C" int fuzz_##name(const std::uint8_t*, std::size_t);
#include "fuzz_targets.inc"
#undef PETACQ_FUZZ_TARGET

namespace {

using Target = int (*)(const std::uint8_t*, std::size_t);

const std::map<std::string, Target> targets = {
#define PETACQ_FUZZ_TARGET(name) {#name, fuzz_##name},
#include "fuzz_targets.inc"
#undef PETACQ_FUZZ_TARGET
};

std::size_t run(Target target, const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
    std::fprintf(stderr, "%s\n", file.c_str());  // the last line names the input of a crash
    target(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    return 1;
}

}  // namespace

int main(int count, char** names) {
    const auto named = count < 2 ? targets.end() : targets.find(names[1]);
    if (named == targets.end()) {
        std::fprintf(stderr, "fuzz_replay: expected a target and its files\n");
        return 64;
    }
    std::size_t inputs = 0;
    for (const std::string name : std::span(names, static_cast<std::size_t>(count)).subspan(2)) {
        if (!std::filesystem::is_directory(name)) {
            if (std::filesystem::exists(name)) inputs += run(named->second, name);
            continue;
        }
        for (const auto& entry : std::filesystem::directory_iterator(name))
            inputs += run(named->second, entry.path());
    }
    // A target may have closed std::cout.
    std::printf("%zu inputs, of which %zu were taken as sound; expected some\n", inputs,
                petacq::fuzz::accepted);
    return petacq::fuzz::accepted == 0 ? 1 : 0;
}
