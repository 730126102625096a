#include "daemon/buffer_times.hpp"

#include <algorithm>

#include "net/wire.hpp"

namespace petacq::daemon {

namespace {

constexpr double standard_payload = 1472;
/// The part of a socket buffer that holds payload: the kernel charges its own memory for each datagram, too.
constexpr double payload_share = 0.5;

}  // namespace

BufferTimes buffer_times(const config::Configuration& configuration, double frames_per_s) {
    const double header = configuration.receive.framing == net::Framing::sequenced ? net::header_bytes : 0;
    const double bytes_per_frame = net::frame_bytes * standard_payload / (standard_payload - header);
    double sockets = 0;
    for (const config::Socket& socket : configuration.receive.sockets)
        sockets += socket.count;
    const config::Receive& r = configuration.receive;
    const double bytes_per_s = frames_per_s * bytes_per_frame;
    const double sockets_s =
        sockets * static_cast<double>(r.receive_buffer_bytes) * payload_share / bytes_per_s;
    const double pool_s =
        static_cast<double>(r.batch_count) * static_cast<double>(r.batch_bytes) / bytes_per_s;
    return {sockets_s, pool_s + sockets_s};
}

double slice_rate(const config::Configuration& configuration) {
    const config::Pipeline& p = configuration.pipeline;
    return 1e3 * p.slice_frames / std::max<double>(p.slice_interval_ms, 1);
}

}  // namespace petacq::daemon
