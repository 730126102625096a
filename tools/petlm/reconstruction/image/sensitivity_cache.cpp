#include "tools/petlm/reconstruction/image/sensitivity_cache.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>
#include <system_error>

#include "config/base/sha256.hpp"
#include "config/calibration.hpp"
#include "daemon/coverage/coverage.hpp"
#include "daemon/system/file.hpp"

namespace petacq::image {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t most_bytes = 2'000'000'000;
constexpr std::size_t hex_of_sha256 = 64;
constexpr const char* prefix = "sensitivity-";

std::string sha256_of(std::span<const float> values) {
    config::Sha256 digest;
    digest.add(std::as_bytes(values));
    return digest.text();
}

/// A file is the key, the SHA-256 of the values, both in hex, and the values.
std::optional<std::vector<float>> read_kept(const fs::path& file, const std::string& key,
                                            std::size_t voxels) {
    std::ifstream in(file, std::ios::binary);
    std::string head(2 * hex_of_sha256, 0);
    std::vector<float> values(voxels);
    const auto bytes = static_cast<std::streamsize>(voxels * sizeof(float));
    if (!in.read(head.data(), static_cast<std::streamsize>(head.size()))) return std::nullopt;
    if (!in.read(reinterpret_cast<char*>(values.data()), bytes)) return std::nullopt;
    if (in.peek() != std::ifstream::traits_type::eof() || head != key + sha256_of(values))
        return std::nullopt;
    return values;
}

void keep(const fs::path& file, const std::string& key, const std::vector<float>& values) {
    std::string content = key + sha256_of(values);
    content.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    fs::create_directories(file.parent_path());
    daemon::replace_file(file, content);
}

void remove_oldest(const fs::path& directory) {
    struct Kept {
        fs::file_time_type used;
        std::uint64_t bytes;
        fs::path file;
    };
    std::vector<Kept> all;
    for (const auto& entry : fs::directory_iterator(directory)) {
        if (entry.path().filename().string().starts_with(prefix))
            all.push_back({entry.last_write_time(), entry.file_size(), entry.path()});
    }
    std::sort(all.begin(), all.end(), [](const Kept& a, const Kept& b) { return a.used > b.used; });
    std::uint64_t bytes = 0;
    for (const Kept& kept : all) {
        bytes += kept.bytes;
        if (bytes > most_bytes) fs::remove(kept.file);
    }
}

}  // namespace

fs::path cache_of_user() {
    const auto named = [](const char* name) {
        const char* value = std::getenv(name);
        return fs::path(value != nullptr && *value == '/' ? value : "");
    };
    if (const fs::path cache = named("XDG_CACHE_HOME"); !cache.empty()) return cache / "petacqd";
    const fs::path home = named("HOME");
    return home.empty() ? home : home / ".cache" / "petacqd";
}

std::string sensitivity_key(const config::Scanner& scanner, const gpu::PairRule& rule,
                            const corrections::LineFactors& factors, const Grid& grid,
                            const std::string& digest) {
    config::Sha256 key;
    const auto add_text = [&](const std::string& text) {
        key.add(std::as_bytes(std::span(text)));
        key.add_value('\0');
    };
    add_text(config::sha256_of_file("/proc/self/exe"));
    add_text(daemon::scanner_sha256(scanner));
    add_text(digest);
    // The rest of the rule follows from the scanner.
    key.add_value(rule.min_module_difference);
    key.add_value(rule.max_ring_difference);
    key.add_value(grid.n);
    key.add_value(grid.voxel_mm);
    factors.add_to(key);
    return key.text();
}

std::vector<float> cached_sensitivity(const fs::path& directory, const std::string& key, std::size_t voxels,
                                      const std::function<std::vector<float>()>& compute, std::string& from) {
    const fs::path file = directory / (prefix + key + ".bin");
    if (auto kept = read_kept(file, key, voxels)) {
        from = "from the cache, " + file.string();
        std::error_code ignored;
        fs::last_write_time(file, fs::file_time_type::clock::now(), ignored);
        return *kept;
    }
    std::vector<float> values = compute();
    from = "computed";
    if (values.size() * sizeof(float) > most_bytes / 4) return values;
    try {
        keep(file, key, values);
        remove_oldest(directory);
        from = "computed and kept in " + file.string();
    } catch (const std::system_error& error) {
        from = std::string("computed, but not kept: ") + error.what();
    }
    return values;
}

}  // namespace petacq::image
