// Requests over HTTP: a session of the server on one end of a pair of sockets, the input from the other end.
#include <fcntl.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include "daemon/http/session.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace petacq;
using fuzz::require;

namespace {

daemon::HttpControl control() {
    return {[](const daemon::StartRequest&, const daemon::Reply& reply) {
                reply.result({{"run", "r"}});
            },
            [](const daemon::Reply& reply) { reply.error(daemon::rpc_refused, "no run"); }};
}

/// Reads what there is.
void drain(int client) {
    static std::array<char, 65536> waste;
    while (::recv(client, waste.data(), waste.size(), MSG_DONTWAIT) > 0) {
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static boost::asio::io_context io;
    static const auto context = [] {
        const config::Geometry ring{2, {1, 1, 1}, {1, 1, 1}, {1, 3, 2}, 2, 1, 8};
        auto made = std::make_shared<daemon::HttpContext>(io, daemon::HttpOptions{}, ring, control(),
                                                          daemon::SpectraSource{}, daemon::QuickLookSource{});
        made->content.publish(daemon::Publication());
        return made;
    }();
    size = std::min<std::size_t>(size, 65536);  // fits the buffer of the socket
    std::array<int, 2> ends{};
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0, "a pair of sockets");
    require(::send(ends[0], data, size, MSG_DONTWAIT) == static_cast<ssize_t>(size), "room for a request");
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
    return 0;
}
