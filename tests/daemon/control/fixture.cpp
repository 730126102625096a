#include "tests/daemon/control/fixture.hpp"

#include <boost/asio/post.hpp>
#include <stdexcept>
#include <utility>

namespace petacq::test {

using daemon::Reply;
using daemon::StartRequest;
using nlohmann::json;

void FakeHandler::start(StartRequest request, Reply reply) {
    const std::string run = request.run.value_or("unnamed");
    {
        const std::lock_guard lock(mutex_);
        last_start_ = std::move(request);
    }
    if (run == "used") return reply.error(daemon::rpc_refused, "run id 'used' is used already");
    if (run == "throw") throw std::runtime_error("thrown by start");
    if (run == "forget") return;
    if (run == "twice") {
        reply.result({{"run", "first"}});
        reply.result({{"run", "second"}});
        return;
    }
    reply.result({{"run", run}});
}

void FakeHandler::stop(daemon::StopRequest request, Reply reply) {
    const std::lock_guard lock(mutex_);
    last_stop_ = std::move(request);
    waiting_.push_back(std::move(reply));
    ++stops_;
    stop_arrived_.notify_all();
}

std::shared_ptr<const std::string> FakeHandler::status() {
    ++status_calls_;
    const std::lock_guard lock(mutex_);
    if (status_ == "throw") throw std::runtime_error("thrown by status");
    return std::make_shared<const std::string>(daemon::rpc_text(status_));
}

void FakeHandler::runs(daemon::RunsRequest request, Reply reply) {
    const std::lock_guard lock(mutex_);
    json page = json::array();
    for (const json& run : runs_) {
        if (request.before && run.at("run") == *request.before) break;
        page.push_back(run);
    }
    const std::size_t earlier = page.size() > request.limit ? page.size() - request.limit : 0;
    page.erase(page.begin(), page.begin() + static_cast<std::ptrdiff_t>(earlier));
    reply.result({{"data_dir", "/data"}, {"earlier", earlier}, {"runs", page}});
}

void FakeHandler::ledger(std::optional<std::string> run, Reply reply) {
    const std::lock_guard lock(mutex_);
    if (run == "missing") return reply.error(daemon::rpc_refused, "there is no run 'missing' in /data");
    json answer = ledger_;
    if (run) answer["run"] = *run;
    reply.result(answer);
}

void FakeHandler::reload(Reply reply) {
    reply.result({{"changed", json::array()}});
}

void FakeHandler::acknowledge(std::string run, Reply reply) {
    if (run == "complete")
        return reply.error(daemon::rpc_refused,
                           "run 'complete' was not interrupted, or somebody has acknowledged it");
    reply.result({{"run", run}, {"state", "interrupted"}});
}

void FakeHandler::history(daemon::HistoryRequest request, Reply reply) {
    const std::lock_guard lock(mutex_);
    last_history_ = request;
    reply.result(history_);
}

void FakeHandler::set_history(json answer) {
    const std::lock_guard lock(mutex_);
    history_ = std::move(answer);
}

daemon::HistoryRequest FakeHandler::last_history() {
    const std::lock_guard lock(mutex_);
    return last_history_;
}

void FakeHandler::mark(std::string text, Reply reply) {
    if (text == "refused") return reply.error(daemon::rpc_refused, "no run is in progress");
    reply.result({{"run", "r1"}, {"utc", "2026-01-31T12:00:05.000Z"}, {"ticks", 1'000'000}, {"text", text}});
}

void FakeHandler::set_runs(json runs) {
    const std::lock_guard lock(mutex_);
    runs_ = std::move(runs);
}

void FakeHandler::set_ledger(json answer) {
    const std::lock_guard lock(mutex_);
    ledger_ = std::move(answer);
}

Reply FakeHandler::take_stop() {
    std::unique_lock lock(mutex_);
    if (!stop_arrived_.wait_for(lock, patience, [&] { return !waiting_.empty(); })) {
        throw std::runtime_error("no stop request came");
    }
    Reply reply = std::move(waiting_.front());
    waiting_.erase(waiting_.begin());
    return reply;
}

StartRequest FakeHandler::last_start() {
    const std::lock_guard lock(mutex_);
    return last_start_;
}

daemon::StopRequest FakeHandler::last_stop() {
    const std::lock_guard lock(mutex_);
    return last_stop_;
}

void FakeHandler::set_status(json document) {
    const std::lock_guard lock(mutex_);
    status_ = std::move(document);
}

TestServer::TestServer(config::Control options, std::chrono::milliseconds stall_timeout) {
    options.socket = socket();
    server_ = std::make_unique<daemon::ControlServer>(io_, handler, std::move(options), stall_timeout);
    thread_ = std::thread([this] { io_.run(); });
}

void TestServer::open_directory() const {
    std::filesystem::permissions(directory_.path(), std::filesystem::perms(0755));
}

void TestServer::close() {
    if (!thread_.joinable()) return;
    boost::asio::post(io_, [this] { server_->close(); });
    thread_.join();
}

void TestServer::tell_subscribers() {
    boost::asio::post(io_, [this] { server_->tell_subscribers(); });
}

json ask(daemon::ControlClient& client, std::string_view line) {
    client.send_bytes(std::string(line) + "\n");
    const auto answer = client.read_line();
    if (!answer) throw std::runtime_error("no answer to " + std::string(line.substr(0, 200)));
    return json::parse(*answer);
}

}  // namespace petacq::test
