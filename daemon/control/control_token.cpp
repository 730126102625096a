#include "daemon/control/control_token.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>

#include "daemon/system/shell_word.hpp"

namespace petacq::daemon {

namespace {

constexpr std::size_t min_characters = 16;
constexpr std::size_t max_characters = 256;
/// Others may not read it; the group may, because services get secrets from root that way.
constexpr mode_t forbidden_mode = 037;

[[noreturn]] void fail(const std::string& file, const std::string& what) {
    throw ControlTokenError(file + ": " + what, "(umask 077; openssl rand -hex 32 > " + shell_word(file) +
                                                    ") makes one; the user of the daemon must own it");
}

}  // namespace

std::string read_control_token(const std::filesystem::path& path) {
    const std::string file = path.string();
    const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0 && errno == EACCES) {
        throw ControlTokenError(file + ": this user may not read it",
                                "sudo chown petacq: " + shell_word(file) + " gives it to the service");
    }
    if (descriptor < 0) fail(file, std::strerror(errno));  // NOLINT(concurrency-mt-unsafe): in setting up
    struct stat info {};
    std::array<char, max_characters + 3> text{};
    const bool known = ::fstat(descriptor, &info) == 0;
    const ssize_t size = known && S_ISREG(info.st_mode) ? ::read(descriptor, text.data(), text.size()) : -1;
    ::close(descriptor);
    if (size < 0) fail(file, "expected a readable file");
    if ((info.st_mode & forbidden_mode) != 0) {
        throw ControlTokenError(
            fmt::format(
                "{}: expected a file that only its owner can write and only its group can read, found "
                "the mode {:04o}",
                file, info.st_mode & 07777),
            "chmod g-wx,o= " + shell_word(file));
    }
    if (info.st_uid != 0 && info.st_uid != ::geteuid()) {
        throw ControlTokenError(
            fmt::format("{}: expected a file of root or of the daemon's user, found the owner {}", file,
                        info.st_uid),
            "sudo chown petacq: " + shell_word(file) + " gives it to the service");
    }
    std::string_view token(text.data(), static_cast<std::size_t>(size));
    if (token.ends_with('\n')) token.remove_suffix(1);
    if (token.ends_with('\r')) token.remove_suffix(1);
    const bool printable =
        std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c <= '~'; });
    std::string found;
    if (!printable) found = "other characters";
    if (token.size() < min_characters) found = token.empty() ? "nothing" : "fewer characters";
    if (token.size() > max_characters) found = "more";
    if (found.empty()) return std::string(token);
    fail(file, "expected one line of 16 to 256 printable ASCII characters without spaces, found " + found);
}

bool is_authorised(std::string_view authorization, std::string_view token) {
    constexpr std::string_view scheme = "bearer ";
    if (authorization.size() < scheme.size()) return false;
    const bool bearer = std::equal(scheme.begin(), scheme.end(), authorization.begin(), [](char a, char b) {
        return a == std::tolower(static_cast<unsigned char>(b));
    });
    const std::string_view given = authorization.substr(scheme.size());
    return bearer && !token.empty() && given.size() == token.size() &&
           CRYPTO_memcmp(given.data(), token.data(), token.size()) == 0;
}

}  // namespace petacq::daemon
