// From the socket into batches: the hot path of the receiver. Internal to net/.
//
// One recvmmsg takes several messages. Message i goes to data + used + i * stride of the current batch; what
// is longer than the stride runs over into an area of its own. The stride follows the largest message seen
// lately, so that steady traffic, of any size, with GRO or without, comes to lie back to back and is never
// copied; the rare longer message is joined by a copy, and a call that leaves more holes than data is pushed
// together.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <memory>

#include "net/admission.hpp"
#include "net/receiver.hpp"

namespace petacq::net {

/// Size of the datagrams in a received message: what the kernel says when it has joined several, else that of
/// the message.
std::size_t segment_size(msghdr& header, std::size_t size);

/// One thread at a time.
class Intake {
  public:
    struct Taken {
        unsigned messages = 0;  ///< as the socket gave them: with GRO several datagrams each
        std::size_t bytes = 0;
        bool more = false;  ///< the socket may hold more
    };

    /// `fd`: a bound UDP socket, `local` its name. Throws std::invalid_argument when the batches cannot hold
    /// a datagram.
    Intake(int fd, Endpoint local, const ReceiverOptions& options, BatchPool& pool, BatchQueue& output,
           ReceiverCounters& counters);
    ~Intake();
    Intake(const Intake&) = delete;
    Intake& operator=(const Intake&) = delete;

    /// Takes what the socket holds, at most one call's worth. Never blocks.
    Taken receive();
    /// Passes the current batch on; an empty one goes back to the pool.
    void pass_on();
    /// Steady-clock nanoseconds at which the oldest datagram not yet passed on arrived; 0: there is none.
    [[nodiscard]] std::int64_t oldest_ns() const;

  private:
    static constexpr unsigned max_messages = 64;  // of one recvmmsg

    // What one message brought, before it is split into datagrams.
    struct Message {
        std::byte* data;
        std::size_t size;
        std::size_t segment;  // size of its datagrams; the last may be shorter
        std::uint32_t address;
        std::uint16_t port;
    };
    // Counted here during a call, added to the counters at its end.
    struct Tally {
        std::uint64_t received = 0, delivered = 0, malformed = 0, unknown = 0, dropped = 0;
        std::uint64_t frames = 0, frames_dropped = 0, bytes = 0;
    };

    unsigned prepare();
    void take_in(unsigned i);
    std::byte* place(unsigned i, std::size_t size, std::size_t segments);
    [[nodiscard]] bool has_records(std::size_t count) const;
    Batch* take_batch();
    std::size_t split(const Message& m, Batch* into);
    Datagram& record(const Message& m, Batch& into, const std::byte* data, std::size_t size) const;
    void push(Batch* batch);
    void publish();
    [[nodiscard]] std::byte* overflow(unsigned i) const;

    int fd_;
    BatchPool& pool_;
    BatchQueue& output_;
    moodycamel::ProducerToken token_;
    ReceiverCounters& counters_;
    Admission admission_;
    bool keep_rejected_;
    Endpoint local_;

    std::array<mmsghdr, max_messages> headers_{};
    std::array<iovec, 2 * std::size_t{max_messages}> pieces_{};
    std::array<sockaddr_in, max_messages> senders_{};
    struct alignas(cmsghdr) Control {
        std::array<std::byte, CMSG_SPACE(sizeof(int))> bytes;
    };
    std::array<Control, max_messages> controls_{};
    std::unique_ptr<std::byte[]>
        overflow_;  // one area per message, and one to join a message that finds no room

    Batch* batch_ = nullptr;    // being filled
    std::size_t stride_;        // of the next call
    std::size_t segments_ = 1;  // most datagrams in one message of the last call
    std::int64_t now_ns_ = 0;   // of this call
    Tally tally_;
    // State of one call: the batch it received into, its geometry, and batches that became full during it.
    Batch* slots_batch_ = nullptr;
    std::byte* slots_ = nullptr;
    std::size_t call_stride_ = 0;
    unsigned call_count_ = 0;
    std::size_t packed_ = 0;  // offset at which the next message goes when messages are pushed together
    std::size_t tail_ = 0;    // offset behind all slots, where long messages are joined
    bool packing_ = false;
    std::size_t full_count_ = 0;
    std::array<Batch*, max_messages> full_{};
};

}  // namespace petacq::net
