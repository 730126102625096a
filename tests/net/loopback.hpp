// A receiver on loopback with a pool and a queue, and the datagrams that come out of it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/udp.hpp>

#include <cstring>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "net/batch_queue.hpp"
#include "net/receive/receiver.hpp"
#include "net/sender.hpp"
#include "net/wire.hpp"
#include "tests/support/eventually.hpp"

namespace petacq::test {

using Bytes = std::vector<std::byte>;

inline Bytes random_bytes(std::size_t size, std::mt19937_64& random) {
    Bytes bytes(size);
    for (std::byte& b : bytes)
        b = static_cast<std::byte>(random());
    return bytes;
}

/// A well-formed datagram of `frames` frames of random bytes.
inline Bytes sequenced_datagram(std::uint16_t source, std::uint64_t sequence, std::size_t frames,
                                std::mt19937_64& random) {
    Bytes bytes = random_bytes(net::header_bytes + frames * net::frame_bytes, random);
    net::encode_header({0, source, sequence}, bytes.data(), net::FrameVersion::one);
    return bytes;
}

/// Copies of payloads, back to back in memory, for one send with GSO.
class Burst {
  public:
    explicit Burst(const std::vector<Bytes>& payloads) {
        for (const Bytes& p : payloads)
            memory_.insert(memory_.end(), p.begin(), p.end());
        std::size_t at = 0;
        for (const Bytes& p : payloads) {
            views_.emplace_back(memory_.data() + at, p.size());
            at += p.size();
        }
    }
    [[nodiscard]] std::span<const std::span<const std::byte>> views() const { return views_; }

  private:
    Bytes memory_;
    std::vector<std::span<const std::byte>> views_;
};

/// A datagram that came out of a receiver: its record and a copy of its frames.
struct Received {
    net::Datagram record;
    Bytes frames;
};

/// Empties the queue, returns the batches, and throws if a record is wrong. Takes at most the
/// batches of one pool, so that it ends even while data arrive.
inline void collect(net::BatchQueue& queue, net::BatchPool& pool, std::vector<Received>& received) {
    for (std::size_t n = 0; n < pool.count();) {
        const auto piece = queue.take();
        if (!piece) return;
        const net::Batch& batch = *piece->batch;
        std::vector<net::Datagram> datagrams;
        net::each_group(batch, piece->datagrams, [&](const net::Group& group) {
            group.each([&](const net::Datagram& d) { datagrams.push_back(d); });
        });
        for (const net::Datagram& d : datagrams) {
            const std::size_t bytes = d.frames * net::frame_bytes;
            if (d.admitted == net::Admitted::yes && d.offset % net::frame_bytes != 0)
                throw std::logic_error("frames off the grid");
            if (d.offset + bytes > batch.capacity) throw std::logic_error("frames outside the batch");
            if (!received.empty() && d.arrival_ns < received.back().record.arrival_ns)
                throw std::logic_error("arrival times are reversed");
            received.push_back({d, Bytes(batch.data + d.offset, batch.data + d.offset + bytes)});
        }
        if (!piece->last) continue;
        if (batch.datagrams.empty()) throw std::logic_error("an empty batch was published");
        if (batch.used > batch.capacity) throw std::logic_error("a batch holds more than it can");
        pool.put(piece->batch);
        ++n;
    }
}

class Loopback {
  public:
    explicit Loopback(net::ReceiverOptions options = {}, std::size_t batches = 32,
                      std::size_t batch_bytes = std::size_t{256} << 10)
        : pool(batches, batch_bytes, net::make_host_memory({false, false})),
          queue(1, batches),
          receiver(local(std::move(options)), pool, queue.lane(0)) {}

    net::Sender sender(bool gso = true) const { return net::Sender({"127.0.0.1", receiver.port(), gso}); }

    /// Collects until `done` holds; false if it does not in time.
    template <class Done>
    bool collect_until(Done done) {
        return eventually([&] {
            collect(queue, pool, received);
            return done();
        });
    }
    bool collect_datagrams(std::size_t n) {
        return collect_until([&] { return received.size() >= n; });
    }
    /// Waits until the receiver has taken `n` datagrams from its socket, delivered or not.
    bool wait_received(std::uint64_t n) {
        return collect_until([&] { return counters().datagrams_received.value() >= n; });
    }

    [[nodiscard]] const net::ReceiverCounters& counters() const { return receiver.counters(); }
    /// received = delivered + malformed + unknown source + dropped.
    [[nodiscard]] bool identity_closes() const {
        const net::ReceiverCounters& c = counters();
        return c.datagrams_received.value() == c.datagrams_delivered.value() + c.datagrams_malformed.value() +
                                                   c.datagrams_unknown_source.value() +
                                                   c.datagrams_dropped_no_buffer.value();
    }

    net::BatchPool pool;
    net::BatchQueue queue;
    net::Receiver receiver;
    std::vector<Received> received;

  private:
    static net::ReceiverOptions local(net::ReceiverOptions options) {
        if (options.multicast_groups.empty() && options.address == "0.0.0.0") options.address = "127.0.0.1";
        return options;
    }
};

/// Sends from a chosen address.
class PlainSender {
  public:
    PlainSender(const std::string& from, std::uint16_t to)
        : socket_(io_, {boost::asio::ip::make_address_v4(from), 0}),
          to_(boost::asio::ip::make_address_v4("127.0.0.1"), to) {}
    void send(const Bytes& payload) { socket_.send_to(boost::asio::buffer(payload), to_); }
    [[nodiscard]] std::uint16_t port() const { return socket_.local_endpoint().port(); }

  private:
    boost::asio::io_context io_;
    boost::asio::ip::udp::socket socket_;
    boost::asio::ip::udp::endpoint to_;
};

/// Whether the datagrams of one sender arrived in order with their frames, header and end times.
inline bool same(const std::vector<Bytes>& sent, const std::vector<Received>& received) {
    if (sent.size() != received.size()) return false;
    for (std::size_t i = 0; i < sent.size(); ++i) {
        const net::Datagram& d = received[i].record;
        net::DatagramHeader header;
        if (net::parse_datagram(net::Framing::sequenced, net::FrameVersion::one, sent[i].data(),
                                sent[i].size(), header) != net::Malformed::none) {
            return false;
        }
        if (header.sequence != d.sequence || header.source != d.source || header.flags != d.flags)
            return false;
        if (!std::equal(sent[i].begin() + net::header_bytes, sent[i].end(), received[i].frames.begin(),
                        received[i].frames.end())) {
            return false;
        }
        const Bytes& frames = received[i].frames;
        const net::ValidTimes times = net::valid_times({}, net::Modules::below(65'536), frames.data(),
                                                       frames.size() / net::frame_bytes);
        if (d.first_time != times.first || d.last_time != times.last || d.timed_frames != times.frames)
            return false;
    }
    return true;
}

}  // namespace petacq::test
