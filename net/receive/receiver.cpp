// The receive thread, in the order of its stages: wait() until the socket is readable; drain() it into
// batches (intake.hpp has the rest of the path), and wait for a batch if none is free. Beside that, look()
// does so in any case at an interval, so that the lane's clock advances while nothing arrives, and poll()
// reads the drop count of the kernel.
#include "net/receive/receiver.hpp"

#include <ctime>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "net/base/thread.hpp"
#include "net/receive/intake.hpp"
#include "net/receive/udp_socket.hpp"

namespace petacq::net {

namespace asio = boost::asio;

namespace {

constexpr auto poll_interval = std::chrono::milliseconds(250);
// While datagrams keep arriving, the thread sleeps for this long between two rounds of reading, because a
// wake-up for each datagram costs more than taking it. After this many rounds of this many calls the timers
// and stop() get their turn.
constexpr auto gather_interval = std::chrono::microseconds(100);
constexpr int max_rounds = 8;
constexpr int max_calls = 32;
// How long the receiver waits for a free batch before the timers and stop() get their turn.
constexpr auto batch_wait = std::chrono::milliseconds(5);
// How long a stop waits for a batch to come back before it gives up.
constexpr auto stop_wait = std::chrono::milliseconds(100);

// Polls between two looks at the interfaces.
constexpr unsigned polls_of_groups = 4;

}  // namespace

struct Receiver::Impl {
    Impl(ReceiverOptions o, BatchPool& pool, BatchLane& output, OverloadGate* gate)
        : options(std::move(o)),
          socket(io, options),
          intake(socket.socket.native_handle(), socket.local(), options, pool, output, counters, gate),
          lane(output),
          look_timer(io),
          poll_timer(io) {}

    // The functions from here to stop_receiving() run in the receive thread.

    void wait() {
        socket.socket.async_wait(asio::ip::udp::socket::wait_read, [this](boost::system::error_code error) {
            if (error || stopping) return;
            drain();
            wait();
        });
    }

    void drain() {
        for (int i = 0; i < max_rounds; ++i) {
            if (i != 0) std::this_thread::sleep_for(gather_interval);
            Intake::Taken taken = receive();
            for (int n = 1; n < max_calls && taken.more && !taken.needs_batch; ++n)
                taken = receive();
            if (taken.messages == 0 || taken.more) return;
        }
    }

    Intake::Taken receive() {
        const Intake::Taken taken = intake.receive();
        return taken.needs_batch && intake.wait_for_batch(batch_wait) ? intake.receive() : taken;
    }

    void look() {
        drain();
        look_timer.expires_after(std::chrono::milliseconds(options.flush_interval_ms));
        look_timer.async_wait([this](boost::system::error_code error) {
            if (!error && !stopping) look();
        });
    }

    void poll() {
        poll_kernel();
        if (!socket.groups.empty() && ++polls % polls_of_groups == 0)
            socket.groups.refresh(socket.socket.native_handle());
        poll_timer.expires_after(poll_interval);
        poll_timer.async_wait([this](boost::system::error_code error) {
            if (!error && !stopping) poll();
        });
    }

    void poll_kernel() {
        intake.unknown_senders().publish();
        intake.samples().publish();
        const std::uint32_t drops = socket.kernel_drops();
        // The difference is also correct when the counter wraps at 2^32.
        counters.datagrams_dropped_kernel.add(drops - drops_seen);
        drops_seen = drops;
        timespec cpu{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
        const auto cpu_ns =
            static_cast<std::uint64_t>(cpu.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(cpu.tv_nsec);
        counters.cpu_ns.add(cpu_ns - counters.cpu_ns.value());
        const std::int64_t now_ns =
            std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
        counters.cpu_read_ns.add(static_cast<std::uint64_t>(now_ns) - counters.cpu_read_ns.value());
        counters.polls.add();
    }

    void stop_receiving() {
        stopping = true;
        auto without = Intake::WithoutBatch::wait;
        const auto take = [&] {
            Intake::Taken taken = intake.receive(without);
            while (taken.needs_batch) {
                if (!intake.wait_for_batch(stop_wait)) without = Intake::WithoutBatch::drop;
                taken = intake.receive(without);
            }
            return taken;
        };
        while (intake.holds_messages())
            take();
        // Reads only what the socket holds now: a sender that never pauses must not delay the stop.
        const std::size_t held = socket.queued_bytes();
        std::size_t drained = 0;
        bool more = true;
        while ((more && drained < held) || intake.holds_messages()) {
            const Intake::Taken taken = take();
            drained += taken.bytes + taken.messages * min_overhead;
            more = taken.more;
        }
        intake.pass_on();
        lane.close();
        poll_kernel();
        socket.socket.cancel();
        look_timer.cancel();
        poll_timer.cancel();
    }

    // Runs in the owner's thread, before the receive thread exists.
    void discard_backlog() {
        counters.datagrams_discarded_backlog.add(socket.discard_queued());
        // Datagrams that the kernel dropped before the start do not count either.
        drops_seen = socket.kernel_drops();
    }

    // Runs in the owner's thread.
    void pin() {
        const int refused = run_on(thread.native_handle(), options.cores);
        if (refused == 0) {
            cores = options.cores;
            return;
        }
        socket.warnings.push_back(options.address + ":" + std::to_string(socket.port) +
                                  ": cannot pin the receive thread to core" +
                                  (options.cores.size() == 1 ? " " : "s ") + to_text(options.cores) + ": " +
                                  std::generic_category().message(refused));
    }

    const ReceiverOptions options;
    asio::io_context io{1};
    ReceiveSocket socket;
    ReceiverCounters counters;
    Intake intake;
    BatchLane& lane;
    asio::steady_timer look_timer;
    asio::steady_timer poll_timer;
    bool stopping = false;
    std::uint32_t drops_seen = 0;
    unsigned polls = 0;
    Cores cores;
    std::jthread thread;
    bool started = false;
};

Receiver::Receiver(ReceiverOptions options, BatchPool& pool, BatchLane& output, OverloadGate* gate)
    : impl_(std::make_unique<Impl>(std::move(options), pool, output, gate)) {}

Receiver::~Receiver() {
    stop();
}

void Receiver::start() {
    Impl& impl = *impl_;
    if (impl.started) throw std::logic_error("a receiver can be started only once");
    impl.started = true;
    if (impl.options.descriptor >= 0) impl.discard_backlog();
    asio::post(impl.io, [&impl] {
        impl.poll();
        impl.look();
        impl.wait();
    });
    impl.thread = start_thread("receive", [&impl] { impl.io.run(); });
    impl.pin();
}

void Receiver::stop() {
    Impl& impl = *impl_;
    if (!impl.thread.joinable()) return;
    asio::post(impl.io, [&impl] { impl.stop_receiving(); });
    impl.thread.join();
}

std::uint16_t Receiver::port() const {
    return impl_->socket.port;
}

const Cores& Receiver::cores() const {
    return impl_->cores;
}

std::size_t Receiver::receive_buffer_bytes() const {
    return impl_->socket.buffer_bytes;
}

const std::vector<std::string>& Receiver::warnings() const {
    return impl_->socket.warnings;
}

const ReceiverCounters& Receiver::counters() const {
    return impl_->counters;
}

std::vector<Membership> Receiver::memberships() const {
    return impl_->socket.groups.published();
}

std::vector<UnknownSender> Receiver::unknown_senders() const {
    return impl_->intake.unknown_senders().published();
}

std::vector<DatagramSample> Receiver::samples() const {
    return impl_->intake.samples().published();
}

}  // namespace petacq::net
