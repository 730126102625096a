// Peers that answer as they should not: each is told apart, and none holds up the daemon.
#include "daemon/peer/status_request.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <functional>
#include <future>
#include <istream>
#include <iterator>
#include <string>
#include <thread>

#include "daemon/peer/peer_thread.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::daemon;
using boost::asio::ip::tcp;

namespace {

constexpr const char* good_status = R"({"run":{"id":"mouse-7"},"recording":{"state":"recording"}})";

std::string with_length(const std::string& body) {
    return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

/// Takes one connection, reads a request, and does `answer` with the connection. Says what the request was.
class Server {
  public:
    explicit Server(std::function<void(tcp::socket&)> answer)
        : request_(std::async(std::launch::async, [this, answer = std::move(answer)] {
              tcp::socket socket(io_);
              acceptor_.accept(socket);
              boost::asio::streambuf input;
              boost::asio::read_until(socket, input, "\r\n\r\n");
              answer(socket);
              std::istream stream(&input);
              return std::string(std::istreambuf_iterator<char>(stream), {});
          })) {}
    [[nodiscard]] config::HttpUrl url() const { return {"127.0.0.1", acceptor_.local_endpoint().port()}; }
    std::string request() { return request_.get(); }

  private:
    boost::asio::io_context io_;
    tcp::acceptor acceptor_{io_, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0)};
    std::future<std::string> request_;
};

std::function<void(tcp::socket&)> sending(const std::string& bytes) {
    return [bytes](tcp::socket& socket) {
        boost::system::error_code ignored;
        boost::asio::write(socket, boost::asio::buffer(bytes), ignored);
    };
}

/// Until the client goes away.
void wait_for_end(tcp::socket& socket) {
    char byte = 0;
    boost::system::error_code ended;
    socket.read_some(boost::asio::buffer(&byte, 1), ended);
}

PeerAnswer ask(const config::HttpUrl& url, std::chrono::milliseconds limit = std::chrono::seconds(60)) {
    boost::asio::io_context io;
    return ask_status(io, url, limit, {});
}

}  // namespace

TEST_CASE("a peer is asked for its status by its numeric address") {
    Server server(sending(with_length(good_status)));
    const PeerAnswer answer = ask(server.url());
    CHECK(answer.failure.empty());
    CHECK(answer.run == "mouse-7");
    const std::string request = server.request();
    CHECK(request.starts_with("GET /status HTTP/1.1\r\n"));
    CHECK(request.find("Host: 127.0.0.1:" + std::to_string(server.url().port) + "\r\n") != std::string::npos);
}

TEST_CASE("a peer that does not speak as it should is a failure with its cause") {
    const std::string good = with_length(good_status);
    const auto& [bytes, failure] = GENERATE_COPY(table<std::string, std::string>(
        {{"", "it sends no answer in HTTP: "},
         {"SSH-2.0-OpenSSH\r\n", "it sends no answer in HTTP: "},
         {good.substr(0, good.size() - 1), "it sends no answer in HTTP: "},
         {with_length("<html>"), "its answer is no status of petacqd"},
         {"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "it answers with HTTP status 404"},
         {"HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n",
          "it answers with HTTP status 302"},
         {"HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'x'), "it sends no answer in HTTP: "},
         {"HTTP/1.1 200 OK\r\n\r\n[" + std::string(max_peer_status_bytes, ' '), "its answer is too large"}}));
    Server server(sending(bytes));
    const PeerAnswer answer = ask(server.url());
    INFO(bytes.substr(0, 100));
    INFO(answer.failure);
    CHECK(answer.failure.starts_with(failure));
    CHECK(answer.run.empty());
}

TEST_CASE("a peer that is not there cannot be reached") {
    config::HttpUrl url;
    {
        boost::asio::io_context io;
        const tcp::acceptor nobody(io, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
        url = {"127.0.0.1", nobody.local_endpoint().port()};
    }
    CHECK(ask(url).failure.starts_with("it cannot be reached: "));
}

TEST_CASE("a peer that is silent, or sends without an end, does not answer in time") {
    const bool endless = GENERATE(false, true);
    Server server([endless](tcp::socket& socket) {
        if (!endless) return wait_for_end(socket);
        boost::system::error_code ended;
        boost::asio::write(socket, boost::asio::buffer(std::string("HTTP/1.1 200 OK\r\n\r\n")), ended);
        while (!ended) {
            boost::asio::write(socket, boost::asio::buffer(std::string(" ")), ended);
            std::this_thread::yield();
        }
    });
    CHECK(ask(server.url(), std::chrono::milliseconds(50)).failure == "it gives no answer in time");
    server.request();  // the connection was closed
}

TEST_CASE("an answer that comes too late does not count for the next question") {
    boost::asio::io_context io;
    Server slow(wait_for_end);
    CHECK_FALSE(ask_status(io, slow.url(), std::chrono::milliseconds(10), {}).failure.empty());
    Server quick(sending(with_length(good_status)));
    CHECK(ask_status(io, quick.url(), std::chrono::seconds(60), {}).run == "mouse-7");
}

TEST_CASE("the thread that asks a peer ends while the peer is silent") {
    std::promise<void> asked;
    Server server([&](tcp::socket& socket) {
        asked.set_value();
        wait_for_end(socket);
    });
    bool answered = false;
    {
        const PeerThread thread(server.url(), [&](const PeerAnswer&) { answered = true; });
        asked.get_future().wait();
    }
    CHECK_FALSE(answered);
}
