// petbench status-load: the cost of many status subscribers for the receive path of a real petacqd.
//
// A sender runs at a fixed rate, in turns without and with the subscribers. One of them never reads, and a
// few HTTP clients ask ten times a second. The reproducible figure is the CPU time that the receiving thread
// spends on a million datagrams; the loss is what an operator would see.
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>

#include "config/make_calibration.hpp"
#include "config/scanner/scanner.hpp"
#include "daemon/control/client.hpp"
#include "net/sender.hpp"
#include "net/wire.hpp"
#include "tools/petbench/base/daemon_process.hpp"
#include "tools/petbench/base/frames.hpp"
#include "tools/petbench/base/measure.hpp"
#include "tools/petbench/base/process_figures.hpp"
#include "tools/petbench/base/scratch_directory.hpp"
#include "tools/petbench/base/suites.hpp"

namespace petacq::bench {

namespace {

using daemon::ControlClient;
using nlohmann::json;
namespace fs = std::filesystem;

/// The configuration of the daemon, in the directory. Writes its calibration there.
json configuration(const std::string& scanner_file, const fs::path& directory) {
    const config::Scanner scanner = config::load_scanner(scanner_file);
    config::CalibrationModel model;
    model.bins = 16;
    config::save_calibration(directory / "c.h5", scanner.geometry, config::make_calibration(scanner, model));
    return {{"scanner", fs::absolute(scanner_file).string()},
            {"calibration", "c.h5"},
            {"data_dir", "."},
            {"receive", {{"sockets", {{{"address", "127.0.0.1"}, {"port", 0}}}}, {"lock_memory", false}}},
            {"sources", {{"accept_any", true}}},
            {"coincidence", {{"window_ticks", 320}}},
            {"pipeline", {{"backend", "cpu"}}},
            {"control", {{"max_clients", 4096}}},
            {"http", {{"listen", "127.0.0.1:0"}}}};
}

/// CPU time of the receive thread.
double receive_cpu_seconds(const DaemonProcess& daemon) {
    for (const ThreadTime& thread : thread_times(daemon.pid())) {
        if (thread.name == "receive") return thread.seconds;
    }
    throw std::runtime_error("petacqd has no thread named receive");
}

/// Subscribers whose notifications are read and discarded. The first never reads, and asks for more than fits
/// into the buffers between it and the daemon.
class Crowd {
  public:
    Crowd(const DaemonProcess& daemon, const StatusLoadSuite& options) {
        for (unsigned i = 0; i < options.subscribers; ++i) {
            clients_.push_back(std::make_unique<ControlClient>(daemon.socket()));
            clients_.back()->send_bytes(
                R"({"jsonrpc":"2.0","id":1,"method":"subscribe","params":{"interval_s":)" +
                std::to_string(options.interval_s) + "}}\n");
        }
        std::string many;
        for (int i = 0; i < 500; ++i)
            many += "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"}\n";
        clients_.front()->send_bytes(many);
        threads_.emplace_back([this] { read_all(); });
        for (unsigned i = 0; i < options.http_clients; ++i)
            threads_.emplace_back([this, port = daemon.http_port()] { ask(port); });
    }
    ~Crowd() { finish(); }
    Crowd(const Crowd&) = delete;
    Crowd& operator=(const Crowd&) = delete;

    void finish() {
        stop_.store(true, std::memory_order_relaxed);
        for (std::thread& thread : threads_)
            thread.join();
        threads_.clear();
    }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t answers() const { return answers_.load(std::memory_order_relaxed); }

  private:
    void read_all() {
        std::vector<pollfd> sockets;
        for (std::size_t i = 1; i < clients_.size(); ++i)
            sockets.push_back({clients_[i]->descriptor(), POLLIN, 0});
        std::vector<char> waste(1 << 16);
        while (!stop_.load(std::memory_order_relaxed)) {
            if (::poll(sockets.data(), sockets.size(), 20) <= 0) continue;
            for (const pollfd& socket : sockets) {
                if (socket.revents == 0) continue;
                const ssize_t n = ::recv(socket.fd, waste.data(), waste.size(), MSG_DONTWAIT);
                if (n > 0) bytes_.fetch_add(static_cast<std::uint64_t>(n), std::memory_order_relaxed);
            }
        }
    }

    /// Asks for /metrics ten times a second.
    void ask(std::uint16_t port) {
        const std::string request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
        const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        to.sin_port = htons(port);
        std::vector<char> waste(1 << 16);
        if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) {
            while (!stop_.load(std::memory_order_relaxed)) {
                if (::send(fd, request.data(), request.size(), MSG_NOSIGNAL) <= 0) break;
                pollfd readable{fd, POLLIN, 0};
                while (::poll(&readable, 1, 100) > 0) {
                    const ssize_t n = ::recv(fd, waste.data(), waste.size(), 0);
                    if (n <= 0) break;
                    bytes_.fetch_add(static_cast<std::uint64_t>(n), std::memory_order_relaxed);
                }
                answers_.fetch_add(1, std::memory_order_relaxed);
            }
        }
        ::close(fd);
    }

