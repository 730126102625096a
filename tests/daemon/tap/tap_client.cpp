#include "tests/daemon/tap/tap_client.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <stdexcept>

#include "tests/support/eventually.hpp"

namespace petacq::test {

namespace {

template <class Number>
Number number_at(const std::array<char, 64>& header, std::size_t offset) {
    Number number = 0;
    std::memcpy(&number, header.data() + offset, sizeof number);
    return number;
}

}  // namespace

TapClientForTest::TapClientForTest(const std::filesystem::path& socket)
    : descriptor_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, socket.c_str(), socket.native().size());
    if (::connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        throw std::runtime_error("no tap at " + socket.string());
    const timeval limit{patience.count(), 0};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

TapClientForTest::~TapClientForTest() {
    ::close(descriptor_);
}

void TapClientForTest::send(const std::string& bytes) const {
    static_cast<void>(::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL));
}

void TapClientForTest::finish_sending() const {
    ::shutdown(descriptor_, SHUT_WR);
}

nlohmann::json TapClientForTest::ask(const nlohmann::json& request) {
    send(request.dump() + '\n');
    return answer();
}

nlohmann::json TapClientForTest::answer() {
    std::string line;
    for (char c = 0; read(&c, 1) == 1;) {
        if (c == '\n') return nlohmann::json::parse(line);
        line += c;
    }
    throw std::runtime_error("no answer, only: " + line);
}

std::optional<TapMessageRead> TapClientForTest::next() {
    std::array<char, 64> header{};
    const std::size_t got = read(header.data(), header.size());
    if (got == 0) return std::nullopt;
    if (got < header.size() || std::memcmp(header.data(), "PETACQTP", 8) != 0)
        throw std::runtime_error("not a message of the tap");
    TapMessageRead message;
    message.type = number_at<std::uint32_t>(header, 8);
    message.payload.resize(number_at<std::uint32_t>(header, 12));
    message.run = number_at<std::uint64_t>(header, 16);
    message.first_record = number_at<std::uint64_t>(header, 24);
    message.records = number_at<std::uint64_t>(header, 32);
    message.first_time = number_at<std::uint64_t>(header, 40);
    message.last_time = number_at<std::uint64_t>(header, 48);
    message.dropped = number_at<std::uint64_t>(header, 56);
    if (read(message.payload.data(), message.payload.size()) < message.payload.size())
        throw std::runtime_error("the tap ends within a message");
    return message;
}

std::string TapClientForTest::records_of_run() {
    std::string all;
    for (auto message = next(); message && message->type != 3; message = next()) {
        if (message->type == 2) all += message->payload;
    }
    return all;
}

bool TapClientForTest::at_end() {
    char c = 0;
    return read(&c, 1) == 0;
}

std::size_t TapClientForTest::read(char* to, std::size_t bytes) const {
    std::size_t have = 0;
    while (have < bytes) {
        const ssize_t got = ::recv(descriptor_, to + have, bytes - have, 0);
        if (got == 0 || (got < 0 && errno == ECONNRESET)) break;
        if (got < 0) throw std::runtime_error("the tap sends nothing");
        have += static_cast<std::size_t>(got);
    }
    return have;
}

}  // namespace petacq::test
