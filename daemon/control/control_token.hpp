// The token that a client needs to start and stop runs over HTTP.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

namespace petacq::daemon {

/// Names the file, but never what is in it.
class ControlTokenError : public std::runtime_error {
  public:
    ControlTokenError(const std::string& what, const std::string& to_do)
        : std::runtime_error("http.control_token_file: " + what + "; " + to_do), text(what), fix(to_do) {}

    std::string text;
    std::string fix;  ///< a command for a shell, or what to change
};

/// Reads the token of http.control_token_file: 16 to 256 printable ASCII characters on one line. Throws
/// ControlTokenError if it cannot be read, others than the owner and the group can read it, the group can
/// write it, or there is no such token in it.
std::string read_control_token(const std::filesystem::path& file);

/// Whether an Authorization header is "Bearer TOKEN". The time it takes does not depend on where they differ.
/// False for an empty token.
bool is_authorised(std::string_view authorization, std::string_view token);

}  // namespace petacq::daemon
