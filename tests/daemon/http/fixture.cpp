#include "tests/daemon/http/fixture.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <stdexcept>
#include <thread>

#include "config/energy_bins.hpp"
#include "daemon/run/ledger.hpp"
#include "tests/support/eventually.hpp"

namespace petacq::test {

using nlohmann::json;

HttpClient::HttpClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval time_limit{60, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &time_limit, sizeof time_limit);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &time_limit, sizeof time_limit);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(port);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
        ::close(fd_);
        throw std::runtime_error("not accepted");
    }
}

HttpClient::~HttpClient() {
    ::close(fd_);
}

bool HttpClient::send(const std::string& bytes) {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
        const ssize_t n = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
        if (n <= 0) return false;
        sent += static_cast<std::size_t>(n);
    }
    return true;
}

void HttpClient::half_close() {
    ::shutdown(fd_, SHUT_WR);
}

bool HttpClient::more() {
    std::array<char, 65536> chunk{};
    const ssize_t n = ::recv(fd_, chunk.data(), chunk.size(), 0);
    if (n <= 0) return false;
    input_.append(chunk.data(), static_cast<std::size_t>(n));
    return true;
}

bool HttpClient::closed() {
    return input_.empty() && !more();
}

HttpAnswer HttpClient::answer(bool to_head) {
    std::size_t end = 0;
    while ((end = input_.find("\r\n\r\n")) == std::string::npos) {
        if (!more()) return {};
    }
    HttpAnswer answer;
    std::size_t line_end = input_.find("\r\n");
    const std::string first = input_.substr(0, line_end);
    if (first.size() < 13 || first.substr(0, 7) != "HTTP/1.") return {};
    answer.status = std::stoi(first.substr(9, 3));
    answer.reason = first.substr(13);
    while (line_end < end) {
        const std::size_t begin = line_end + 2;
        line_end = input_.find("\r\n", begin);
        const std::string line = input_.substr(begin, line_end - begin);
        const std::size_t colon = line.find(':');
        std::string name = line.substr(0, colon);
        std::transform(name.begin(), name.end(), name.begin(),
                       [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        answer.headers[name] = line.substr(std::min(line.size(), colon + 2));
    }
    input_.erase(0, end + 4);
    if (to_head) return answer;
    const std::size_t size = std::stoul(answer.headers.at("content-length"));
    while (input_.size() < size) {
        if (!more()) return {};
    }
    answer.body = input_.substr(0, size);
    input_.erase(0, size);
    return answer;
}

HttpAnswer http(std::uint16_t port, const std::string& method, const std::string& target,
                const std::map<std::string, std::string>& headers, const std::string& body) {
    HttpClient client(port);
    std::string request = method + ' ' + target + " HTTP/1.1\r\n";
    if (headers.count("Host") == 0) request += "Host: localhost\r\n";
    for (const auto& [name, value] : headers)
        request += name + ": " + value + "\r\n";
    if (!body.empty()) request += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    client.send(request + "\r\n" + body);
    return client.answer(method == "HEAD");
}

HttpAnswer http_get(std::uint16_t port, const std::string& target) {
    return http(port, "GET", target);
}

nlohmann::json http_document(std::uint16_t port, const std::string& target) {
    return nlohmann::json::parse(http_get(port, target).body);
}

config::Scanner small_ring() {
    config::Scanner scanner;
    scanner.name = "small";
    scanner.tick_ps = 10;
    scanner.dimensions.ring_radius_mm = 10;
    scanner.dimensions.crystal_pitch_y_mm = 2;
    scanner.dimensions.crystal_pitch_z_mm = 2;
    scanner.dimensions.crystal_length_mm = 5;
    config::Geometry& g = scanner.geometry;
    g.channels = 2;
    g.crystals = {1, 3, 2};
    g.bdm_count = 2;
    g.du_count = 1;
    g.position_size = 8;
    return scanner;
}

std::shared_ptr<const gpu::SinglesHistograms> ring_histograms(std::uint64_t n) {
    auto h = std::make_shared<gpu::SinglesHistograms>();
    for (std::uint64_t crystal = 0; crystal < 12; ++crystal)
        h->per_crystal.push_back(crystal == 5 ? 0 : n * (crystal + 1));
    h->energy.resize(2 * std::size_t{config::energy_bins});
    h->energy[127] = 10 * n;
    h->energy[config::energy_bins + 128] = 20 * n;
    h->temperature_sum_16ths.resize(2);
    h->temperature_count.resize(2);
    return h;
}

json full_status(std::uint64_t n) {
    const auto x = static_cast<double>(n);
    json rates = {{"interval_s", 1.0},
                  {"bytes_per_s", 1.5e6 * x},
                  {"datagrams_per_s", 1000.25 * x},
                  {"frames_per_s", 90000.5 * x},
                  {"singles_per_s", 45678.5 * x},
                  {"singles_raw_per_s", 80000.0 * x},
                  {"prompts_per_s", 1234.5 * x},
                  {"delayeds_per_s", 234.25 * x},
                  {"net_trues_per_s", 1000.25 * x},
                  {"triples_per_s", 45.5 * x},
                  {"delayed_triples_per_s", 4.25 * x},
                  {"randoms_fraction", 0.18975},
                  {"multiples_per_s", 12.0 * x},
                  {"expected_randoms_per_s", nullptr},
                  {"expected_randoms_uncertain", nullptr},
                  {"necr_per_s", 543.0 * x},
                  {"necr_scatter_fraction", 0.2},
                  {"necr_scatter_fraction_from", "mouse phantom, May"},
                  {"lost_fraction", 0.00125},
                  {"busy_fraction", 0.25},
                  {"necr_subtracted_per_s", 400.0 * x},
                  {"randoms_from_delayeds_per_s", 230.0 * x}};
    json status = {{"version", "1.2.3"},
                   {"state", "running"},
                   {"uptime_s", 100.0 + x},
                   {"backend", "cpu, 4 threads"},
                   {"backend_choice", "asked for"},
                   {"scanner", "tiny \"ring\""},
                   {"common",
                    {{"lower_keV", 425.0},
                     {"upper_keV", 650.0},
                     {"gammas_lower_keV", 700.0},
                     {"gammas_upper_keV", 1200.0}}},
                   {"run",
                    {{"id", "mouse-7"},
                     {"start_utc", "2026-01-31T12:00:00.000Z"},
                     {"note", "<b>a & b</b>"},
                     {"operator",
                      {{"nuclide", "F-18"},
                       {"activity_at_start_MBq", 36.5},
                       {"subject", "mouse <7>"},
                       {"keys", {{"tracer", "FDG"}, {"fasted", "yes"}}}}},
                     {"duration_s", 600},
                     {"marks", {{"count", 0}, {"latest", json::array()}}},
                     {"capture",
                      {{"datagrams_offered", 1000 * n},
                       {"datagrams_written", 950 * n},
                       {"datagrams_dropped", 40 * n},
                       {"bytes", 1'400'000 * n},
                       {"failure", nullptr}}}}},
                   {"recording",
                    {{"state", "recording"},
                     {"word", "RECORDING"},
                     {"text", "run mouse-7: 1 min 05 s of 10 min 00 s, 1.2 k prompts, 16.8 kB"},
                     {"run_id", "mouse-7"},
                     {"note", "<b>a & b</b>"},
                     {"elapsed_s", 65.0},
                     {"requested_s", 600.0},
                     {"prompts", 1200 * n},
                     {"bytes", 16'800 * n},
                     {"disk_time_left_s", 7812500.0},
                     {"since_utc", nullptr},
                     {"command", nullptr}}},
                   {"interrupted", {{"count", 0}, {"runs", json::array()}}},
                   {"second",
                    {{"start_ticks", 1000},
                     {"length_s", 1.0},
                     {"window_load", 0.05},
                     {"pile_up_factor", 1.1},
                     {"delayeds_weight", 1.02},
                     {"mean_abs_dt_ns", 0.3}}},
                   {"watermark_s", 99.5}};
    status["health"] = {
        {"state", "degraded"},
        {"reasons", json::array({{{"code", "source_silent"},
                                  {"message", "source 3 is silent for 2.1 s: check its power and cable"},
                                  {"severity", "degraded"},
                                  {"since_s", 12.0}}})}};
    status["average"] = rates;
    status["average"]["interval_s"] = 60.0;
    status["rates"] = rates;
    status["total"] = {{"closed", true},
                       {"datagrams",
                        {{"received", 1000 * n},
                         {"accepted", 990 * n},
                         {"duplicate", n},
                         {"malformed", 2 * n},
                         {"unknown_source", 3 * n},
                         {"too_many_sources", 0},
                         {"dropped_no_buffer", 4 * n},
                         {"lost", 7},
                         {"dropped_kernel", 5 * n},
                         {"discarded_backlog", 6 * n},
                         {"reordered", n},
                         {"stray", 0},
                         {"restarted", 1}}},
                       {"frames",
                        {{"received", 9'007'199'254'740'993U + n},
                         {"accepted", 45000 * n},
                         {"bad_marker", n},
                         {"bad_address", 0},
                         {"outside_crystal", 5 * n},
                         {"time_jump", 0},
                         {"bad_time", 0},
                         {"late", 6 * n},
                         {"below_window", 7 * n},
                         {"above_window", 8 * n}}},
                       {"singles",
                        {{"decided", 40000 * n},
                         {"prompts", 1200 * n},
                         {"delayeds", 200 * n},
                         {"unpaired", 30000 * n},
                         {"same_crystal", 0},
                         {"geometry", 5 * n},
                         {"in_dropped_multiples", 6 * n},
                         {"in_oversize_multiples", 0},
                         {"unused_in_multiples", 0}}},
                       {"pairs", {{"written", 1400 * n}, {"write_failed", 0}, {"in_queue", 3}}}};
    for (const daemon::LedgerCounter& counter : daemon::ledger_counters())
        status["total"][counter.section].emplace(counter.name, n);
    status["ledger"] = status["total"];
    status["tags"] =
        json::array({{{"channel", 0}, {"kind", 1}, {"source", 2}, {"time_s", 99.25}, {"value", 1}},
                     {{"channel", 3}, {"kind", 2}, {"source", 2}, {"time_s", 98.5}, {"value", -1500}}});
    status["sources"] = json::array();
    for (int id = 0; id < 4; ++id) {
        status["sources"].push_back({{"id", id},
                                     {"address", "127.0.0.1:" + std::to_string(5000 + id)},
                                     {"state", id == 3 ? "silent" : "active"},
                                     {"datagrams", 250 * n},
                                     {"frames", 22500 * n},
                                     {"lost", id},
                                     {"duplicate", 0},
                                     {"reordered", 0},
                                     {"skew_us", -1.5},
                                     {"last_seen_s", 0.01},
                                     {"datagrams_per_s", 250.0},
                                     {"frames_per_s", 22500.0},
                                     {"lost_per_s", 0.0},
                                     {"lost_fraction", 0.0},
                                     {"health", id == 3 ? "degraded" : "ok"},
                                     {"reason", id == 3 ? json("silent for 2.1 s") : json()}});
    }
    status["modules"] = json::array({{{"bdm", 0},
                                      {"singles_per_s", 600.5},
                                      {"mean_keV", 480.25},
                                      {"peak_keV", 510.0},
                                      {"photopeak_keV", 505.5},
                                      {"mean_dt_ns", -0.125},
                                      {"prompts_per_single", 0.25},
                                      {"temperature_C", 31.5},
                                      {"health", "ok"},
                                      {"dead_time_fraction", nullptr}},
                                     {{"bdm", 1},
                                      {"singles_per_s", nullptr},
                                      {"mean_keV", nullptr},
                                      {"peak_keV", nullptr},
                                      {"photopeak_keV", nullptr},
                                      {"mean_dt_ns", nullptr},
                                      {"prompts_per_single", nullptr},
                                      {"temperature_C", nullptr},
                                      {"health", "ok"},
                                      {"dead_time_fraction", 0.001}}});
    status["queues"] = {{"free_batches", 60},
                        {"free_batches_low_water", 41},
                        {"batches", 64},
                        {"pending_singles", 1234},
                        {"pending_singles_high_water", 5678},
                        {"given_up_slices", 9},
                        {"writer_blocks", 2},
                        {"writer_high_water", 7},
                        {"writer_stalls", n},
                        {"seconds_waiting", n},
                        {"seconds_stalls", n},
                        {"capture_batches", 3},
                        {"capture_high_water", 9},
                        {"log_overrun", 0},
                        {"log_unwritten", n}};
    status["memory"] = {
        {"batch_pool_bytes", 134217728}, {"pipeline_bytes", 1000000}, {"block_buffer_bytes", 67108864}};
    status["latency"] = {{"samples", 1000 * n}, {"p50_ms", 12.5}, {"p99_ms", 31.0}, {"max_ms", 40.25}};
    status["disk"] = {{"path", "/data"},
                      {"free_bytes", 512'000'000'000U},
                      {"total_bytes", 1'000'000'000'000U},
                      {"write_bytes_per_s", 65536.0},
                      {"time_left_s", 7812500.0}};
    status["dead_time"] = {{"model", "non-paralysable"}, {"dead_time_ns", 200}, {"fraction", 0.0091}};
    status["stages"] = json::array({{{"name", "receiver 0"}, {"utilisation", 0.125}, {"state", "busy"}},
                                    {{"name", "writer"}, {"utilisation", 0.5}, {"state", "stalled"}}});
    return status;
}

bool shows_uptime(std::uint16_t port, double uptime_s) {
    return eventually([&] {
        const json status = json::parse(http_get(port, "/status").body, nullptr, false);
        return status.is_object() && status["uptime_s"] == uptime_s;
    });
}

}  // namespace petacq::test
