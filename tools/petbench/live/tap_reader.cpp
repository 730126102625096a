#include "tools/petbench/live/tap_reader.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace petacq::bench {

TapReader::TapReader(const std::filesystem::path& socket, std::uint64_t prescale)
    : descriptor_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::string name = socket.string();
    name.resize(sizeof address.sun_path - 1);  // petacqd listens there: it fits
    std::memcpy(address.sun_path, name.data(), name.size());
    const std::string request = R"({"kind": "coincidences", "prescale": )" + std::to_string(prescale) + "}\n";
    if (::connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::send(descriptor_, request.data(), request.size(), MSG_NOSIGNAL) < 0) {
        const int error = errno;
        ::close(descriptor_);
        throw std::runtime_error("tap " + socket.string() + ": " + std::generic_category().message(error));
    }
    thread_ = std::thread([this] {
        std::vector<char> buffer(1U << 20);
        while (::recv(descriptor_, buffer.data(), buffer.size(), 0) > 0) {
        }
    });
}

TapReader::~TapReader() {
    ::shutdown(descriptor_, SHUT_RDWR);
    thread_.join();
    ::close(descriptor_);
}

}  // namespace petacq::bench
