#include "tools/petlm/mpi/communicator.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

namespace petacq::petlm {
namespace {

/// MPI counts with int.
constexpr std::size_t max_bytes = std::size_t{1} << 30U;

template <class Call>
void in_pieces(std::size_t bytes, Call call) {
    for (std::size_t done = 0; done < bytes; done += max_bytes)
        call(done, static_cast<int>(std::min(max_bytes, bytes - done)));
}

/// MPI waits by polling without a pause: ranks that wait would take time from those that work, since threads
/// of a core share it.
constexpr std::chrono::microseconds pause(50);

void wait_for(MPI_Request request) {
    for (int done = 0;;) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (done != 0) return;
        std::this_thread::sleep_for(pause);
    }
}

/// Waits until all ranks are here. What follows is over soon.
void wait_for_all() {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    wait_for(request);
}

std::uint64_t take_number(int from, int tag) {
    std::uint64_t value = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Irecv(&value, 1, MPI_UINT64_T, from, tag, MPI_COMM_WORLD, &request);
    wait_for(request);
    return value;
}

}  // namespace

int Communicator::rank() const {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

int Communicator::size() const {
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}

int Communicator::rank_on_host() const {
    MPI_Comm host = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank(), MPI_INFO_NULL, &host);
    int number = 0;
    MPI_Comm_rank(host, &number);
    MPI_Comm_free(&host);
    return number;
}

void Communicator::broadcast(std::vector<std::byte>& bytes, int root) const {
    std::uint64_t size = bytes.size();
    wait_for_all();
    MPI_Bcast(&size, 1, MPI_UINT64_T, root, MPI_COMM_WORLD);
    bytes.resize(size);
    in_pieces(size, [&](std::size_t at, int count) {
        MPI_Bcast(bytes.data() + at, count, MPI_BYTE, root, MPI_COMM_WORLD);
    });
}

std::vector<std::uint64_t> Communicator::gather(std::uint64_t value) const {
    std::vector<std::uint64_t> all(static_cast<std::size_t>(size()));
    wait_for_all();
    MPI_Allgather(&value, 1, MPI_UINT64_T, all.data(), 1, MPI_UINT64_T, MPI_COMM_WORLD);
    return all;
}

void Communicator::send(std::span<const std::byte> bytes, int to, int tag) const {
    const std::uint64_t size = bytes.size();
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Issend(&size, 1, MPI_UINT64_T, to, tag, MPI_COMM_WORLD, &request);
    wait_for(request);  // until the other rank receives
    in_pieces(size, [&](std::size_t at, int count) {
        MPI_Send(bytes.data() + at, count, MPI_BYTE, to, tag, MPI_COMM_WORLD);
    });
}

std::vector<std::byte> Communicator::receive(int from, int tag) const {
    std::vector<std::byte> bytes(take_number(from, tag));
    in_pieces(bytes.size(), [&](std::size_t at, int count) {
        MPI_Recv(bytes.data() + at, count, MPI_BYTE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    });
    return bytes;
}

void Communicator::swap(std::span<const std::byte> sent, int to, std::span<std::byte> received, int from,
                        int tag) const {
    MPI_Sendrecv(sent.data(), static_cast<int>(sent.size()), MPI_BYTE, sent.empty() ? MPI_PROC_NULL : to, tag,
                 received.data(), static_cast<int>(received.size()), MPI_BYTE,
                 received.empty() ? MPI_PROC_NULL : from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void Communicator::post(std::uint64_t value, int to, int tag) {
    std::erase_if(posted_, [](const std::unique_ptr<Posted>& p) {
        int done = 0;
        MPI_Test(&p->request, &done, MPI_STATUS_IGNORE);
        return done != 0;
    });
    posted_.push_back(std::make_unique<Posted>(Posted{value, MPI_REQUEST_NULL}));
    Posted& p = *posted_.back();
    MPI_Isend(&p.value, 1, MPI_UINT64_T, to, tag, MPI_COMM_WORLD, &p.request);
}

std::uint64_t Communicator::take(int from, int tag) const {
    return take_number(from, tag);
}

void Communicator::finish() {
    for (const auto& p : posted_)
        wait_for(p->request);
    posted_.clear();
}

}  // namespace petacq::petlm
