// The file of the token for HTTP, and the header with which a client shows it.
// Input: the file up to its first NUL, then the header.
#include "daemon/control/control_token.hpp"

#include <sys/stat.h>

#include "tests/fuzz/base/fuzz.hpp"

using namespace petacq;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const fuzz::ScratchDirectory scratch;
    const auto [text, bytes] = fuzz::text_and_rest(data, size);
    const std::filesystem::path file = scratch.write("token", {data, text.size()});
    require(::chmod(file.c_str(), 0600) == 0, "a file of the owner");
    try {
        const std::string token = daemon::read_control_token(file);
        fuzz::accept();
        require(token.size() >= 16 && token.size() <= 256 && text.starts_with(token),
                "16 to 256 characters of the file");
        for (const char c : token)
            require(c > ' ' && c <= '~', "printable ASCII");
        const std::string header(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        require(daemon::is_authorised("Bearer " + token, token), "the token opens");
        require(!daemon::is_authorised(token, token) &&
                    !daemon::is_authorised("Bearer " + token + "x", token) &&
                    !daemon::is_authorised("Bearer " + token.substr(1), token) &&
                    !daemon::is_authorised("Bearer ", token),
                "nothing else opens");
        require(!daemon::is_authorised(header, token) ||
                    (header.size() == 7 + token.size() && header.ends_with(token)),
                "whatever a client sends");
        require(!daemon::is_authorised(header, ""), "nor an empty token");
    } catch (const daemon::ControlTokenError& error) {
        require(fuzz::says_what_was_expected(error.what()), "an error says what was expected");
        // A message of another token has the same words, and the same name of the file.
        static const std::string same = [&] {
            (void)scratch.write("token", {});
            try {
                return daemon::read_control_token(file);
            } catch (const daemon::ControlTokenError& empty) {
                return std::string(empty.what());
            }
        }();
        const std::string_view what = error.what();
        require(text.size() < 16 || what.find(text) == std::string_view::npos ||
                    same.find(text) != std::string::npos,
                "an error does not show what is in the file");
    }
    return 0;
}
