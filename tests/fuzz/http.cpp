// Requests over HTTP: a session of the server on one end of a pair of sockets, the input from the other end.
// The last two bits of the first byte say whether the request gets the token that start and stop need, or a
// wrong one.
#include <fcntl.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "daemon/http/session.hpp"
#include "tests/fuzz/base/fuzz.hpp"

using namespace petacq;
using fuzz::require;

namespace {

const std::string token(16, 't');
const std::string wrong_token = token.substr(1) + 'u';
int starts_and_stops = 0;

daemon::HttpControl control() {
    return {[](const daemon::StartRequest&, const daemon::Reply& reply) {
                ++starts_and_stops;
                fuzz::accept();
                reply.result({{"run", "r"}});
            },
            [](const daemon::StopRequest&, const daemon::Reply& reply) {
                ++starts_and_stops;
                reply.error(daemon::rpc_refused, "no run");
            }};
}

/// Reads what there is.
void drain(int client) {
    static std::array<char, 65536> waste;
    while (::recv(client, waste.data(), waste.size(), MSG_DONTWAIT) > 0) {
    }
}

daemon::HttpOptions options() {
    daemon::HttpOptions o;
    o.control_token = token;
    return o;
}

/// Behind the first line.
std::string with_token(std::string request, const std::string& shown = token) {
    const std::size_t end = request.find("\r\n");
    if (end != std::string::npos) request.insert(end, "\r\nAuthorization: Bearer " + shown);
    return request;
}

void serve(const std::string& request) {
    static boost::asio::io_context io;
    static const auto context = [] {
        config::Scanner ring;
        ring.geometry = {2, {1, 1, 1}, {1, 1, 1}, {1, 3, 2}, 2, 1, 8};
        auto made = std::make_shared<daemon::HttpContext>(io, options(), ring, control(),
                                                          daemon::SpectraSource{}, daemon::QuickLookSource{});
        made->resources.publish(daemon::Publication());
        return made;
    }();
    std::array<int, 2> ends{};
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0, "a pair of sockets");
    require(
        ::send(ends[0], request.data(), request.size(), MSG_DONTWAIT) == static_cast<ssize_t>(request.size()),
        "room for a request");
    ::shutdown(ends[0], SHUT_WR);
    boost::asio::ip::tcp::socket socket(io);
    socket.assign(boost::asio::ip::tcp::v4(), ends[1]);
    std::make_shared<daemon::HttpSession>(std::move(socket), context)->start();
    io.restart();
    for (int turn = 0; !context->sessions.empty(); ++turn) {
        require(turn < 10000, "a session ends when its client is gone");
        io.poll();
        drain(ends[0]);
    }
    ::close(ends[0]);
    io.poll();
}

/// Otherwise no input would reach what is behind the refusal.
bool token_opens() {
    serve(with_token("POST /control/start HTTP/1.0\r\nContent-Type: application/json\r\n\r\n"));
    require(starts_and_stops == 1, "the token allows to start");
    return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const bool checked = token_opens();
    static_cast<void>(checked);
    if (size == 0) return 0;
    size = std::min<std::size_t>(size, 65536);  // fits the buffer of the socket
    const std::string request(reinterpret_cast<const char*>(data) + 1, size - 1);
    if ((data[0] & 1) != 0) {
        serve(with_token(request));
        return 0;
    }
    const int before = starts_and_stops;
    serve((data[0] & 2) != 0 ? with_token(request, wrong_token) : request);
    require(starts_and_stops == before || request.find(token) != std::string::npos,
            "nobody starts or stops without the token");
    return 0;
}
