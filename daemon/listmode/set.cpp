#include "daemon/listmode/set.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <system_error>

namespace petacq::daemon {

std::filesystem::path file_of_set(const std::filesystem::path& set, std::uint32_t file) {
    std::string name = set.filename().string();
    const std::size_t dot = std::min(name.rfind(".plm"), name.size());
    name.insert(dot, "." + std::to_string(file + 1));
    return std::filesystem::path(set).replace_filename(name);
}

std::filesystem::path set_of_file(const std::filesystem::path& path) {
    const std::string number = path.stem().extension().string();
    std::uint32_t value = 0;
    const char* const end = number.data() + number.size();
    if (number.size() < 2 || number[1] == '0') return path;
    const auto parsed = std::from_chars(number.data() + 1, end, value);
    if (parsed.ec != std::errc() || parsed.ptr != end || value > max_files) return path;
    std::filesystem::path set = path;
    return set.replace_filename(path.stem().stem().string() + path.extension().string());
}

std::uint64_t bytes_of_files(const std::filesystem::path& path) {
    std::uint64_t sum = 0;
    const auto add = [&](const std::filesystem::path& file) {
        std::error_code failed;
        const std::uint64_t bytes = std::filesystem::file_size(file, failed);
        if (!failed) sum += bytes;
    };
    const std::filesystem::path set = set_of_file(path);
    if (set == path) add(path);
    if (sum != 0) return sum;
    for (std::uint32_t file = 0; file < max_files; ++file)
        add(file_of_set(set, file));
    return sum;
}

}  // namespace petacq::daemon