    std::vector<std::unique_ptr<ControlClient>> clients_;
    std::atomic<bool> stop_{false};
    std::atomic<std::uint64_t> bytes_{0};
    std::atomic<std::uint64_t> answers_{0};
    std::vector<std::thread> threads_;
};

/// Sends datagrams of valid frames at a fixed rate, with rising sequence numbers.
class PacedLoad {
  public:
    PacedLoad(std::uint16_t port, const std::string& scanner_file, double rate)
        : sender_({"127.0.0.1", port, false}), rate_(rate) {
        StreamOptions options;
        options.frames = std::size_t{count} * options.frames_per_datagram;
        stream_ = make_stream(config::load_scanner(scanner_file), options);
        const std::size_t payload =
            net::header_bytes + std::size_t{options.frames_per_datagram} * net::frame_bytes;
        bytes_.resize(count * payload);
        for (std::size_t i = 0; i < count; ++i) {
            std::byte* datagram = bytes_.data() + i * payload;
            std::copy_n(stream_.bytes.data() + i * (payload - net::header_bytes), payload - net::header_bytes,
                        datagram + net::header_bytes);
            payloads_.emplace_back(datagram, payload);
        }
    }

    /// Sends for `seconds`. Returns the number of datagrams sent.
    std::uint64_t run(double seconds) {
        const std::uint64_t before = sender_.datagrams_sent();
        const auto start = std::chrono::steady_clock::now();
        constexpr double step_s = 1e-3;
        const auto steps = static_cast<std::uint64_t>(seconds / step_s);
        const auto each = static_cast<std::size_t>(rate_ * step_s);
        for (std::uint64_t step = 0; step < steps; ++step) {
            for (std::size_t i = 0; i < each; ++i) {
                const auto place = static_cast<std::size_t>(sequence_ % count);
                net::encode_header({0, 1, sequence_++}, const_cast<std::byte*>(payloads_[place].data()),
                                   net::FrameVersion::one);
                sender_.send(std::span(payloads_).subspan(place, 1));
            }
            std::this_thread::sleep_until(
                start + std::chrono::duration<double>(static_cast<double>(step + 1) * step_s));
        }
        return sender_.datagrams_sent() - before;
    }

  private:
    static constexpr std::size_t count = 1024;
    net::Sender sender_;
    double rate_;
    std::uint64_t sequence_ = 0;
    Stream stream_;
    std::vector<std::byte> bytes_;
    std::vector<std::span<const std::byte>> payloads_;
};

struct LoadFigures {
    std::vector<double> cpu;   // seconds per million datagrams
    std::vector<double> loss;  // fraction
};

void measure(DaemonProcess& daemon, PacedLoad& load, double seconds, LoadFigures& figures) {
    const double cpu = receive_cpu_seconds(daemon);
    const auto received = [&] {
        return daemon.call("status")["total"]["datagrams"]["received"].get<double>();
    };
    const double before = received();
    const auto sent = static_cast<double>(load.run(seconds));
    double now = received();
    for (int tries = 0; now - before < sent && tries < 200; ++tries) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        now = received();
    }
    figures.cpu.push_back((receive_cpu_seconds(daemon) - cpu) / (now - before) * 1e6);
    figures.loss.push_back(1 - (now - before) / sent);
}

void print(const char* name, const LoadFigures& f) {
    const auto [least, most] = std::minmax_element(f.cpu.begin(), f.cpu.end());
    std::printf("  %-20s %7.3f CPU s per M datagrams (%.3f to %.3f)   %9.6f %% lost, at most %9.6f %%\n",
                name, median(f.cpu), *least, *most, 100 * median(f.loss),
                100 * *std::max_element(f.loss.begin(), f.loss.end()));
}

}  // namespace

void run(const StatusLoadSuite& options) {
    const ScratchDirectory scratch(fs::temp_directory_path(), "status-load");
    DaemonProcess daemon(configuration(options.scanner, scratch.path()), scratch.path(), petacqd_beside());
    PacedLoad load(daemon.ports().front(), options.scanner, options.rate);
    std::printf(
        "status-load: %u subscribers every %g s, one of which never reads, %u HTTP clients at 10/s; %.0f "
        "datagrams/s, "
        "medians of %u x %g s in turns\n",
        options.subscribers, options.interval_s, options.http_clients, options.rate, options.repetitions,
        options.seconds);
    LoadFigures without;
    LoadFigures with;
    LoadFigures warm;
    measure(daemon, load, 1, warm);
    std::uint64_t bytes = 0;
    std::uint64_t answers = 0;
    for (unsigned i = 0; i < options.repetitions; ++i) {
        measure(daemon, load, options.seconds, without);
        Crowd crowd(daemon, options);
        measure(daemon, load, options.seconds, with);
        crowd.finish();
        bytes += crowd.bytes();
        answers += crowd.answers();
    }
    print("without subscribers", without);
    print("with subscribers", with);
    std::printf(
        "  with/without: CPU per datagram %.3f (%llu bytes and %llu answers over HTTP read by the "
        "subscribers)\n",
        median_ratio(with.cpu, without.cpu), static_cast<unsigned long long>(bytes),
        static_cast<unsigned long long>(answers));
}

}  // namespace petacq::bench
