#include "tests/support/tutorial.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <regex>
#include <sstream>
#include <system_error>

#include "tests/support/files.hpp"

namespace petacq::test {
namespace {

/// The text of all blocks of a page in this language.
std::string blocks_of(const std::string& page, const std::string& language) {
    std::string blocks;
    std::istringstream lines(page);
    bool inside = false;
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("```")) {
            inside = line == "```" + language;
        } else if (inside) {
            blocks += line + '\n';
        }
    }
    return blocks;
}

/// A UDP port that nobody uses.
std::string free_port() {
    const int descriptor = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    const bool bound = ::bind(descriptor, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                       ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) == 0;
    ::close(descriptor);
    if (!bound) throw std::system_error(errno, std::generic_category(), "bind");
    return std::to_string(ntohs(address.sin_port));
}

}  // namespace

std::string tutorial_page(const std::string& name) {
    return read_file(std::filesystem::path(PETACQ_SOURCE_DIR) / "docs" / "tutorials" / (name + ".md"));
}

Outcome follow_tutorial(const std::string& page, const std::filesystem::path& directory) {
    std::filesystem::create_directory_symlink(std::filesystem::path(PETACQ_SOURCE_DIR) / "config",
                                              directory / "config");
    std::string commands = std::regex_replace(blocks_of(page, "sh"), std::regex("9601"), free_port());
    commands = std::regex_replace(commands, std::regex("127.0.0.1:9680"), "127.0.0.1:0");
    const std::string before =
        "exec 2>&1\n"
        "set -ex\n"
        "trap 'kill $(jobs -p) 2> errors.txt || true' EXIT\n"
        "cd" +
        quoted(directory) + "\n";
    write_file(directory / "tutorial.sh", before + commands);
    const std::string programs = std::filesystem::path(PETCAL_PROGRAM).parent_path();
    return run_program("/bin/bash", {(directory / "tutorial.sh").string()},
                       {.environment = {"PATH=" + programs + ":" + std::getenv("PATH"),
                                        "XDG_CACHE_HOME=" + (directory / "cache").string()}});
}

std::vector<std::string> not_printed(const std::string& page, const std::string& printed) {
    std::vector<std::string> missing;
    std::istringstream lines(blocks_of(page, "text"));
    for (std::string line; std::getline(lines, line);) {
        if (line != "..." && !contains("\n" + printed, "\n" + line + "\n")) missing.push_back(line);
    }
    return missing;
}

}  // namespace petacq::test
