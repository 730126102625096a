#include "daemon/http/reports.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "daemon/run/directory.hpp"

namespace petacq::daemon {

namespace {

constexpr std::size_t max_name_characters = 64;
constexpr std::size_t max_bytes = 32U << 20;

struct Descriptor {
    explicit Descriptor(int opened) : number(opened) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (number >= 0) ::close(number);
    }
    int number;
};

bool is_plain(std::string_view name) {
    return !name.empty() && name.size() <= max_name_characters && name.front() != '.' &&
           std::all_of(name.begin(), name.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '_' || c == '.';
           });
}

const char* type_of(std::string_view name) {
    constexpr std::array types{std::pair(".html", "text/html; charset=utf-8"), std::pair(".png", "image/png"),
                               std::pair(".svg", "image/svg+xml"), std::pair(".json", "application/json"),
                               std::pair(".csv", "text/csv; charset=utf-8")};
    for (const auto& [ending, type] : types) {
        if (name.ends_with(ending)) return type;
    }
    return nullptr;
}

}  // namespace

std::optional<ReportFile> report_file(std::string_view path) {
    constexpr std::string_view folder = "/reports/";
    if (!path.starts_with(folder)) return std::nullopt;
    path.remove_prefix(folder.size());
    const std::size_t slash = path.find('/');
    if (slash == std::string_view::npos) return std::nullopt;
    ReportFile file{std::string(path.substr(0, slash)), std::string(path.substr(slash + 1)), nullptr};
    file.type = type_of(file.name);
    if (file.type == nullptr || !is_plain(file.name)) return std::nullopt;
    try {
        check_run_id(file.run);
    } catch (const RunDirectoryError&) {
        return std::nullopt;
    }
    return file;
}

std::shared_ptr<const std::string> read_report(const std::filesystem::path& data_dir,
                                               const ReportFile& file) {
    constexpr int folder = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    const Descriptor data(::open(data_dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const Descriptor run(::openat(data.number, file.run.c_str(), folder));
    const Descriptor plot(::openat(run.number, "plot", folder));
    const Descriptor in(
        ::openat(plot.number, file.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    struct stat info {};
    if (in.number < 0 || ::fstat(in.number, &info) != 0 || !S_ISREG(info.st_mode) ||
        static_cast<std::uint64_t>(info.st_size) > max_bytes)
        return nullptr;
    auto text = std::make_shared<std::string>(static_cast<std::size_t>(info.st_size), '\0');
    std::size_t have = 0;
    while (have < text->size()) {
        const ssize_t got = ::read(in.number, text->data() + have, text->size() - have);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;  // it has become shorter
        have += static_cast<std::size_t>(got);
    }
    text->resize(have);
    return text;
}

}  // namespace petacq::daemon
